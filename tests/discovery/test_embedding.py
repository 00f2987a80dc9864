from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from chalie.discovery import arrays
from chalie.discovery.embedding import Embedder
from chalie.discovery.model_files import fingerprint, tensors
from chalie.errors import ConfigError
from hypothesis import given
from hypothesis import strategies as st
from model2vec import StaticModel

TEXTS = [
    "will it rain in Valletta tomorrow?",
    "Retrieve the exchange rate between two currencies.",
    "naïve café",
    "a",
    "42",
    "x" * 300,
    "one two three " * 40,
]


@pytest.fixture
def copied(model: Path, tmp_path: Path) -> Path:
    """The model's folder, to be damaged."""
    return Path(shutil.copytree(model, tmp_path / "model"))


def small(folder: Path, table: np.ndarray, **more: np.ndarray) -> Path:
    """Write a model2vec folder of a handful of tokens."""
    folder.mkdir()
    tokens = ["[UNK]", "rain", "sun", "##s", "wind"]
    tokenizer = {
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {t: n for n, t in enumerate(tokens)}},
        "normalizer": {"type": "BertNormalizer", "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "added_tokens": [],
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "config.json").write_text('{"normalize": true}')
    arrays.save(folder / "model.safetensors", {"embeddings": table, **more})
    return folder


def test_the_dense_half_is_what_model2vec_computes(model: Path, embedder: Embedder) -> None:
    expected = StaticModel.from_pretrained(model).encode(TEXTS)
    assert np.allclose(embedder.dense(TEXTS), expected, atol=1e-5)


def test_a_vector_is_a_unit_row_of_two_halves(embedder: Embedder) -> None:
    rows = embedder.embed(TEXTS)
    assert rows.shape == (len(TEXTS), embedder.dims) and rows.dtype == np.float32
    assert embedder.dims == embedder.dense_dims + embedder.lexicon.columns
    assert np.allclose(np.linalg.norm(rows[:5], axis=1), 1.0, atol=1e-5)


def test_the_same_text_has_the_same_vector_alone_and_among_others(model: Path, embedder: Embedder) -> None:
    again = Embedder.open(model).embed([TEXTS[0]])[0]
    assert np.array_equal(embedder.embed(TEXTS)[0], again)


def test_meaning_and_shared_words_bring_texts_nearer(embedder: Embedder) -> None:
    rain, weather, song = embedder.embed(["is it going to rain", "the weather forecast", "play a song"])
    assert rain @ weather > rain @ song + 0.1


def test_a_text_in_a_foreign_script_has_no_dense_half_but_its_own_words(embedder: Embedder) -> None:
    query, same, other = embedder.embed(["погода в городе", "прогноз: погода", "перевод текста"])
    assert not query[: embedder.dense_dims].any()
    assert query @ same > 0.4 > abs(query @ other)
    assert not embedder.reads("погода в городе") and embedder.reads("weather in the city")


def test_words_nobody_knows_are_not_read(embedder: Embedder) -> None:
    assert not embedder.reads("wie wird das wetter morgen nachmittag")
    assert embedder.reads("2024-07-14") and embedder.reads("zqxjkw")


@given(st.text(max_size=50))
def test_any_text_embeds_to_finite_numbers(embedder: Embedder, text: str) -> None:
    row = embedder.embed([text + "\ud83d"])[0]
    assert np.isfinite(row).all()
    assert abs(np.linalg.norm(row) - 1.0) < 1e-4 or not row.any()


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32])
def test_any_model2vec_folder_is_read_with_its_weights_and_mapping(tmp_path: Path, dtype: type) -> None:
    table = np.array([[0, 0], [3, 4], [5, 0], [0, 2]], dtype)
    weights = np.array([1, 1, 2, 1, 1], np.float32)
    mapping = np.array([0, 1, 2, 3, 1], np.int64)
    folder = small(tmp_path / "m", table, weights=weights, mapping=mapping)
    rows = Embedder.open(folder).dense(["suns wind", "rain"])
    expected = np.array([(2 * 5 + 0 + 3) / 3, (0 + 2 + 4) / 3])
    assert np.allclose(rows[0], expected / np.linalg.norm(expected), atol=1e-3)
    assert np.allclose(rows[1], [0.6, 0.8], atol=1e-3)


