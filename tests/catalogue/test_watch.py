from __future__ import annotations

import os
from pathlib import Path

import pytest
from chalie.catalogue import watch
from chalie.catalogue.footprint import watched
from chalie.catalogue.tables import Watched
from chalie.catalogue.watch import Watch

from tests.support import packages

from .places import Place


def edit(path: Path, text: str) -> None:
    """Write a file so that its time surely differs, however coarse the clock of the disk."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(text)
    os.utime(path, ns=(before + 1_000_000_000, before + 1_000_000_000))


def of(place: Place) -> Watch:
    return Watch(place.scan().watched)


def test_nothing_installed_is_nothing_noticed(place: Place) -> None:
    place.install("good")
    looking = of(place)
    assert not looking.changed() and not looking.changed()


def test_installing_and_removing_are_noticed(place: Place) -> None:
    looking = of(place)
    good = place.install("good")
    assert looking.changed()
    looking = of(place)
    good.uninstall()
    assert looking.changed()


def test_a_version_reinstalled_into_the_same_folder_is_noticed(place: Place) -> None:
    good = place.install("good")
    looking = of(place)
    good.uninstall()
    place.install("good", summary="Another one.")
    assert looking.changed()


def test_compiled_files_are_not_taken_for_an_install_and_looked_at_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.install("good")
    looking = of(place)
    (place.site / "__pycache__").mkdir()
    assert not looking.changed()
    listed: list[str] = []
    monkeypatch.setattr(watch.installed, "listing", lambda folder: listed.append(folder) or "")
    assert not looking.changed()
    assert listed == []


def later(folder: Path) -> float:
    """A moment at which a folder has not been written to for a while."""
    return folder.stat().st_mtime + 60


def test_what_one_process_looked_at_the_next_does_not_list_again(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.install("good")
    rows, memory = place.scan().watched, tmp_path / "looked.json"
    (place.site / "__pycache__").mkdir()
    assert not Watch(rows, clock=lambda: later(place.site), memory=memory).changed()
    real, listed = watch.installed.listing, []
    monkeypatch.setattr(watch.installed, "listing", lambda folder: listed.append(folder) or real(folder))
    assert not Watch(rows, memory=memory).changed()
    assert listed == []
    place.install("another")
    assert Watch(rows, memory=memory).changed()
    assert listed == [str(place.site)]


def test_a_folder_written_to_a_moment_ago_is_listed_by_the_next_process_too(
    place: Place, tmp_path: Path
) -> None:
    place.install("good")
    rows, memory = place.scan().watched, tmp_path / "looked.json"
    (place.site / "__pycache__").mkdir()
    assert not Watch(rows, clock=lambda: place.site.stat().st_mtime + 0.1, memory=memory).changed()
    assert not memory.exists()


def test_a_memory_of_another_listing_or_of_nothing_is_no_help_and_no_harm(
    place: Place, tmp_path: Path
) -> None:
    place.install("good")
    rows, memory = place.scan().watched, tmp_path / "looked.json"
    (place.site / "__pycache__").mkdir()
    assert not Watch(rows, clock=lambda: later(place.site), memory=memory).changed()
    place.install("another")
    newer = place.scan().watched
    assert not Watch(newer, memory=memory).changed() and Watch(rows, memory=memory).changed()
    (place.site / "more").mkdir()
    for text in (
        "",
        "[]",
        "{",
        '{"x": 1}',
        f'{{"{place.site}": [1, 2]}}',
        f'{{"{place.site}": [1, 2, 3, ""]}}',
    ):
        memory.write_text(text)
        assert not Watch(newer, memory=memory).changed()


def test_an_import_path_that_is_gone_is_noticed(place: Place) -> None:
    looking = of(place)
    place.site.rmdir()
    assert looking.changed()


def test_an_edit_of_a_watched_file_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "tool.py"
    file.write_text("x")
    looking = Watch([watched(str(file), "editable")])
    assert not looking.changed()
    edit(file, "y")
    assert looking.changed()


def test_a_file_that_was_missing_is_noticed_when_it_comes(tmp_path: Path) -> None:
    looking = Watch([watched(str(tmp_path / "late.py"), "unsettled")])
    assert not looking.changed()
    (tmp_path / "late.py").touch()
    assert looking.changed()


def test_the_end_of_a_waiting_time_is_noticed() -> None:
    now = [100.0]
    looking = Watch([], due=105.0, clock=lambda: now[0])
    assert not looking.changed()
    now[0] = 105.0
    assert looking.changed()


@pytest.mark.parametrize(("editables", "noticed"), [(200, [True, True]), (201, [False, True])])
def test_more_than_two_hundred_editables_are_looked_at_every_two_seconds(
    tmp_path: Path, editables: int, noticed: list[bool]
) -> None:
    now = [1000.0]
    file = tmp_path / "tool.py"
    file.write_text("x")
    looking = Watch([watched(str(file), "editable")], editables, clock=lambda: now[0])
    assert not looking.changed()
    edit(file, "y")
    now[0] += 1.0
    answers = [looking.changed()]
    now[0] += 1.5
    answers.append(looking.changed())
    assert answers == noticed


def test_noticing_reads_no_file_and_lists_no_folder(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    project = place.home.parent / "project"
    packages.install_editable(place.site, project, packages.ability_package("good"))
    rows: list[Watched] = list(place.scan().watched)
    rows += place.found("chalie-ability-good").footprint().watched(unsettled=False)
    looking = Watch(rows)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("noticing is stats alone")

    for name in ("open", "scandir", "listdir"):
        monkeypatch.setattr(os, name, refuse)
    monkeypatch.setattr(Path, "open", refuse)
    assert not looking.changed()
