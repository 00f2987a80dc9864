"""The host as a whole, in its own process with generated packages."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from chalie import Host
from chalie.calls import Answer, AnswerKind, HoldView
from chalie.config import save_package_option
from chalie.errors import ChalieError, ConfigError

from .support import packages


def test_a_host_opens_after_a_package_came_and_after_it_went(tmp_path: Path, site: Path) -> None:
    home = tmp_path / "home"
    packages.install(site, packages.ability_package("first_words"))
    with Host.open(home) as host:
        assert [item.name for _, item in host.snapshot.abilities()] == ["first_words"]
    second = packages.install(site, packages.ability_package("second_words"))
    with Host.open(home) as host:
        host.upkeep.refresh()
        assert [item.name for _, item in host.snapshot.abilities()] == ["first_words", "second_words"]
    packages.uninstall(second)
    with Host.open(home) as host:
        host.upkeep.refresh()
        assert [item.name for _, item in host.snapshot.abilities()] == ["first_words"]
    assert "chalie_ability_first_words" not in sys.modules


def test_every_call_passes_the_gate_once_whether_it_may_run_or_not(tmp_path: Path, site: Path) -> None:
    packages.install(site, packages.ability_package("echo_words"))
    with Host.open(tmp_path / "home") as host:
        turn = host.turn(active=["echo_words"])
        for name, arguments in [("find_tools", {"query": ["nothing like it"]}), ("echo_words", {})]:
            before = host.gate.passes
            turn.call(name, {**arguments, "act_summary": "trying"})
            assert host.gate.passes == before + 1


def test_other_processes_can_tell_that_this_one_runs_tools_from_its_first_turn_on(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from chalie.ledger import Ledger; "
    code += "print(sorted(Ledger.open(Path(sys.argv[1])).others()))"

    def others() -> str:
        ledger = tmp_path / "home" / "ledger.sqlite"
        done = subprocess.run([sys.executable, "-c", code, str(ledger)], capture_output=True, text=True)
        return done.stdout.strip()

    with Host.open(tmp_path / "home") as host:
        host.turn()
        assert others() == f"[{os.getpid()}]"
    assert others() == "[]"


def test_a_package_disabled_elsewhere_is_gone_on_the_next_turn_and_comes_back(
    tmp_path: Path, site: Path
) -> None:
    home = tmp_path / "home"
    dist = packages.install(site, packages.ability_package("echo_words")).package.dist
    with Host.open(home) as host:
        assert "echo_words" in host.turn(active=["echo_words"]).names
        save_package_option(home, dist, "disabled", True)
        host.turn()
        host.upkeep.refresh()
        assert "echo_words" not in host.turn(active=["echo_words"]).names
        save_package_option(home, dist, "disabled", None)
        host.turn()
        host.upkeep.refresh()
        assert "echo_words" in host.turn(active=["echo_words"]).names


def test_what_is_older_than_the_settings_allow_is_deleted_once_a_day_and_recorded(
    tmp_path: Path, site: Path
) -> None:
    home = tmp_path / "home"
    with Host.open(home) as host:
        host.ledger.trail.append("call.started", call_id="old")
    with contextlib.closing(sqlite3.connect(home / "ledger.sqlite")) as other:
        other.execute("INSERT INTO trail (id, at, event, call_id) VALUES (0, 0, 'call.started', 'ancient')")
        other.commit()
    with Host.open(home) as host:
        assert host.ledger.trail.query(call_id="ancient"), "it was looked at today"
    with contextlib.closing(sqlite3.connect(home / "ledger.sqlite")) as other:
        other.execute("UPDATE changes SET n = n - 1 WHERE name = 'retained'")
        other.commit()
    with Host.open(home) as host:
        assert not host.ledger.trail.query(call_id="ancient")
        assert host.ledger.trail.query(call_id="old")
        assert host.ledger.trail.query(event="retention.applied")


def test_the_schemas_of_a_turn_are_unique_stable_and_offer_the_background_only_where_it_is_offered(
    tmp_path: Path, site: Path
) -> None:
    for dist in ("chalie-ability-one", "chalie-ability-two"):
        packages.install(site, packages.ability_package("send_mail", dist=dist))
    with Host.open(tmp_path / "home") as host:
        turn = host.turn("chat")
        turn.call("find_tools", {"query": ["one__send_mail", "two__send_mail"]})
        found = turn.tools("anthropic")
        named = [tool["name"] for tool in found]
        assert named == ["find_tools", "find_skills", "one__send_mail", "two__send_mail"]
        assert found == turn.tools("anthropic")
        assert all("async" in tool["input_schema"]["properties"] for tool in found)
        assert [tool["function"]["name"] for tool in turn.tools("openai")] == named
        for tool in host.turn("subconscious").tools("mcp"):
            assert "async" not in tool["inputSchema"]["properties"]
            assert "act_summary" in tool["inputSchema"]["required"]


def test_an_ability_reports_progress_to_whoever_opened_the_turn(tmp_path: Path, site: Path) -> None:
    run = "self.context.progress(0.5, self.context.client['zone']); return ToolResult.ok('done')"
    packages.install(site, packages.ability_package("slow_work", run=run))
    told: list[tuple[float | None, str]] = []
    with Host.open(tmp_path / "home") as host:
        host.ledger.permissions.set("chat", "chalie-ability-slow-work", "slow_work", "allow", by="test")
        turn = host.turn(
            active=["slow_work"],
            client={"zone": "Europe/Malta"},
            progress=lambda call_id, fraction, message: told.append((fraction, message)),
        )
        assert "status=success" in turn.call("slow_work")
        assert not turn.cancel_call(turn.records[-1].call_id), "it has ended"
    assert told == [(0.5, "Europe/Malta")]


def test_a_delegate_has_its_own_tools_and_its_openers_policy_principal_and_approver(
    tmp_path: Path, site: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text('[channels.reading]\npins = ["echo_words", "not_there"]\n')
    packages.install(
        site,
        packages.ability_package("echo_words", facts={"discoverable": False}, run="return ToolResult.ok()"),
    )
    asked: list[HoldView] = []

    class Yes:
        def ask(self, hold: HoldView) -> Answer:
            asked.append(hold)
            return Answer(AnswerKind.ONCE, "test")

    with Host.open(home, approver=Yes()) as host:
        opener = host.turn("chat", principal="ada", conversation="monday")
        assert "unknown-tool" in opener.call("echo_words"), "it is not discoverable, and not pinned here"
        delegate = opener.delegate("reading")
        assert delegate.names == ("echo_words",)
        assert "status=success" in delegate.call("echo_words")
        assert [(hold.principal, hold.conversation) for hold in asked] == [("ada", "monday")]
        assert [problem.dist for problem in host.problems() if "reading" in problem.reason] == ["not_there"]
        with pytest.raises(ConfigError, match="is a delegate channel"):
            host.turn("reading")
        with pytest.raises(ConfigError, match="no delegate channel"):
            opener.delegate("chat")


def test_a_failing_build_is_told_to_whoever_asks_what_is_wrong(tmp_path: Path, site: Path) -> None:
    with Host.open(tmp_path / "home") as host:
        host.upkeep.refresh()
        assert not [found for found in host.problems() if found.phase == "build"]
        host.upkeep.failure = ChalieError("the disk is full", code="index-unreadable", hint="make room")
        assert [(found.reason, found.fix) for found in host.problems() if found.phase == "build"] == [
            ("what is installed could not be read: the disk is full", "make room")
        ]
