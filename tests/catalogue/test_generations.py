from __future__ import annotations

import gc
from pathlib import Path

import pytest
from chalie.catalogue import tables
from chalie.catalogue.generations import CURRENT, FORMAT, MANIFEST, Generations
from chalie.catalogue.publishing import build_lock, publish, sweep
from chalie.catalogue.tables import Contents
from chalie.errors import IndexUnreadable

from .places import Index
from .test_snapshot import ability, row


def contents(*names: str) -> Contents:
    return Contents((row("chalie-ability-one"),), tuple(ability(name) for name in names))


def published(root: Path, *names: str, **options: object) -> str:
    generations = Generations(root)
    with build_lock(root):
        generation = publish(generations, contents(*names), [Index()], **options)  # type: ignore[arg-type]
    return generation.id


def folders(root: Path) -> set[str]:
    return {entry.name for entry in root.iterdir() if entry.is_dir()}


def test_there_is_no_generation_before_the_first(tmp_path: Path) -> None:
    assert Generations(tmp_path / "none").current() is None
    assert Generations(tmp_path / "none").current_id() is None


def test_what_is_published_is_current_and_complete(tmp_path: Path) -> None:
    name = published(tmp_path, "a", "b")
    generation = Generations(tmp_path).current()
    assert generation is not None and generation.id == name
    assert [found.name for _, found in generation.snapshot.abilities()] == ["a", "b"]
    assert generation.verified("names/list").read_text() == "a\nb"
    assert generation.verified("names") == generation.path / "names"
    assert set(generation.manifest.files) == {tables.FILE, "names/list"}
    assert generation.manifest.counts["abilities"] == 2
    generation.check()


def test_a_reader_keeps_its_generation_while_newer_ones_are_published(tmp_path: Path) -> None:
    first = published(tmp_path, "a")
    held = Generations(tmp_path).current()
    assert held is not None
    second, third = published(tmp_path, "b"), published(tmp_path, "c")
    assert folders(tmp_path) == {first, third} and second not in folders(tmp_path)
    assert held.verified("names/list").read_text() == "a"
    held.close()
    fourth = published(tmp_path, "d")
    assert folders(tmp_path) == {fourth}


def test_a_snapshot_alone_keeps_its_files(tmp_path: Path) -> None:
    first = published(tmp_path, "a")
    generation = Generations(tmp_path).current()
    assert generation is not None
    snapshot = generation.snapshot
    del generation
    gc.collect()
    published(tmp_path, "b")
    assert first in folders(tmp_path)
    assert [found.name for _, found in snapshot.abilities()] == ["a"]
    del snapshot
    gc.collect()
    third = published(tmp_path, "c")
    assert folders(tmp_path) == {third}


def test_what_killed_builders_left_is_cleared_away(tmp_path: Path) -> None:
    name = published(tmp_path, "a")
    for left in ("building-x", "removing-y", "20200101T000000-abc"):
        (tmp_path / left).mkdir()
        (tmp_path / left / "half").touch()
    with build_lock(tmp_path):
        sweep(tmp_path)
    assert folders(tmp_path) == {name}


@pytest.mark.parametrize("damage", ["flip", "truncate", "remove"])
def test_a_damaged_index_is_refused_before_anybody_opens_it(tmp_path: Path, damage: str) -> None:
    published(tmp_path, "a")
    generation = Generations(tmp_path).current()
    assert generation is not None
    file = generation.path / "names" / "list"
    if damage == "flip":
        file.write_bytes(b"b")
    elif damage == "truncate":
        file.write_bytes(b"")
    else:
        file.unlink()
    with pytest.raises(IndexUnreadable) as caught:
        generation.verified("names")
    assert str(file) in caught.value.message and caught.value.hint
    assert generation.damaged


def test_an_index_that_was_never_written_is_unreadable_and_not_empty(tmp_path: Path) -> None:
    published(tmp_path, "a")
    generation = Generations(tmp_path).current()
    assert generation is not None
    with pytest.raises(IndexUnreadable, match="no such index"):
        generation.verified("prose.usearch")


@pytest.mark.parametrize("file", [MANIFEST, tables.FILE])
def test_a_damaged_generation_is_said_to_be_unreadable(tmp_path: Path, file: str) -> None:
    name = published(tmp_path, "a")
    path = tmp_path / name / file
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(IndexUnreadable):
        Generations(tmp_path).current()


