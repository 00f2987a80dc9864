from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from chalie.catalogue.vectors import VectorStore
from chalie.discovery import nearest, prose_index
from chalie.discovery.cascade import Cascade
from chalie.discovery.embedding import Embedder
from chalie.discovery.prose_index import Prose, ProseIndex
from chalie.errors import IndexUnreadable

from .conftest import Publish, ability, everything, playbook

WEATHER = ability(
    "weather", "Current weather and forecast for a city.", examples=["will it rain", "is it sunny"]
)
MAIL = ability("email", "Read and send mail.", examples=["write to Tom", "anything new in my inbox"])


def nearest_names(generation: object, embedder: Embedder, text: str) -> list[str]:
    prose = Prose(generation, "ability")  # type: ignore[arg-type]
    rows, _ = prose.nearest(embedder.embed([text])[0], 5)
    items = dict(generation.snapshot.abilities())  # type: ignore[attr-defined]
    return [items[number].name for number in prose.ids(rows)]


def test_an_item_is_the_mean_of_its_unit_phrase_vectors_the_first_weightier(
    published: Publish, embedder: Embedder
) -> None:
    generation = published([WEATHER])
    rows = embedder.embed(prose_index.phrases(WEATHER))
    mean = np.average(rows, axis=0, weights=[1.5, 1, 1])
    mean /= np.linalg.norm(mean)
    _, distances = Prose(generation, "ability").nearest(mean, 1)
    assert distances[0] == pytest.approx(0.0, abs=2e-3)


def test_the_phrases_are_name_summary_and_parameters_and_then_each_example() -> None:
    item = ability(
        "getRate", "Exchange rate.", parameters=["fromCurrency", "to"], examples=["euro in dollars"]
    )
    assert prose_index.phrases(item) == ["get rate. Exchange rate. from currency to", "euro in dollars"]
    assert prose_index.phrases(playbook("plan-trip", "Steps.")) == ["plan trip. Steps."]


def test_a_hit_read_beside_the_vectors_is_what_the_catalogue_has(published: Publish) -> None:
    hidden = ability("backstage", "Nobody finds this one.", discoverable=False)
    wide = ability("caf\u00e9", "\u5929\u6c17 \U0001f30d", examples=["\u00e7a va"], parameters=["\u540d"])
    generation = published([hidden, MAIL, wide, WEATHER], [playbook("plan-trip", "Steps.")])
    for kind in ("ability", "playbook"):
        prose = Prose(generation, kind)
        ids = prose.ids(np.arange(len(prose)))[::-1]
        assert len(ids) == {"ability": 3, "playbook": 1}[kind]
        assert prose.few(ids) == generation.snapshot.few(kind, ids)


def test_the_nearest_comes_first(published: Publish, embedder: Embedder) -> None:
    generation = published([WEATHER, MAIL])
    assert nearest_names(generation, embedder, "do I need an umbrella")[0] == "weather"
    assert nearest_names(generation, embedder, "reply to my boss")[0] == "email"


