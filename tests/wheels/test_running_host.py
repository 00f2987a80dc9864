"""What is installed, upgraded, edited and removed while a host runs."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

from chalie.envelope import parse

from tests.support import packages
from tests.support import wheels as building
from tests.support.agent import Agent
from tests.support.terminal import at_terminal

Start = Callable[..., Agent]


def version(number: int) -> packages.Package:
    return packages.ability_package(
        "dice",
        version=f"{number}.0",
        run=f"return ToolResult.ok({number})",
        facts={"side_effect": packages.READ},
    )


def put(target: Path, folder: Path, package: packages.Package) -> None:
    """Install a wheel as pip does, replacing an older version of it."""
    for old in target.glob("chalie_ability_dice-*.dist-info"):
        shutil.rmtree(old)
    building.install(target, packages.write_wheel(folder, package))


def eventually(what: Callable[[], bool]) -> bool:
    """Try again for as long as files that were just written may take to count as settled."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if what():
            return True
        time.sleep(0.1)
    return what()


def code(running: Agent) -> str | None:
    return parse(running.call("dice")).code


def test_a_package_installed_while_a_host_runs_is_found_and_called_with_no_restart(
    agent: Start, target: Path, tmp_path: Path
) -> None:
    with agent() as running:
        assert running.finds("dice") == []
        put(target, tmp_path / "links", version(1))
        assert eventually(lambda: running.finds("dice") == ["dice"])
        frame = parse(running.call("dice"))
        assert (frame.status, frame.body) == ("success", "1")


def test_a_package_uninstalled_while_a_host_runs_is_gone_on_the_next_turn(
    agent: Start, target: Path, tmp_path: Path
) -> None:
    put(target, tmp_path / "links", version(1))
    with agent() as running:
        assert eventually(lambda: running.finds("dice") == ["dice"])
        building.checked(
            [sys.executable, "-m", "uv", "pip", "uninstall", "--target", str(target), "chalie-ability-dice"]
        )
        assert eventually(lambda: running.finds("dice") == [])
        assert parse(running.call("dice")).status == "error"


def test_old_code_never_runs_under_the_description_of_an_upgrade(
    agent: Start, target: Path, tmp_path: Path
) -> None:
    put(target, tmp_path / "links", version(1))
    with agent() as running:
        assert eventually(lambda: running.finds("dice") == ["dice"])
        assert parse(running.call("dice")).body == "1"
        put(target, tmp_path / "links", version(2))
        frames = []

        def refused() -> bool:
            if running.finds("dice"):
                frames.append(parse(running.call("dice")))
            return bool(frames) and frames[-1].code == "not-ready"

        assert eventually(refused)
        assert "restart" in f"{frames[-1].body} {frames[-1].hint}"
        # until the upgrade is noticed the old code may answer, under its own description
        assert {frame.body for frame in frames if frame.status == "success"} <= {"1"}
    with agent() as restarted:
        assert restarted.finds("dice") == ["dice"]
        assert parse(restarted.call("dice")).body == "2"


def test_an_edited_editable_package_is_refused_until_the_host_restarts(
    agent: Start, target: Path, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    packages.install_editable(target, project, version(1))
    with agent(project) as running:
        assert running.finds("dice") == ["dice"]
        assert parse(running.call("dice")).body == "1"
        module = project / "chalie_ability_dice.py"
        module.write_text(module.read_text().replace("ToolResult.ok(1)", "ToolResult.ok(2)"))
        assert eventually(lambda: bool(running.finds("dice")) and code(running) == "not-ready")
    with agent(project) as restarted:
        assert eventually(lambda: restarted.finds("dice") == ["dice"])
        assert parse(restarted.call("dice")).body == "2"


def chalie(target: Path, tmp_path: Path, *words: str) -> None:
    """Run a command line on the agent's home in a process of its own, with the owner at a terminal."""
    env = building.clean_environment(tmp_path / "home", PYTHONPATH=str(target))
    done = at_terminal([sys.executable, "-m", "chalie.cli.main", *words], env=env)
    assert done.code == 0, done.screen


def missed(running: Agent, entry: str) -> list[tuple[str, str]]:
    """Search in the current turn; return what was not found, with the reason."""
    body = json.loads(parse(running.call("find_tools", query=[entry])).body)
    return [(row["entry"], row["reason"]) for row in body["not_found"]]


def test_a_deny_that_another_process_sets_hides_a_tool_from_the_next_search_of_a_running_host(
    agent: Start, target: Path, tmp_path: Path
) -> None:
    put(target, tmp_path / "links", version(1))
    with agent() as running:
        assert eventually(lambda: running.finds("dice") == ["dice"])
        chalie(target, tmp_path, "permissions", "set", "chat", "dice", "deny")
        # in the very turn that is open, and in the next one
        assert missed(running, "dice") == [("dice", "hidden")]
        assert parse(running.call("dice")).code == "permission-denied"
        assert running.finds("dice") == [] and missed(running, "do the thing") != []
        chalie(target, tmp_path, "permissions", "set", "chat", "dice", "ask")
        assert running.finds("dice") == ["dice"]


def test_a_package_quarantined_while_a_host_runs_is_gone_from_its_searches(
    agent: Start, target: Path, tmp_path: Path
) -> None:
    put(target, tmp_path / "links", version(1))
    with agent() as running:
        assert eventually(lambda: running.finds("dice") == ["dice"])
        broken = packages.ability_package("dice", version="2.0", before="raise RuntimeError('no such luck')")
        put(target, tmp_path / "links", broken)
        assert eventually(
            lambda: not running.finds("dice") and missed(running, "dice")[0][1] == "unavailable"
        )
        assert eventually(lambda: code_of_new_turn(running) == "quarantined")


def code_of_new_turn(running: Agent) -> str | None:
    running.turn()
    return code(running)


def test_a_package_that_the_command_line_disables_is_gone_from_a_running_host(
    agent: Start, target: Path, tmp_path: Path
) -> None:
    put(target, tmp_path / "links", version(1))
    with agent() as running:
        assert eventually(lambda: running.finds("dice") == ["dice"])
        chalie(target, tmp_path, "disable", "chalie-ability-dice")
        assert eventually(lambda: running.finds("dice") == [])
        assert parse(running.call("dice")).status == "error"
        chalie(target, tmp_path, "enable", "chalie-ability-dice")
        assert eventually(lambda: running.finds("dice") == ["dice"])