def test_a_model_without_settings_gets_the_defaults(tmp_path: Path) -> None:
    opened = Embedder.open(small(tmp_path / "m", np.eye(5, 4, dtype=np.float32)))
    assert opened.ceiling == 0.65 and opened.chat == () and opened.reads("погода")
    assert opened.dims == 4 + opened.lexicon.columns


def test_a_table_that_holds_no_numbers_is_refused_when_used(tmp_path: Path) -> None:
    table = np.full((5, 4), np.nan, np.float32)
    with pytest.raises(ConfigError, match="values that are not numbers"):
        Embedder.open(small(tmp_path / "m", table)).embed(["rain"])


def test_a_table_shorter_than_the_vocabulary_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="knows 5 tokens, the table 3"):
        Embedder.open(small(tmp_path / "m", np.eye(3, 4, dtype=np.float32)))


def test_a_mapping_outside_the_table_is_refused(tmp_path: Path) -> None:
    mapping = np.array([0, 1, 2, 3, 99], np.int64)
    with pytest.raises(ConfigError, match="points outside"):
        Embedder.open(small(tmp_path / "m", np.eye(5, 4, dtype=np.float32), mapping=mapping))


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("kept", [0, 1, 7, 9, 500])
def test_a_truncated_file_is_a_clear_refusal(copied: Path, name: str, kept: int) -> None:
    path = copied / name
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ConfigError, match=name.replace(".", r"\.")):
        Embedder.open(copied)


@pytest.mark.parametrize("length", [2**63, 2**20, 10**9])
def test_a_header_longer_than_the_file_is_refused(tmp_path: Path, length: int) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(struct.pack("<Q", length) + b"{}" + bytes(100))
    with pytest.raises(ConfigError, match=r"x\.safetensors is cut off"):
        tensors(path)


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 4096]},
        {"dtype": "F32", "shape": [2, 2], "data_offsets": [-16, 0]},
        {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 16]},
        {"dtype": "F32", "shape": [-2, -2], "data_offsets": [0, 16]},
        {"dtype": "F32", "shape": [2, 2], "data_offsets": [16, 0]},
        {"dtype": "F32", "shape": "ab", "data_offsets": [0, 16]},
        {"dtype": "F32"},
        [],
        None,
    ],
)
def test_an_array_outside_the_file_is_refused(tmp_path: Path, entry: object) -> None:
    header = json.dumps({"embeddings": entry}).encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(64))
    with pytest.raises(ConfigError, match=r"x\.safetensors"):
        tensors(path)


def test_a_setting_of_another_format_is_refused(copied: Path) -> None:
    (copied / "chalie.json").write_text('{"format": 99}')
    with pytest.raises(ConfigError, match="is of format 99; this Chalie reads 1"):
        Embedder.open(copied)


@pytest.mark.parametrize(
    "settings",
    [
        {"ceiling": "near"},
        {"ceiling": 9},
        {"lexical": {"columns": 7}},
        {"lexical": {"weight": 1.5}},
        {"refusal": {"chat": None}},
        {"refusal": {"mood": 1}},
    ],
)
def test_a_setting_out_of_range_is_refused(copied: Path, settings: dict[str, object]) -> None:
    (copied / "chalie.json").write_text(json.dumps({"format": 1, **settings}))
    with pytest.raises(ConfigError):
        Embedder.open(copied)


def test_a_fingerprint_changes_with_every_part_of_the_model(copied: Path) -> None:
    seen = {fingerprint(copied)}
    for path in sorted(copied.iterdir()):
        path.write_bytes(path.read_bytes()[::-1])
        seen.add(fingerprint(copied))
    assert len(seen) == 7