def test_an_unchanged_ability_is_never_embedded_twice(
    published: Publish, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = published([WEATHER, MAIL])
    seen: list[str] = []
    embed = Embedder.embed

    def counted(self: Embedder, texts: list[str]) -> object:
        seen.extend(texts)
        return embed(self, texts)

    monkeypatch.setattr(Embedder, "embed", counted)
    news = ability("news", "Headlines of the day.")
    published([WEATHER, MAIL, news], previous=first)
    assert [text for text in seen if text not in Embedder.open(model).chat] == prose_index.phrases(news)


def test_another_model_takes_no_vector_of_the_first(published: Publish, model: Path, tmp_path: Path) -> None:
    first = published([WEATHER])
    other = Path(shutil.copytree(model, tmp_path / "other"))
    settings = json.loads((other / "chalie.json").read_text())
    settings["lexical"]["columns"] = 64
    (other / "chalie.json").write_text(json.dumps(settings))
    second = published([WEATHER], with_model=other, previous=first)
    assert second.manifest.builders["prose"] != first.manifest.builders["prose"]
    vector = Embedder.open(other).embed(["rain"])[0]
    assert len(Prose(second, "ability").nearest(vector, 1)[0]) == 1
    with pytest.raises(IndexUnreadable, match="the index holds vectors of"):
        Prose(first, "ability").nearest(vector, 1)


def test_a_description_that_embeds_to_nothing_is_never_nearest(
    published: Publish, embedder: Embedder
) -> None:
    generation = published([ability("x", "\u2603 \u2603"), ability("_", "!!!"), WEATHER])
    _, distances = Prose(generation, "ability").nearest(embedder.embed(["rain"])[0], 3)
    assert np.isfinite(distances).all()
    assert nearest_names(generation, embedder, "rain")[0] == "weather"


def test_an_empty_catalogue_has_a_prose_index(published: Publish, embedder: Embedder) -> None:
    prose = Prose(published(), "ability")
    assert len(prose) == 0 and len(prose.nearest(embedder.embed(["rain"])[0], 5)[0]) == 0


@pytest.mark.parametrize("name", ["ability.vectors", "prose.json", "chat.vectors"])
@pytest.mark.parametrize("damage", ["flip", "cut", "gone", "longer"])
def test_a_damaged_file_is_said_before_it_is_read(published: Publish, name: str, damage: str) -> None:
    generation = published([WEATHER])
    path = generation.path / "prose" / name
    data = bytearray(path.read_bytes())
    if damage == "flip":
        data[len(data) // 2] ^= 1
    path.unlink() if damage == "gone" else path.write_bytes(
        data[:-3] if damage == "cut" else data + b"x" if damage == "longer" else data
    )
    with pytest.raises(IndexUnreadable):
        len(Prose(generation, "ability"))
    assert generation.damaged


def test_an_index_of_another_format_is_damaged_so_that_it_is_built_again(
    published: Publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    generation = published([WEATHER])
    # as where the host's code is changed in place, with nothing installed
    monkeypatch.setattr(prose_index, "_FORMAT", 10_000)
    with pytest.raises(IndexUnreadable, match="format"):
        len(Prose(generation, "ability"))
    assert generation.damaged
    assert len(Prose(published([WEATHER], previous=generation), "ability")) == 1


def test_a_tool_that_only_the_catalogue_has_is_a_damaged_index(published: Publish) -> None:
    prose = Prose(published([WEATHER, MAIL]), "ability")
    for ids in ([99], [1, 99], [0]):
        with pytest.raises(IndexUnreadable, match="lacks a tool"):
            prose.few(ids)


CHANGES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "shorter": lambda array: array[:-1],
    "of another type": lambda array: array.astype(np.float64),
    "of noughts": np.zeros_like,
    "of the highest": lambda array: np.full_like(
        array, np.iinfo(array.dtype).max if array.dtype.kind in "iu" else np.finfo(array.dtype).max
    ),
    "of other dimensions": lambda array: array.reshape(-1, 1) if array.ndim == 1 else array.ravel(),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("rows", [(99, 99), (10, 99), (10, 10)], ids=["exact", "scan", "graph"])
def test_arrays_that_are_not_what_was_written_are_a_damaged_index_and_no_crash(
    published: Publish,
    embedder: Embedder,
    monkeypatch: pytest.MonkeyPatch,
    rows: tuple[int, int],
    change: Callable[[np.ndarray], np.ndarray],
) -> None:
    monkeypatch.setattr(nearest, "EXACT_ROWS", rows[0])
    monkeypatch.setattr(nearest, "SCANNED_ROWS", rows[1])
    generation = published(
        [WEATHER, *(ability(f"tool_{n}", f"Send mail {n} to friends.") for n in range(30))]
    )
    read = prose_index.tensors
    for name in dict(read(generation.path / "prose" / "ability.vectors")):

        def changed(path: Path, name: str = name) -> object:
            arrays = dict(read(path))
            if name in arrays and path.name == "ability.vectors":
                arrays[name] = np.ascontiguousarray(change(arrays[name]))
            return arrays

        monkeypatch.setattr(prose_index, "tensors", changed)
        found = Cascade(generation, lambda: embedder).find(
            ["is it going to rain in the town tomorrow", "the mail of a friend"], "ability", everything
        )
        assert found.hits or found.misses


def test_above_the_crossover_a_graph_gives_the_same_neighbours(
    published: Publish, embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = (
        "invoice",
        "flight",
        "recipe",
        "song",
        "patient",
        "parcel",
        "contract",
        "meeting",
        "camera",
        "lamp",
    )
    verbs = ("create", "delete", "find", "rename", "share", "archive", "print", "translate", "rate", "export")
    some = [ability(f"{verb}_{kind}", f"{verb.title()} a {kind}.") for kind in kinds for verb in verbs]
    exact = published(some)
    queries = [f"{verb} my {kind}" for kind, verb in zip(kinds, verbs, strict=True)]
    wanted = [nearest_names(exact, embedder, query) for query in queries]
    monkeypatch.setattr(nearest, "EXACT_ROWS", 10)
    monkeypatch.setattr(nearest, "SCANNED_ROWS", 10)
    graph = published(some)
    assert (graph.path / "prose" / "ability.usearch").exists()
    got = [nearest_names(graph, embedder, query) for query in queries]
    shared = sum(len(set(a) & set(b)) for a, b in zip(wanted, got, strict=True))
    assert shared >= 0.98 * 5 * len(queries)
    path = graph.path / "prose" / "ability.usearch"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(IndexUnreadable):
        len(Prose(graph, "ability"))


def test_the_builder_says_which_model_it_would_use(model: Path) -> None:
    assert ProseIndex(model).fingerprint() == ProseIndex(model).fingerprint()
    assert ProseIndex(model).fingerprint().startswith("prose-")


def test_a_borrowed_vector_of_the_wrong_length_fails_the_build(
    published: Publish, model: Path, tmp_path: Path
) -> None:
    generation = published([WEATHER])

    class Foreign(VectorStore):
        def get(self, keys: object, model: str) -> dict[str, bytes]:
            return dict.fromkeys(keys, b"123")  # type: ignore[attr-defined]

    folder = tmp_path / "next"
    folder.mkdir()
    with pytest.raises(ValueError):
        ProseIndex(model).build(generation.snapshot, folder, Foreign())
