from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from chalie.ability import Ability
from chalie.catalogue import loading
from chalie.catalogue.descriptor import Descriptor
from chalie.catalogue.loading import load
from chalie.catalogue.snapshot import Snapshot
from chalie.errors import ChalieError, DescribeFailed, NotReady

from tests.support import packages

from .places import Place

DIST = "chalie-ability-tool"
MODULE = "chalie_ability_tool"


@pytest.fixture(autouse=True)
def fresh_imports(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Import from the place, and leave no module of it to the next test."""
    monkeypatch.syspath_prepend(str(place.site))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def only(snapshot: Snapshot) -> Descriptor:
    (found,) = snapshot.of(DIST)
    return found


def loaded(place: Place, **options: object) -> type[Ability]:
    snapshot = place.build().snapshot
    return load(only(snapshot), snapshot, **options)  # type: ignore[arg-type]


def test_building_imports_nothing_and_loading_imports_the_class(place: Place) -> None:
    place.install("tool")
    snapshot = place.build().snapshot
    assert MODULE not in sys.modules
    found = load(only(snapshot), snapshot)
    assert issubclass(found, Ability) and found().name() == "tool"
    assert load(only(snapshot), snapshot) is found


def test_an_upgrade_after_the_import_is_refused_until_a_restart(place: Place) -> None:
    tool = place.install("tool", summary="Old.")
    old = place.build()
    assert load(only(old.snapshot), old.snapshot)().summary() == "Old."
    tool.rewrite(f"{MODULE}.py", packages.ability_source("tool", summary="New."))
    new = place.build()
    assert only(new.snapshot).summary == "New."
    with pytest.raises(NotReady, match="changed after this process imported it") as caught:
        load(only(new.snapshot), new.snapshot)
    assert caught.value.hint is not None and "restart" in caught.value.hint
    # A turn that was opened before the upgrade goes on with the code it was opened with.
    assert load(only(old.snapshot), old.snapshot)().summary() == "Old."


def test_a_change_before_the_import_is_refused_and_told(place: Place) -> None:
    tool = place.install("tool")
    snapshot = place.build().snapshot
    tool.rewrite(f"{MODULE}.py", packages.ability_source("tool", summary="New."))
    told: list[str] = []
    with pytest.raises(NotReady, match="changed since it was read"):
        load(only(snapshot), snapshot, stale=told.append)
    assert told == [DIST] and MODULE not in sys.modules
    snapshot = place.build().snapshot
    assert load(only(snapshot), snapshot)().summary() == "New."


def test_a_change_that_puts_size_and_time_back_is_refused_and_told(place: Place) -> None:
    module = place.install("tool", summary="Old.").path(f"{MODULE}.py")
    snapshot, stat = place.build().snapshot, module.stat()
    module.write_text(module.read_text().replace("Old.", "New."))
    os.utime(module, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert (module.stat().st_size, module.stat().st_ino) == (stat.st_size, stat.st_ino)
    told: list[str] = []
    with pytest.raises(NotReady, match="changed since it was read"):
        load(only(snapshot), snapshot, stale=told.append)
    assert told == [DIST] and MODULE not in sys.modules
    snapshot = place.build().snapshot
    assert load(only(snapshot), snapshot)().summary() == "New."


def test_files_that_cannot_be_looked_at_any_more_are_refused_and_told(place: Place) -> None:
    tool = place.install("tool")
    snapshot = place.build().snapshot
    (tool.dist_info / "RECORD").unlink()
    os.mkfifo(tool.dist_info / "RECORD")
    told: list[str] = []
    with pytest.raises(NotReady, match=r"changed since it was read: .*RECORD is no regular file"):
        load(only(snapshot), snapshot, stale=told.append)
    assert told == [DIST] and MODULE not in sys.modules


def test_a_file_that_was_only_touched_is_imported(place: Place) -> None:
    tool = place.install("tool")
    snapshot = place.build().snapshot
    os.utime(tool.path(f"{MODULE}.py"))
    assert load(only(snapshot), snapshot)().name() == "tool"


def test_an_uninstalled_package_is_refused(place: Place) -> None:
    tool = place.install("tool")
    snapshot = place.build().snapshot
    tool.uninstall()
    with pytest.raises(NotReady, match="is not installed any more"):
        load(only(snapshot), snapshot)
    snapshot = place.build().snapshot
    assert snapshot.state(DIST) == "missing"
    with pytest.raises(NotReady, match="is not installed any more"):
        load(only(snapshot), snapshot)


def test_a_second_module_of_a_package_is_compared_before_it_is_imported(place: Place) -> None:
    files = {
        "pair/__init__.py": "",
        "pair/one.py": packages.ability_source("one"),
        "pair/two.py": packages.ability_source("two"),
    }
    points = {"chalie.abilities": {"one": "pair.one", "two": "pair.two"}}
    pair = packages.install(place.site, packages.Package("pair", files, points))
    snapshot = place.build().snapshot
    one, two = snapshot.of("pair")
    load(one, snapshot)
    pair.rewrite("pair/two.py", packages.ability_source("two", summary="New."))
    with pytest.raises(NotReady, match="changed since it was read"):
        load(two, snapshot)
    assert "pair.two" not in sys.modules


def test_a_package_in_a_place_this_process_does_not_import_from_needs_a_restart(
    place: Place, tmp_path: Path
) -> None:
    packages.install_editable(place.site, tmp_path / "project", packages.ability_package("tool"))
    snapshot = place.build().snapshot
    assert snapshot.state(DIST) == "ready"
    with pytest.raises(NotReady, match="does not import from") as caught:
        load(only(snapshot), snapshot)
    assert caught.value.hint is not None and "restart" in caught.value.hint


def test_an_editable_this_process_imports_from_is_loaded_until_it_is_edited(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    packages.install_editable(place.site, project, packages.ability_package("tool"))
    monkeypatch.syspath_prepend(str(project))
    snapshot = place.build().snapshot
    assert load(only(snapshot), snapshot)().name() == "tool"
    (project / f"{MODULE}.py").write_text(packages.ability_source("tool", summary="New."))
    snapshot = place.build().snapshot
    assert only(snapshot).summary == "New."
    with pytest.raises(NotReady, match="changed after this process imported it"):
        load(only(snapshot), snapshot)


def test_a_module_of_the_same_name_elsewhere_is_not_taken_for_the_packages(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.install("tool")
    snapshot = place.build().snapshot
    (tmp_path / "script").mkdir()
    (tmp_path / "script" / f"{MODULE}.py").write_text("raise SystemExit('the wrong file')")
    monkeypatch.syspath_prepend(str(tmp_path / "script"))
    with pytest.raises(NotReady, match="this process would import"):
        load(only(snapshot), snapshot)


def test_what_the_program_imported_itself_counts_if_it_has_not_changed_since(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = place.install("tool")
    snapshot = place.build().snapshot
    __import__(MODULE)
    monkeypatch.setattr(loading, "_STARTED", time.time() + 60)
    assert load(only(snapshot), snapshot)().name() == "tool"
    del sys.modules[MODULE]
    __import__(MODULE)
    monkeypatch.setattr(loading, "_STARTED", 0.0)
    with pytest.raises(NotReady, match="after this program imported it"):
        load(only(snapshot), snapshot)
    assert tool.path(f"{MODULE}.py").exists()


def test_a_quarantined_package_is_refused_as_that(place: Place) -> None:
    tool = place.install("tool")
    old = place.build().snapshot
    tool.rewrite(f"{MODULE}.py", "raise RuntimeError('broken')")
    snapshot = place.build().snapshot
    with pytest.raises(ChalieError) as caught:
        load(only(old), snapshot)
    assert caught.value.code == "quarantined"
    assert "RuntimeError: broken" in caught.value.message


@pytest.mark.parametrize("before", ["raise SystemExit(3)", "raise KeyError('x')"])
def test_an_import_that_fails_here_and_not_there_is_an_expected_failure(place: Place, before: str) -> None:
    guard = f"import sys\nif 'pytest' in sys.modules:\n    {before}"
    place.install("tool", before=guard)
    with pytest.raises(DescribeFailed, match="chalie_ability_tool:Tool of chalie-ability-tool cannot"):
        loaded(place)


def test_files_that_change_during_the_import_are_never_used(place: Place) -> None:
    code = "import pathlib, sys\nif 'pytest' in sys.modules:\n    pathlib.Path(__file__).write_text('')"
    place.install("tool", before=code)
    snapshot = place.build().snapshot
    with pytest.raises(NotReady, match="changed since it was read"):
        load(only(snapshot), snapshot)
    with pytest.raises(NotReady, match="changed after this process imported it"):
        load(only(snapshot), snapshot)
