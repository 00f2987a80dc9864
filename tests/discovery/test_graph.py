from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from chalie.catalogue.generations import Generations
from chalie.discovery import graph, nearest, prose_index, reduction
from chalie.discovery.embedding import Embedder
from chalie.discovery.graph import Before, Graph
from chalie.discovery.prose_index import Prose

from .conftest import Publish, ability

DIMS = 64
ROOT = Path(__file__).parents[2]


def vectors(chance: np.random.Generator, count: int) -> np.ndarray:
    """Unit vectors in a few dozen heaps, as tools are."""
    heaps = np.random.default_rng(1).normal(size=(40, DIMS))
    rows = heaps[chance.integers(40, size=count)] + 0.6 * chance.normal(size=(count, DIMS))
    unit: np.ndarray = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
    return unit


def made(path: Path, rows: np.ndarray) -> Before:
    return Before(path, {"vectors": rows, **graph.write(path, rows, None)})


def recall(rows: np.ndarray, near: Callable[[np.ndarray], np.ndarray], asked: np.ndarray) -> float:
    right = 0
    for vector in asked.astype(np.float32):
        cosines = rows.astype(np.float32) @ vector
        found = near(vector)
        best = set(found[(-cosines[found]).argsort()[:10]].tolist())
        right += len(best & set((-cosines).argsort()[:10].tolist()))
    return right / (10 * len(asked))


def test_a_graph_that_grew_finds_what_one_made_anew_finds(tmp_path: Path) -> None:
    chance = np.random.default_rng(7)
    rows, before, added = vectors(chance, 4_000), None, 0
    for step in range(5):
        path = tmp_path / f"{step}.usearch"
        arrays = graph.write(path, rows, before)
        grown, fresh = Graph(path, arrays, DIMS), tmp_path / "fresh.usearch"
        anew = Graph(fresh, graph.write(fresh, rows, None), DIMS)
        asked = vectors(chance, 100)
        kept = recall(rows, lambda vector, g=grown: g.near(vector, 50), asked)
        assert kept >= 0.98
        assert kept >= recall(rows, lambda vector, g=anew: g.near(vector, 50), asked) - 0.02
        # only what is new was added
        assert len(grown._rows) == 4_000 + added
        before = Before(path, {"vectors": rows, **arrays})
        added += 300
        # where the new ones come is for the catalogue to say, and some of the old ones go
        rows = np.concatenate([chance.permutation(rows)[200:], vectors(chance, 300)])
        rows = chance.permutation(rows)


def test_a_graph_of_which_too_much_is_gone_is_made_anew(tmp_path: Path) -> None:
    rows = vectors(np.random.default_rng(2), 1_000)
    before = made(tmp_path / "a", rows)
    for kept, size in ((800, 1_000), (799, 799)):
        some = graph.write(tmp_path / "b", rows[:kept], before)
        assert len(Graph(tmp_path / "b", some, DIMS)._rows) == size


def test_a_row_that_is_gone_is_never_near_however_near_it_lay(tmp_path: Path) -> None:
    chance = np.random.default_rng(3)
    others, vector = vectors(chance, 2_000), vectors(chance, 1)[0]
    near = vector + np.float16(0.02) * chance.normal(size=(300, DIMS)).astype(np.float16)
    rows = np.concatenate([near.astype(np.float16), others])
    before = made(tmp_path / "a", rows)
    grown = Graph(tmp_path / "b", graph.write(tmp_path / "b", others, before), DIMS)
    assert len(grown._rows) == 2_300
    assert recall(others, lambda asked: grown.near(asked, 50), vector[None]) == 1.0
    everything = grown.near(vector.astype(np.float32), len(others))
    # asked for all, a graph loses sight of some; what it gives is there
    assert len(set(everything.tolist())) == len(everything) >= len(others) // 2
    assert set(everything.tolist()) <= set(range(len(others)))


def test_twins_keep_a_node_each(tmp_path: Path) -> None:
    rows = np.repeat(vectors(np.random.default_rng(4), 50), 2, axis=0)
    arrays = graph.write(tmp_path / "b", rows, made(tmp_path / "a", rows))
    assert sorted(arrays["nodes"].tolist()) == list(range(100))


def test_a_graph_that_cannot_be_loaded_is_made_anew(tmp_path: Path) -> None:
    rows = vectors(np.random.default_rng(5), 200)
    before = made(tmp_path / "a", rows)
    (tmp_path / "a").write_bytes(b"written by another version")
    again = graph.write(tmp_path / "b", rows, before)
    assert len(Graph(tmp_path / "b", again, DIMS)._rows) == 200


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("nodes", lambda a: a + 1_000),
        ("nodes", np.zeros_like),
        ("nodes", lambda a: a[:-1]),
        ("nodes", lambda a: a.reshape(-1, 1)),
        ("axes", lambda a: a[:, :-1]),
        ("axes", lambda a: a.astype(np.int8)),
        ("vectors", lambda a: a[:-1]),
        ("vectors", lambda a: a.ravel()),
    ],
)
def test_a_graph_whose_arrays_are_not_its_is_not_grown(
    tmp_path: Path, name: str, change: Callable[[np.ndarray], np.ndarray]
) -> None:
    rows = vectors(np.random.default_rng(9), 300)
    before = made(tmp_path / "a", rows)
    wrong = Before(before.path, {**before.arrays, name: change(before.arrays[name])})
    arrays = graph.write(tmp_path / "b", rows, wrong)
    some = Graph(tmp_path / "b", arrays, DIMS)
    assert recall(rows, lambda vector: some.near(vector, 50), rows[:50]) >= 0.98


