"""A person's word for all tools of a server, at the command line, and what takes it back."""

from __future__ import annotations

from pathlib import Path

import pytest
from chalie import Host
from chalie.cli.main import main

from .stored import built, known, listed, tool


@pytest.fixture
def owner(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An approver token of the home, in the environment."""
    known(home, web=[tool(), tool("fetch")])
    with Host.open(home) as host:
        made = host.ledger.approvers.add("phone", by="test")
    monkeypatch.setenv("CHALIE_APPROVER_TOKEN", made)


@pytest.mark.usefixtures("owner")
@pytest.mark.parametrize("package", [("--package", "mcp:web"), ()])
def test_a_pattern_is_for_the_tools_of_its_server_as_they_are_when_it_is_set(
    home: Path, package: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["permissions", "set", "chat", "_mcp_web_*", "allow", *package]
    assert main(line) == 0
    assert "nothing installed" not in capsys.readouterr().err
    assert main(["permissions", "lint"]) == 0
    # changed before it was ever called
    listed(home, "web", [tool(), tool("fetch", "Fetch a page, and send it away.")])
    built(home)
    capsys.readouterr()
    assert main(["permissions", "lint"]) == 1
    said = capsys.readouterr().out
    assert "_mcp_web_fetch has changed since it was allowed" in said
    assert "Fetch a page, and send it away." in said
    assert "permissions set chat '_mcp_web_*' allow --package mcp:web" in said
    assert "_mcp_web_search" not in said
    assert main(["explain", "_mcp_web_fetch"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("= ask")
    # the line that lint gives mends it
    assert main(line) == 0
    assert main(["permissions", "lint"]) == 0


@pytest.mark.usefixtures("owner")
def test_a_pattern_that_covers_no_tool_of_its_server_is_refused_with_what_it_has(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["permissions", "set", "chat", "_mcp_web_x*", "allow", "--package", "mcp:web"]) != 0
    assert "_mcp_web_fetch" in capsys.readouterr().err


def test_a_command_waits_for_what_a_server_lists_now(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known(home, web=[tool()])
    (home / "config.toml").write_text("[limits]\nbuild_wait_s = 0\n")
    built(home)
    listed(home, "web", [tool(description="Changed.")])
    assert main(["show", "_mcp_web_search"]) == 0
    assert "Changed." in capsys.readouterr().out
