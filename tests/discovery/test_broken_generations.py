"""What a search answers from a generation that came to harm: `no-match` only where all was searched."""

from __future__ import annotations

import errno
import gc
import shutil
import tempfile
from pathlib import Path

import pytest
from chalie.catalogue.generations import Generation
from chalie.discovery import arrays, name_index, prose_index
from chalie.discovery.cascade import Cascade
from chalie.discovery.embedding import Embedder

from .conftest import Publish, ability, everything

WEATHER = ability("weather", "Current weather and forecast for a city.", examples=["will it rain"])
MAIL = ability("send_mail", "Send mail to somebody.", examples=["write to Tom"])
BY_MEANING = "is rain expected in the mountains"


def asked(generation: Generation, embedder: Embedder) -> tuple[list[str], list[str], tuple[str, ...]]:
    found = Cascade(generation, lambda: embedder).find(["weather", "mail", BY_MEANING], "ability", everything)
    return [hit.item.name for hit in found.hits], [miss.reason for miss in found.misses], found.degraded


def test_a_whole_generation_answers_each_in_its_way(published: Publish, embedder: Embedder) -> None:
    assert asked(published([WEATHER, MAIL]), embedder) == (["weather", "send_mail"], [], ())


@pytest.mark.parametrize("lost", ["prose", "names"])
def test_a_folder_that_is_gone_costs_its_rung(published: Publish, embedder: Embedder, lost: str) -> None:
    generation = published([WEATHER, MAIL])
    shutil.rmtree(generation.path / lost)
    names, reasons, degraded = asked(generation, embedder)
    assert "weather" in names and "no-match" not in reasons
    assert degraded == ({"prose": "prose", "names": "name"}[lost],)
    # so that it is built again
    assert generation.damaged


@pytest.mark.parametrize("kept", [0, 1, 100])
def test_files_cut_anywhere_are_never_read(published: Publish, embedder: Embedder, kept: int) -> None:
    generation = published([WEATHER, MAIL])
    for path in (generation.path / "prose").iterdir():
        path.write_bytes(path.read_bytes()[:kept])
    names, reasons, degraded = asked(generation, embedder)
    assert names == ["weather", "send_mail"] and reasons == ["index-unreadable"] and degraded == ("prose",)


def test_an_index_of_a_later_format_is_not_guessed_at(
    published: Publish, embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as later:
        later.setattr(prose_index, "_FORMAT", 99)
        generation = published([WEATHER, MAIL])
    found = Cascade(generation, lambda: embedder).find([BY_MEANING], "ability", everything)
    assert found.misses[0].reason == "index-unreadable" and "format 99" in found.causes[0]


def test_a_link_out_of_the_generation_is_not_followed_to_other_bytes(
    published: Publish, embedder: Embedder, tmp_path: Path
) -> None:
    generation = published([WEATHER, MAIL])
    path = generation.path / "prose" / "ability.vectors"
    (tmp_path / "elsewhere").write_bytes(path.read_bytes()[:-64] + bytes(range(64)))
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    assert asked(generation, embedder)[1:] == (["index-unreadable"], ("prose",))


def test_a_disk_that_is_full_costs_the_index_and_the_next_build_makes_it(
    published: Publish, embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, values: object) -> None:
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(arrays, "save", full)
        first = published([WEATHER, MAIL])
    names, reasons, degraded = asked(first, embedder)
    assert names == ["weather", "send_mail"] and reasons == ["index-unreadable"] and degraded == ("prose",)
    assert any("No space left" in problem.reason for problem in first.snapshot.problems())
    assert asked(published([WEATHER, MAIL], previous=first), embedder) == (["weather", "send_mail"], [], ())


def test_a_folder_without_leave_to_write_is_searched_in_a_copy(
    published: Publish, embedder: Embedder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    generation = published([WEATHER, MAIL])
    opened = name_index._opened

    def locked(place: Path) -> object:
        # what tantivy says of a read-only folder; an account that may do anything never hears it
        if place.is_relative_to(generation.path):
            raise ValueError("Failed to acquire Lockfile: IoError(PermissionDenied). None")
        return opened(place)

    monkeypatch.setattr(name_index, "_opened", locked)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert asked(generation, embedder) == (["weather", "send_mail"], [], ())
    gc.collect()
    assert not list(tmp_path.glob("chalie-names-*"))


@pytest.mark.parametrize("entry", ["", " ", "x", "?", "a" * 100_000, "why " * 25_000, "\ud800", "\x00" * 50])
def test_entries_of_any_length_leave_the_next_one_its_answer(
    published: Publish, embedder: Embedder, entry: str
) -> None:
    found = Cascade(published([WEATHER, MAIL]), lambda: embedder).find(
        [entry, "weather"], "ability", everything
    )
    assert [hit.item.name for hit in found.hits] == ["weather"] and found.degraded == ()
    assert [miss.entry for miss in found.misses] == [entry]
