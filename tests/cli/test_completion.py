"""The shell's TAB: names from the catalogue as it is, and nothing made or read to find them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chalie.cli.program import program
from click.shell_completion import ShellComplete

Chalie = Callable[..., Any]


def offered(*words: str, begun: str = "") -> list[str]:
    """Return what is offered after these words, for a last one that is begun so."""
    complete = ShellComplete(program, {}, "chalie", "_CHALIE_COMPLETE")
    return [item.value for item in complete.get_completions(list(words), begun)]


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("words", "begun", "found"),
    [
        (("call",), "", ["dice", "notes"]),
        (("call",), "no", ["notes"]),
        (("call", "notes"), "", ["action=", "count=", "password="]),
        (("call", "notes", "action=add"), "", ["count=", "password="]),
        (("call", "dice"), "te", ["text="]),
        (("call", "dice", "--channel"), "c", ["chat"]),
        (("show",), "chalie-ability-d", ["chalie-ability-dice"]),
        (("show",), "d", ["dice"]),
        (("list",), "chalie-ability-n", ["chalie-ability-notes"]),
        (("uninstall",), "chalie-ability-n", ["chalie-ability-notes"]),
        (("permissions", "set"), "", ["chat", "external_agent", "subconscious"]),
        (("permissions", "set", "chat"), "notes", ["notes", "notes.add", "notes.clear"]),
        (("skills",), "", []),
    ],
)
def test_tab_offers_what_is_installed(words: tuple[str, ...], begun: str, found: list[str]) -> None:
    assert offered(*words, begun=begun) == found


@pytest.mark.usefixtures("installed")
def test_tab_looks_into_the_home_that_was_named(tmp_path: Path, home: Path) -> None:
    assert offered("--home", str(home), "call") == ["dice", "notes"]
    assert offered("--home", str(tmp_path / "nowhere"), "call") == []
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("command", ["trust", "distrust"])
def test_tab_offers_packages_to_trust(command: str) -> None:
    assert offered(command, begun="chalie-ability-d") == ["chalie-ability-dice"]


@pytest.mark.usefixtures("installed")
def test_tab_offers_the_tool_to_explain_and_the_holds_there_are(chalie: Chalie, token: str) -> None:
    assert offered("explain") == ["dice", "notes"]
    assert offered("explain", "dice", "--channel", begun="c") == ["chat"]
    assert offered("approve") == []
    chalie("call", "dice")
    (hold,) = chalie("holds", "--json").json
    for command in ("approve", "decline", "holds"):
        assert offered(command) == [hold["id"]]
    chalie("decline", hold["id"])
    assert offered("approve") == []
    assert offered("decline", "--undo") == [hold["id"]]


def test_tab_makes_no_home(home: Path) -> None:
    assert offered("call") == []
    assert not home.exists()


def test_tab_says_nothing_of_a_home_that_cannot_be_used(home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text("this is not TOML")
    assert offered("call") == []


@pytest.mark.usefixtures("installed")
def test_a_mistyped_command_is_told_which_was_meant(chalie: Chalie) -> None:
    done = chalie("dcotor")
    assert done.code == 2
    assert "there is no command 'dcotor'; did you mean doctor?" in done.err
    assert "see `chalie --help`" in chalie("xyzzy").err