def test_nodes_that_are_not_the_graphs_are_refused(tmp_path: Path) -> None:
    rows = vectors(np.random.default_rng(6), 30)
    arrays = graph.write(tmp_path / "a", rows, None)
    nodes, axes = arrays["nodes"], arrays["axes"]
    for wrong in ({"nodes": nodes + 1}, {"nodes": np.zeros_like(nodes)}, {"axes": axes[:, :-1]}):
        with pytest.raises(ValueError, match="not those of the graph"):
            Graph(tmp_path / "a", {**arrays, **wrong}, DIMS)
    with pytest.raises(ValueError, match="do not fit the vectors"):
        Graph(tmp_path / "a", arrays, DIMS + 1)


def test_a_graph_whose_axes_say_little_of_what_came_since_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reduction, "_COLUMNS", 40)
    chance = np.random.default_rng(8)
    # two kinds of tools, each told apart by columns in which the other's are nought
    first, second = (np.zeros((1_000, 2 * DIMS), np.float16) for _ in range(2))
    first[:, :DIMS], second[:, DIMS:] = vectors(chance, 1_000), vectors(chance, 1_000)
    before = made(tmp_path / "a", first)
    for added, kept in ((5, True), (900, False)):
        arrays = graph.write(tmp_path / "b", np.concatenate([first, second[:added]]), before)
        assert np.array_equal(arrays["axes"], before.arrays["axes"]) is kept


def some(count: int) -> list[object]:
    words = ("invoice", "flight", "recipe", "song", "patient", "parcel", "contract", "meeting")
    return [
        ability(f"{word}_{number:02}", f"Handle {word} number {number}.")
        for number in range(count // 8)
        for word in words
    ]


def test_a_package_more_grows_the_graph_of_the_generation_before(
    published: Publish, embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest, "EXACT_ROWS", 50)
    monkeypatch.setattr(nearest, "SCANNED_ROWS", 50)
    first = published(some(80))
    grown: list[bool] = []
    write = graph.write

    def watched(path: Path, rows: np.ndarray, before: Before | None) -> dict[str, np.ndarray]:
        arrays = write(path, rows, before)
        grown.append(before is not None and len(arrays["nodes"]) - len(before.arrays["nodes"]) == 1)
        return arrays

    monkeypatch.setattr(graph, "write", watched)
    more = [ability("aardvark", "Feed the aardvark in the garden."), *some(80)]
    second = published(more, previous=first)
    assert grown == [True]
    prose = Prose(second, "ability")
    rows, _ = prose.nearest(embedder.embed(["feed an aardvark"])[0], 1)
    assert dict(second.snapshot.abilities(prose.ids(rows)))[prose.ids(rows)[0]].name == "aardvark"
    fresh = published(more)
    for entry in ("pay the invoice", "a song", "who is my patient", "feed an aardvark"):
        vector = embedder.embed([entry])[0]
        got, wanted = (Prose(each, "ability").nearest(vector, 10)[1] for each in (second, fresh))
        assert got == pytest.approx(wanted, abs=1e-6)


def test_a_graph_of_another_format_is_not_grown(published: Publish, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "EXACT_ROWS", 50)
    monkeypatch.setattr(nearest, "SCANNED_ROWS", 50)
    written: list[Before | None] = []
    write = graph.write

    def watched(path: Path, rows: np.ndarray, before: Before | None) -> dict[str, np.ndarray]:
        written.append(before)
        return write(path, rows, before)

    monkeypatch.setattr(graph, "write", watched)
    first = published(some(80))
    # as an upgrade of the host does
    monkeypatch.setattr(prose_index, "_FORMAT", 10_000)
    second = published(some(88), previous=first)
    assert written == [None, None]
    third = published(some(80), previous=second)
    assert written[2] is not None and len(Prose(third, "ability")) == 80


def test_a_builder_killed_while_it_grows_the_graph_leaves_the_one_before(
    published: Publish, tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest, "EXACT_ROWS", 50)
    monkeypatch.setattr(nearest, "SCANNED_ROWS", 50)
    first = published(some(80))
    root = tmp_path / "generations"
    script = f"""
import os, signal
from pathlib import Path
from chalie.catalogue.generations import Generations
from chalie.catalogue.publishing import publish
from chalie.catalogue.tables import Contents, DistributionRow
from chalie.discovery import builders, graph, nearest
from tests.discovery.test_graph import some
nearest.EXACT_ROWS = nearest.SCANNED_ROWS = 50
write = graph.write
def killed(*arguments):
    write(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)
graph.write = killed
generations = Generations(Path({str(root)!r}))
ready = (DistributionRow("tools", "1", "", "", "", False, "ready"),)
contents = Contents(distributions=ready, abilities=tuple(some(88)))
publish(generations, contents, builders(Path({str(model)!r})), previous=generations.current())
"""
    ended = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False, capture_output=True)
    assert ended.returncode == -9, ended.stderr.decode()
    current = Generations(root).current()
    assert current is not None and current.id == first.id
    current.check()
    assert len(Prose(current, "ability")) == 80
    assert len(Prose(published(some(88), previous=current), "ability")) == 88