def test_another_versions_format_is_not_read(tmp_path: Path) -> None:
    name = published(tmp_path, "a")
    path = tmp_path / name / MANIFEST
    path.write_text(path.read_text().replace(f'"format": {FORMAT}', '"format": 999'))
    with pytest.raises(IndexUnreadable, match="another version"):
        Generations(tmp_path).current()


def test_a_pointer_to_nothing_is_unreadable_and_not_empty(tmp_path: Path) -> None:
    published(tmp_path, "a")
    (tmp_path / CURRENT).write_text("20200101T000000-abcdef\n")
    with pytest.raises(IndexUnreadable, match="gone"):
        Generations(tmp_path).current()


def test_unchanged_content_takes_its_indexes_over(tmp_path: Path) -> None:
    index = Index()
    generations = Generations(tmp_path)
    with build_lock(tmp_path):
        first = publish(generations, contents("a"), [index])
        second = publish(generations, contents("a"), [index], previous=first)
    assert index.built == [["a"]]
    assert second.id != first.id and second.verified("names/list").read_text() == "a"
    with build_lock(tmp_path):
        third = publish(generations, contents("a", "b"), [index], previous=second)
    assert index.embedded == [["a"], ["b"]]
    assert third.verified("names/list").read_text() == "a\nb"


def test_a_damaged_index_is_not_taken_over_but_built_again(tmp_path: Path) -> None:
    index = Index()
    generations = Generations(tmp_path)
    with build_lock(tmp_path):
        first = publish(generations, contents("a"), [index])
        (first.path / "names" / "list").write_text("b")
        second = publish(generations, contents("a"), [index], previous=first)
    assert index.built == [["a"], ["a"]] and index.embedded == [["a"], []]
    assert second.verified("names/list").read_text() == "a"


def test_anew_takes_no_index_over_and_embeds_nothing_twice(tmp_path: Path) -> None:
    index = Index()
    generations = Generations(tmp_path)
    with build_lock(tmp_path):
        first = publish(generations, contents("a"), [index])
        publish(generations, contents("a"), [index], previous=first, anew=True)
    assert index.built == [["a"], ["a"]] and index.embedded == [["a"], []]


def test_another_fingerprint_builds_the_index_again(tmp_path: Path) -> None:
    generations = Generations(tmp_path)
    index = Index(version="2")
    with build_lock(tmp_path):
        first = publish(generations, contents("a"), [Index(version="1")])
        publish(generations, contents("a"), [index], previous=first)
    assert index.built == [["a"]]


def test_vectors_nobody_asks_for_are_left_behind(tmp_path: Path) -> None:
    index = Index()
    generations = Generations(tmp_path)
    with build_lock(tmp_path):
        first = publish(generations, contents("a", "b"), [index])
        second = publish(generations, contents("a"), [index], previous=first)
        publish(generations, contents("a", "b"), [index], previous=second)
    assert index.embedded == [["a", "b"], [], ["b"]]


def test_vectors_can_be_borrowed_from_another_environment(tmp_path: Path) -> None:
    index = Index()
    with build_lock(tmp_path / "one"):
        one = publish(Generations(tmp_path / "one"), contents("a"), [index])
    with build_lock(tmp_path / "two"):
        publish(
            Generations(tmp_path / "two"),
            contents("a", "b"),
            [index],
            borrow=[tmp_path / "absent.sqlite", one.path / tables.FILE],
        )
    assert index.embedded == [["a"], ["b"]]


def test_an_index_that_cannot_be_built_costs_itself_and_is_reported(tmp_path: Path) -> None:
    bad, good = Index(name="prose", fails=True), Index()
    generations = Generations(tmp_path)
    with build_lock(tmp_path):
        generation = publish(generations, contents("a"), [bad, good])
    assert generation.verified("names/list").read_text() == "a"
    assert not [name for name in generation.manifest.files if name.startswith("prose")]
    (problem,) = generation.snapshot.problems()
    assert "prose index could not be built" in problem.reason and "no room" in problem.reason
    assert generation.manifest.builders == {"prose": "", "names": "1"}
    bad.fails = False
    with build_lock(tmp_path):
        publish(generations, contents("a"), [bad, good], previous=generation)
    assert bad.built == [["a"]]


def test_a_build_that_fails_leaves_the_last_generation_and_no_rubbish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = published(tmp_path, "a")
    monkeypatch.setattr("chalie.catalogue.publishing._sync", lambda folder: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        published(tmp_path, "b")
    assert folders(tmp_path) == {name}
    current = Generations(tmp_path).current()
    assert current is not None and current.id == name
