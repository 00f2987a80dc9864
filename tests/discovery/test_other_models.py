"""A model2vec folder of anybody's in place of the packaged model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from chalie.catalogue.generations import Generation
from chalie.discovery import arrays, prose_index
from chalie.discovery.cascade import Cascade
from chalie.discovery.embedding import Embedder
from chalie.discovery.prose_index import Prose
from chalie.errors import IndexUnreadable

from .conftest import Publish, ability, everything

RAIN = ability("forecast", "rain sun wind")
MAIL = ability("post", "letter stamp envelope")
WORDS = ("rain", "sun", "wind", "letter", "stamp", "envelope", "regen", "brief", "дождь", "письмо")
SAME = {"regen": "rain", "дождь": "rain", "brief": "letter", "письмо": "letter"}


def tiny(folder: Path, seed: int, columns: int = 48) -> Path:
    """Write a model of ten words in three languages; the same word has one vector in all of them."""
    folder.mkdir()
    random = np.random.default_rng(seed)
    vectors = {word: random.normal(size=columns) for word in WORDS if word not in SAME}
    table = np.array([np.zeros(columns), *(vectors[SAME.get(word, word)] for word in WORDS)], np.float32)
    tokenizer = {
        "version": "1.0",
        "model": {
            "type": "WordLevel",
            "unk_token": "[UNK]",
            "vocab": {word: number for number, word in enumerate(("[UNK]", *WORDS))},
        },
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "added_tokens": [],
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    (folder / "config.json").write_text('{"normalize": true}')
    arrays.save(folder / "model.safetensors", {"embeddings": table})
    return folder


def answer(generation: Generation, folder: Path, entry: str) -> list[str]:
    opened = Embedder.open(folder)
    found = Cascade(generation, lambda: opened).find([entry], "ability", everything)
    return [hit.item.name for hit in found.hits] or [found.misses[0].reason]


@pytest.mark.parametrize(
    ("entry", "name"), [("morgen regen ja", "forecast"), ("дождь", "forecast"), ("письмо друзьям", "post")]
)
def test_a_multilingual_folder_answers_in_its_languages(
    published: Publish, tmp_path: Path, entry: str, name: str
) -> None:
    folder = tiny(tmp_path / "other", 1)
    assert answer(published([RAIN, MAIL], with_model=folder), folder, entry) == [name]


def test_another_folder_is_built_for_once_and_never_mixed_in(
    published: Publish, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded: list[str] = []
    means = prose_index._means

    def counted(embedder: Embedder, texts: list[list[str]]) -> np.ndarray:
        embedded.extend(text for some in texts for text in some)
        return means(embedder, texts)

    monkeypatch.setattr(prose_index, "_means", counted)
    # of the same shape, so that nothing but the fingerprint tells them apart
    first, second = tiny(tmp_path / "first", 1), tiny(tmp_path / "second", 2)
    before = published([RAIN, MAIL], with_model=first)
    made = len(embedded)
    assert made and answer(before, first, "sun and wind") == ["forecast"]
    assert answer(before, second, "sun and wind") == ["index-unreadable"]
    assert not before.damaged
    after = published([RAIN, MAIL], with_model=second, previous=before)
    assert len(embedded) == 2 * made
    assert answer(after, second, "sun and wind") == ["forecast"]
    assert answer(after, first, "sun and wind") == ["index-unreadable"]
    published([RAIN, MAIL], with_model=second, previous=after)
    assert len(embedded) == 2 * made


def test_a_model_of_another_width_is_refused_in_words(published: Publish, tmp_path: Path) -> None:
    first, wide = tiny(tmp_path / "first", 1), tiny(tmp_path / "wide", 1, columns=64)
    prose = Prose(published([RAIN], with_model=first), "ability")
    with pytest.raises(IndexUnreadable, match="another model"):
        prose.expect(Embedder.open(wide))
    with pytest.raises(IndexUnreadable, match="columns"):
        prose.nearest(Embedder.open(wide).embed(["rain"])[0], 1)
