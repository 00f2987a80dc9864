"""The page "Leaving an agent alone", line by line, by somebody who has read nothing else."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from chalie.cli.exits import OK, REFUSED
from chalie.envelope import Frame, parse

from tests.support import wheels as building

from .conftest import Program, using

PAGE = (building.ROOT / "docs" / "leaving-an-agent-alone.md").read_text(encoding="utf-8")
TOOLS = "chalie-ability-workspace", "chalie-policy-side-effects"


def lines(language: str) -> list[str]:
    """Return the lines of the page's blocks in a language."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return "".join(blocks).splitlines()


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "index.html").write_text("<h1>hello</h1>\n")
    return folder


@pytest.fixture
def chalie(watched: Path, tmp_path: Path, site: Path) -> Iterator[Program]:
    with using(watched):
        env = building.clean_environment(tmp_path / "home", CHALIE_WORKSPACE_ROOTS=str(site))
        yield Program(watched, env)


class Script:
    """The agent of the page: writes envelopes, and those of its inbox after each Enter."""

    def __init__(self, chalie: Program, folder: Path) -> None:
        (folder / "agent.py").write_text("\n".join(lines("python")) + "\n", encoding="utf-8")
        self._process = subprocess.Popen(
            [str(chalie.python), str(folder / "agent.py")],
            env={**chalie.env, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def __enter__(self) -> Script:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            assert self._process.wait(30) == 0
        finally:
            self._process.kill()
            self._process.wait()

    def enter(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def says(self) -> Frame:
        """Return the next envelope."""
        assert self._process.stdout is not None
        text = ""
        while not re.search(r"^\[end:\w+\]\n", text, re.MULTILINE):
            line = self._process.stdout.readline()
            assert line, f"the agent ended with {self._process.wait()} after {text!r}"
            text += line
        return parse(text.strip())


def test_a_person_leaves_an_agent_alone_with_files_and_answers_from_a_second_terminal(
    chalie: Program, wheels: Path, site: Path, tmp_path: Path
) -> None:
    assert lines("sh")[0] == f"chalie install --find-links dist {' '.join(TOOLS)}"
    installed = chalie.at_terminal("install", "--find-links", str(wheels), *TOOLS)
    assert installed.code == OK, installed.screen
    assert "chalie-policy-side-effects: enabled: policies" in installed.screen

    untrusted = chalie("explain", "read", "path=index.html")
    assert untrusted.stdout.rstrip().endswith("= ask")
    assert "chalie trust chalie-policy-side-effects" in untrusted.stdout
    assert chalie.at_terminal("trust", TOOLS[1]).code == OK
    assert chalie("explain", "read", "path=index.html").stdout.rstrip().endswith("= allow")
    why = chalie("explain", "write", "path=index.html", "content=new").stdout
    assert "chalie-policy-side-effects: it changes something here (write)" in why
    assert why.rstrip().endswith("= ask")

    with Script(chalie, tmp_path) as agent:
        read, write, delete = agent.says(), agent.says(), agent.says()
        assert (read.status, read.body.strip()) == ("success", "<h1>hello</h1>")
        assert (write.code, delete.code) == ("approval-pending", "approval-pending")
        assert [path.name for path in site.iterdir()] == ["index.html"]

        holds = {row["permission"]: row for row in json.loads(chalie("holds", "--json").stdout)}
        assert {row["state"] for row in holds.values()} == {"pending"}
        first, second = holds["write.write"]["id"], holds["file_delete.delete"]["id"]
        assert f"chalie approve {first}" in write.hint and f"chalie decline {second}" in delete.hint
        assert chalie("approve", first).returncode == REFUSED  # what the agent itself could do

        approved = chalie.at_terminal("approve", first, answers=[("run it? [y/N]:", "y\n")])
        assert approved.code == OK, approved.screen
        assert '| "content": "seen\\n"' in approved.screen
        assert f"{first}: write.write is approved and has run" in approved.screen
        assert (site / "notes.txt").read_text() == "seen\n"
        (site / "notes.txt").unlink()
        agent.enter()
        assert (landed := agent.says()).name == "write" and landed.status == "success"
        again = chalie.at_terminal("approve", first)
        assert again.code == REFUSED and "[already-decided]" in again.screen
        assert not (site / "notes.txt").exists()

        declined = chalie.at_terminal("decline", second)
        assert declined.code == OK, declined.screen
        assert f"chalie decline {second} --undo" in declined.screen

    assert (site / "index.html").exists()
    why = chalie("explain", "file_delete", "path=index.html").stdout
    assert "what it does cannot be taken back (destructive)" in why
    assert f"chalie decline {second} --undo" in why and "'site'" in why
    states = {row["id"]: row["state"] for row in json.loads(chalie("holds", "--all", "--json").stdout)}
    assert states == {first: "done", second: "declined"}
    ran = json.loads(chalie("trail", "--event", "call.started", "--json").stdout)
    assert sorted(row["permission"] for row in ran) == ["read.read", "write.write"]
