from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import chalie.build
import pytest
from attrs import define, field, frozen
from chalie.build import Upkeep, build, enabled_plugins
from chalie.catalogue import building, footprint, tables
from chalie.catalogue.generations import Generation, Generations
from chalie.config import Config, environment_key, import_paths, save_package_option
from chalie.errors import ChalieError, IndexUnreadable
from chalie.ledger import Ledger

from tests.support import packages

from .catalogue.places import Index, Place, place_in
from .catalogue.test_damage import deep, file_for_all, garbage

DIST = "chalie-ability-tool"


def state(generation: Generation, dist: str = DIST) -> str | None:
    return generation.snapshot.state(dist)


def names(generation: Generation) -> list[str]:
    return [ability.name for _, ability in generation.snapshot.abilities()]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A place with nothing installed."""
    return place_in(tmp_path, monkeypatch)


# what one build does


def test_nothing_changed_is_nothing_published(place: Place) -> None:
    place.install("tool")
    first = place.build()
    assert place.build().id == first.id
    assert place.build(full=True).id == first.id


def test_only_what_changed_is_read_and_embedded(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    described: list[list[str]] = []
    real = building.describe

    def spy(distributions: Sequence[object], **options: object) -> object:
        described.append([one.name for one in distributions])  # type: ignore[attr-defined]
        return real(distributions, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(building, "describe", spy)
    for name in ("one", "two"):
        place.install(name)
    place.build()
    place.install("three")
    assert names(place.build()) == ["one", "three", "two"]
    assert described == [["chalie-ability-one", "chalie-ability-two"], ["chalie-ability-three"]]
    assert place.index.embedded[-1] == ["three"]


def test_an_uninstalled_package_is_missing_once_and_then_forgotten(place: Place) -> None:
    tool = place.install("tool")
    place.build()
    tool.uninstall()
    gone = place.build()
    assert names(gone) == [] and state(gone) == "missing"
    assert gone.snapshot.get(DIST, "tool") is not None
    place.install("other")
    assert state(place.build()) is None


def test_a_package_being_written_drops_out_and_comes_back_by_itself(place: Place) -> None:
    tool = place.install("tool")
    place.build()
    module = tool.path("chalie_ability_tool.py")
    text = module.read_text()
    module.unlink()
    waiting = place.build()
    assert names(waiting) == [] and state(waiting) == "in-progress"
    (problem,) = waiting.snapshot.problems()
    assert problem.dist == DIST and str(module) in problem.reason and not problem.quarantined
    module.write_text(text)
    assert names(place.build()) == ["tool"]


def test_a_package_moved_away_by_an_installer_is_in_progress_and_not_gone(place: Place) -> None:
    tool = place.install("tool")
    place.build()
    tool.dist_info.rename(place.site / f"~{tool.dist_info.name[1:]}")
    waiting = place.build()
    assert state(waiting) == "in-progress"
    assert "~halie_ability_tool" in (waiting.snapshot.distribution(DIST) or pytest.fail()).reason


def test_a_broken_package_is_set_aside_and_read_again_once_it_is_mended(place: Place) -> None:
    tool = place.install("tool", before="import no_such_library")
    place.install("other")
    broken = place.build()
    assert names(broken) == ["other"] and state(broken) == "quarantined"
    (problem,) = broken.snapshot.problems()
    assert "no_such_library" in problem.reason
    assert place.build().id == broken.id
    tool.rewrite("chalie_ability_tool.py", packages.ability_source("tool"))
    mended = place.build()
    assert names(mended) == ["other", "tool"] and mended.snapshot.problems() == ()


def test_what_was_set_aside_for_a_missing_library_is_read_again_when_one_comes(place: Place) -> None:
    place.install("tool", before="import late_library")
    assert state(place.build()) == "quarantined"
    packages.install(place.site, packages.Package("late-library", {"late_library.py": ""}))
    assert state(place.build()) == "ready"


def test_a_package_with_unreadable_metadata_keeps_what_was_last_known(place: Place) -> None:
    tool = place.install("tool")
    place.build()
    points = tool.dist_info / "entry_points.txt"
    good = points.read_text()
    points.write_text("[chalie.abilities]\nbroken\n")
    broken = place.build()
    assert state(broken) == "quarantined" and broken.snapshot.get(DIST, "tool") is not None
    points.write_text(good)
    assert state(place.build()) == "ready"


def test_a_full_build_compares_bytes_that_no_stat_gives_away(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as on a file system that keeps no times
    monkeypatch.setattr(footprint._Look, "stamp", lambda self: "always the same")
    tool = place.install("tool", summary="One.")
    first = place.build()
    module = tool.path("chalie_ability_tool.py")
    stat = module.stat()
    with module.open("r+") as file:
        text = file.read().replace("One.", "Two.")
        file.seek(0)
        file.write(text)
    os.utime(module, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert place.build().id == first.id
    found = place.build(full=True).snapshot.get(DIST, "tool")
    assert found is not None and found.summary == "Two."


def test_a_disabled_package_is_left_out_without_a_trace(place: Place) -> None:
    place.install("tool")
    place.build()
    save_package_option(place.home, DIST, "disabled", True)
    off = place.build()
    assert names(off) == [] and state(off) is None
    save_package_option(place.home, DIST, "disabled", False)
    assert names(place.build()) == ["tool"]


def test_a_damaged_index_is_built_again_and_no_package_read_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.install("tool")
    first = place.build()
    (first.path / "names" / "list").write_text("lies")
    monkeypatch.setattr(building, "describe", lambda *_, **__: pytest.fail("nothing has to be read"))
    second = place.build()
    assert second.id != first.id and second.verified("names/list").read_text() == "tool"


@pytest.mark.parametrize("file", [tables.FILE, "manifest.json"])
def test_a_damaged_catalogue_is_built_again_from_what_is_installed(place: Place, file: str) -> None:
    place.install("tool")
    first = place.build()
    data = bytearray((first.path / file).read_bytes())
    data[len(data) // 2] ^= 0xFF
    (first.path / file).write_bytes(data)
    second = place.build()
    assert second.id != first.id and names(second) == ["tool"]


def test_playbooks_are_read_with_their_package_and_a_bad_one_is_reported(place: Place) -> None:
    good = "---\nname: plan\ndescription: When planning.\n---\nSteps.\n"
    files = {"books/plan/SKILL.md": good, "books/bad/SKILL.md": "---\nname: bad\nallowed-tools: {\n---\n"}
    packages.install(place.site, packages.Package("skills", files, {"chalie.skills": {"books": "books"}}))
    generation = place.build()
    ((_, book),) = generation.snapshot.playbooks()
    assert (book.name, book.dist) == ("plan", "skills")
    (problem,) = generation.snapshot.problems()
    assert problem.phase == "playbook" and not problem.quarantined
    assert state(generation, "skills") == "ready"


def test_a_slow_import_is_named_and_usable(place: Place) -> None:
    place.install("tool", before="import time; time.sleep(1.1)")
    generation = place.build()
    assert names(generation) == ["tool"]
    (problem,) = generation.snapshot.problems()
    assert problem.dist == DIST and "to import" in problem.reason and not problem.quarantined
    place.install("other")
    assert [p.dist for p in place.build().snapshot.problems()] == [DIST]


def test_two_packages_with_one_name_are_both_callable_by_their_qualified_names(place: Place) -> None:
    for dist in ("chalie-ability-left", "chalie-ability-right"):
        packages.install(place.site, packages.ability_package("search", dist=dist))
    snapshot = place.build().snapshot
    assert [snapshot.exposed(one) for one in snapshot.named("search")] == ["left__search", "right__search"]


# how a running process notices


@define
class Telling:
    """Collects what an upkeep told."""

    told: list[tuple[str, list[str], list[str]]] = field(factory=list)

    def __call__(self, generation_id: str, added: Sequence[str], removed: Sequence[str]) -> None:
        self.told.append((generation_id, list(added), list(removed)))


@frozen
class Running:
    """An upkeep over a place, with real child processes and the real indexes."""

    place: Place
    upkeep: Upkeep
    telling: Telling

    def until(self, wanted: Sequence[str]) -> Generation:
        """Open turns until one sees just these abilities."""
        deadline = time.monotonic() + 30
        while True:
            generation = self.upkeep.current()
            if names(generation) == list(wanted):
                return generation
            assert time.monotonic() < deadline, (names(generation), self.upkeep.pending)


def started(place: Place, **limits: float) -> Running:
    home = place.home
    home.mkdir(exist_ok=True)
    if limits:
        (home / "config.toml").write_text("[limits]\n" + "".join(f"{k} = {v}\n" for k, v in limits.items()))
    telling = Telling()
    return Running(place, Upkeep(Config.load(home), telling, paths=place.paths), telling)


@pytest.fixture
def real(tmp_path: Path) -> Place:
    """A place whose builds are not meddled with."""
    made = Place(tmp_path / "site", tmp_path / "home", Index())
    made.site.mkdir()
    return made


def test_a_running_process_follows_what_is_installed_and_removed(real: Place) -> None:
    real.install("tool")
    running = started(real, build_wait_s=20)
    first = running.upkeep.current()
    assert names(first) == ["tool"]
    assert running.upkeep.current() is first
    other = packages.install(real.site, packages.ability_package("other"), age_s=0)
    second = running.until(["other", "tool"])
    assert running.telling.told[-1] == (second.id, ["chalie-ability-other:other"], [])
    other.uninstall()
    third = running.until(["tool"])
    assert running.telling.told[-1] == (third.id, [], ["chalie-ability-other:other"])
    assert names(second) == ["other", "tool"]
    assert running.upkeep.pending == ()
    running.upkeep.close()


def test_a_second_process_finds_the_generation_and_starts_nothing(
    real: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    real.install("tool")
    first = started(real, build_wait_s=20).until(["tool"])
    monkeypatch.setattr(chalie.build, "BuildProcess", lambda *_: pytest.fail("nothing is to be built"))
    again = started(real)
    assert again.upkeep.current().id == first.id
    assert again.telling.told == []


def test_a_package_that_hangs_holds_up_nobody(real: Place) -> None:
    real.install("tool", before="import time; time.sleep(600)")
    real.install("other")
    running = started(real, describe_s=6)
    generation = running.upkeep.current()
    deadline = time.monotonic() + 5
    while names(generation) != ["other"] and time.monotonic() < deadline:
        generation = running.upkeep.current()
    assert names(generation) == ["other"] and state(generation) == "in-progress"
    assert running.upkeep.pending == (DIST,)
    settled = running.upkeep.refresh(None)
    assert state(settled) == "quarantined"
    assert "did not finish within 6 s" in settled.snapshot.problems()[0].reason
    assert running.upkeep.pending == ()


def test_a_damaged_index_is_rebuilt_by_the_next_look(real: Place) -> None:
    real.install("tool")
    running = started(real, build_wait_s=20)
    first = running.upkeep.current()
    relative = next(name for name in first.manifest.files if name.startswith("names/"))
    (first.path / relative).write_bytes(b"damage")
    with pytest.raises(ChalieError):
        first.verified(relative)
    second = running.upkeep.current()
    assert second.id != first.id
    assert second.verified("names")


def test_a_damaged_catalogue_at_the_start_is_rebuilt_and_never_empty(real: Place) -> None:
    real.install("tool")
    first = started(real, build_wait_s=20).until(["tool"])
    path = first.path / tables.FILE
    path.write_bytes(path.read_bytes()[:-100])
    second = started(real).upkeep.current()
    assert second.id != first.id and names(second) == ["tool"]


def test_a_package_found_stale_is_read_again_at_the_next_look(real: Place) -> None:
    project = real.home.parent / "project"
    files = {
        "tool_pack/__init__.py": "",
        "tool_pack/ability.py": packages.ability_source("tool", before="from .words import SUMMARY"),
        "tool_pack/words.py": "SUMMARY = 'x'\n",
    }
    package = packages.Package(DIST, files, {"chalie.abilities": {"tool": "tool_pack.ability"}})
    packages.install_editable(real.site, project, package)
    running = started(real, build_wait_s=20)
    first = running.upkeep.current()
    packages._write(project / "tool_pack" / "words.py", "SUMMARY = 'yy'\n", 1800)
    assert running.upkeep.current() is first
    running.upkeep.stale(DIST)
    second = running.upkeep.current()
    row, before = second.snapshot.distribution(DIST), first.snapshot.distribution(DIST)
    assert row is not None and before is not None and row.files_hash != before.files_hash


def test_an_edited_editable_is_noticed_and_read_again(real: Place) -> None:
    project = real.home.parent / "project"
    packages.install_editable(real.site, project, packages.ability_package("tool", summary="Old."))
    running = started(real, build_wait_s=20)
    running.upkeep.current()
    source = packages.ability_source("tool", summary="New.")
    packages._write(project / "chalie_ability_tool.py", source, 1800)
    found = running.upkeep.current().snapshot.get(DIST, "tool")
    assert found is not None and found.summary == "New."


def test_options_that_decide_what_is_read_are_noticed_at_the_start(real: Place) -> None:
    real.install("tool")
    started(real, build_wait_s=20).until(["tool"])
    save_package_option(real.home, DIST, "disabled", True)
    assert names(started(real).until([])) == []


def test_many_threads_open_turns_while_a_package_comes(real: Place) -> None:
    real.install("tool")
    running = started(real, build_wait_s=20)
    running.upkeep.current()
    real.install("other")
    seen: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: seen.append(names(running.upkeep.current()))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 8
    running.until(["other", "tool"])
    assert len(running.telling.told) == 1


def test_a_build_that_cannot_be_written_says_why(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    upkeep = Upkeep(Config.load(place.home), paths=place.paths)
    monkeypatch.setattr(upkeep, "_generations", Generations(Path("/dev/null/generations/key")))
    with pytest.raises(IndexUnreadable, match="/dev/null/generations/key cannot be written") as caught:
        upkeep.current()
    assert "CHALIE_HOME" in (caught.value.hint or "")
    assert upkeep.failure is caught.value


def test_a_build_that_becomes_impossible_leaves_the_last_generation(real: Place) -> None:
    real.install("tool")
    running = started(real)
    running.until(["tool"])
    known = running.upkeep._generations
    running.upkeep._generations = Generations(Path("/dev/null/generations/key"))
    running.upkeep.stale(DIST)
    assert running.upkeep.current().id == known.current_id()
    assert running.upkeep.failure is not None and "cannot be written" in running.upkeep.failure.message


@pytest.mark.parametrize("damage", [garbage, deep, file_for_all])
def test_a_running_host_and_the_next_one_get_over_damage(real: Place, damage: Callable[[Path], None]) -> None:
    real.install("tool")
    running = started(real)
    running.until(["tool"])
    damage(running.upkeep._generations.root)
    first = running.upkeep.current()
    assert names(first) == ["tool"]  # what it holds open is still good
    if damage is not deep:  # only a new host reads the manifest again
        assert running.upkeep.failure is not None
    started(real).until(["tool"])
    running.upkeep.refresh()
    running.until(["tool"])
    assert Generations(running.upkeep._generations.root).current() is not None


def test_the_last_words_of_a_build_that_died_are_told(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "filelock.py").write_text("raise ImportError('this filelock is of another Python')")
    upkeep = Upkeep(Config.load(place.home), paths=[str(broken), *place.paths])
    with pytest.raises(ChalieError) as caught:
        upkeep.current()
    assert "with status 1: ImportError: this filelock is of another Python" in caught.value.message
    log = upkeep._generations.root / "build.log"
    assert str(log) in (caught.value.hint or "") and "Traceback" in log.read_text()


def test_building_for_another_import_path_leaves_this_one_alone(place: Place, tmp_path: Path) -> None:
    place.install("tool")
    first = place.build()
    other = tmp_path / "elsewhere"
    packages.install(other, packages.ability_package("other"))
    config = Config.load(place.home)
    second = build(config, paths=(str(other), *import_paths()), quiet_s=0)
    assert names(second) == ["other"] and second.path.parent != first.path.parent
    assert place.build().id == first.id


def test_a_build_that_fails_is_told_and_the_last_generation_stays(
    real: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    real.install("tool")
    running = started(real, build_wait_s=20)
    first = running.upkeep.current()
    shadow = real.site / "attrs.py"
    shadow.write_text("raise ImportError('a broken attrs')")
    real.install("other")
    assert running.upkeep.current() is first
    monkeypatch.setattr(chalie.build, "BuildProcess", lambda *_: pytest.fail("not tried again at once"))
    assert running.upkeep.current() is first
    failure = running.upkeep.failure
    assert failure is not None and failure.hint is not None and "build.log" in failure.hint
    log = Path(failure.hint.split()[1].rstrip(","))
    assert "a broken attrs" in log.read_text()


def test_an_option_changed_under_a_running_process_starts_no_build_on_each_turn(
    real: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    real.install("tool")
    running = started(real, build_wait_s=20)
    running.until(["tool"])
    save_package_option(real.home, DIST, "disabled", True)
    build(Config.load(real.home), paths=real.paths, quiet_s=0)
    running.until([])
    monkeypatch.setattr(chalie.build, "BuildProcess", lambda *_: pytest.fail("nothing is to be built"))
    assert names(running.upkeep.current()) == []


def test_plugins_are_imported_only_where_enabled_with_exactly_the_files_they_have(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(place.site))
    mark = tmp_path / "imported"
    code = f"open({str(mark)!r}, 'a').close()\n"
    package = packages.Package(
        "chalie-policy-x", {"policy_x.py": code}, {"chalie.policies": {"x": "policy_x"}}
    )
    plugin = packages.install(place.site, package)
    snapshot = place.build().snapshot
    row = snapshot.distribution("chalie-policy-x")
    assert row is not None and row.files_hash
    config = Config.load(place.home)
    with contextlib.closing(Ledger.open(config.ledger_path, retention=config.retention)) as ledger:
        enabled_plugins(config, ledger, snapshot)
        assert not mark.exists()
        ledger.enabled.set("chalie-policy-x", row.files_hash, environment_key(), by="test")
        plugin.rewrite("policy_x.py", code + "# changed")
        enabled_plugins(config, ledger, snapshot)
        assert not mark.exists()
        plugin.rewrite("policy_x.py", code)
        enabled_plugins(config, ledger, snapshot)
        sys.modules.pop("policy_x", None)
        assert mark.exists()
