"""What can be done to the generations, and what one distribution's files can do to the others."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from chalie.catalogue import assembly, building, footprint, tables
from chalie.catalogue.footprint import Footprint
from chalie.catalogue.generations import Generation, Generations
from chalie.catalogue.watch import Watch
from chalie.errors import IndexUnreadable

from tests.support import packages

from .places import Place

DIST = "chalie-ability-tool"


def state(generation: Generation, dist: str) -> str | None:
    return generation.snapshot.state(dist)


def names(generation: Generation) -> list[str]:
    return [ability.name for _, ability in generation.snapshot.abilities()]


def garbage(root: Path) -> None:
    (root / "CURRENT").write_bytes(b"\xff\xfe")


def escape(root: Path) -> None:
    (root / "CURRENT").write_text("../../elsewhere")


def folder(root: Path) -> None:
    (root / "CURRENT").unlink()
    (root / "CURRENT").mkdir()
    (root / "CURRENT.new").mkdir()


def pipe(root: Path) -> None:
    (root / "CURRENT").unlink()
    os.mkfifo(root / "CURRENT")


def deep(root: Path) -> None:
    (root / (root / "CURRENT").read_text().strip() / "manifest.json").write_text("[" * 200_000)


def foreign(root: Path) -> None:
    manifest = root / (root / "CURRENT").read_text().strip() / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"files": {', '"files": {"x": 3, '))


def file_for_all(root: Path) -> None:
    shutil.rmtree(root.parent)
    root.parent.write_text("x")


def file_for_one(root: Path) -> None:
    shutil.rmtree(root)
    root.write_text("x")


def folders_for_files(root: Path) -> None:
    shutil.rmtree(root)
    (root / "build.lock").mkdir(parents=True)
    (root / "build.log").mkdir()


DAMAGES = [garbage, escape, folder, pipe, deep, foreign, file_for_all, file_for_one, folders_for_files]


@pytest.mark.parametrize("damage", DAMAGES)
def test_whatever_happened_to_the_generations_a_build_makes_new_ones(
    place: Place, damage: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    place.install("tool")
    root = place.build().path.parent
    damage(root)
    if damage is not folders_for_files:
        with pytest.raises(IndexUnreadable, match="cannot be used"):
            Generations(root).current()
    generation = place.build()
    assert names(generation) == ["tool"]
    assert Generations(root).current_id() == generation.id
    assert ("everything is read again" in capsys.readouterr().err) == (
        damage not in (file_for_all, file_for_one, folders_for_files)
    )
    assert {entry.name for entry in root.iterdir() if entry.is_dir()} - {generation.id} <= {
        entry.name for entry in root.iterdir() if ".aside-" in entry.name
    }


def test_a_damaged_pointer_removes_no_generation_before_a_new_one_is_there(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.install("tool")
    first = place.build()
    garbage(first.path.parent)
    monkeypatch.setattr(building, "publish", lambda *_, **__: pytest.fail("no room"))
    first.close()
    with pytest.raises(pytest.fail.Exception):
        place.build()
    assert (first.path / tables.FILE).exists()


# what one distribution's files can do to the others


def test_a_record_that_cannot_be_true_costs_its_own_distribution_only(place: Place) -> None:
    place.install("tool")
    record = place.install("other").dist_info / "RECORD"
    record.write_text(record.read_text() + f"x.txt,sha256=x,{'9' * 5_000}\n")
    generation = place.build()
    assert names(generation) == ["tool"]
    assert state(generation, "chalie-ability-other") == "in-progress"


@pytest.mark.parametrize("step", ["footprint", "files_hash", "settles", "playbooks"])
def test_whatever_fails_for_one_distribution_is_its_own_problem(
    place: Place, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    place.install("tool")
    place.install("other")

    def failing(real: Callable[..., object], own: Callable[..., str]) -> Callable[..., object]:
        def replaced(*given: Any, **more: Any) -> object:
            if "other" in own(*given):
                raise RecursionError("no such file was ever foreseen")
            return real(*given, **more)

        return replaced

    def labels(print_: Footprint, *_: object) -> str:
        return " ".join(label for label, _path in print_.files)

    if step == "footprint":
        monkeypatch.setattr(footprint, "take", failing(footprint.take, lambda info, *_: info.name))
    elif step == "playbooks":
        monkeypatch.setattr(assembly, "_playbooks", failing(assembly._playbooks, lambda found: found.name))
    else:
        monkeypatch.setattr(Footprint, step, failing(getattr(Footprint, step), labels))
    generation = place.build()
    assert names(generation) == ["tool"]
    assert state(generation, "chalie-ability-other") == "quarantined"
    (problem,) = generation.snapshot.problems()
    assert problem.dist == "chalie-ability-other" and "RecursionError" in problem.reason
    assert "--force-reinstall chalie-ability-other" in problem.fix


def test_a_distribution_that_failed_is_read_once_its_files_are_mended(place: Place) -> None:
    other = place.install("other")
    record = other.dist_info / "RECORD"
    good = record.read_text()
    record.unlink()
    os.mkfifo(record)
    broken = place.build()
    assert state(broken, "chalie-ability-other") == "quarantined"
    record.unlink()
    record.write_text(good)
    assert names(place.build()) == ["other"]


@pytest.fixture
def bytes_site(place: Place) -> Place:
    """A place whose import folder has a name that is not UTF-8."""
    site = Path(os.fsdecode(os.fsencode(place.site.parent) + b"/caf\xe9"))
    site.mkdir()
    return evolve(place, site=site)


def test_a_folder_name_that_is_not_utf_8_costs_nobody_a_build(place: Place) -> None:
    place.install("tool")
    Path(os.fsdecode(os.fsencode(place.site) + b"/caf\xe9-1.0.dist-info")).mkdir()
    generation = place.build()
    assert names(generation) == ["tool"]
    (problem,) = generation.snapshot.problems()
    assert "caf\\udce9-1.0.dist-info" in problem.reason


def test_a_package_in_a_folder_that_is_not_utf_8_is_read_kept_and_watched(bytes_site: Place) -> None:
    tool = packages.install(bytes_site.site, packages.ability_package("tool"), record=False)
    tool.dist_info.rename(Path(os.fsdecode(os.fsencode(bytes_site.site) + b"/t\xf6\xf6l-1.0.dist-info")))
    first = bytes_site.build()
    assert names(first) == ["tool"]
    row = first.snapshot.distribution(DIST)
    assert row is not None and Path(row.path).is_dir()
    watched = [one for one in first.snapshot.watched() if one.kind == "path"]
    assert str(bytes_site.site) in [one.path for one in watched]
    assert not Watch(first.snapshot.watched()).changed()
    assert bytes_site.build().id == first.id
