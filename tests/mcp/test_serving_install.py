"""The commands: what `chalie mcp install` writes, and what `chalie mcp serve` refuses before it serves."""

from __future__ import annotations

import importlib.metadata
import json
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chalie.cli import exits
from chalie.cli.main import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def chalie(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Run one command line in an empty folder, of an account whose own files are elsewhere."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))

    def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(list(words))
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def entry(file: Path, name: str = "chalie") -> Any:
    return json.loads(file.read_text(encoding="utf-8"))["mcpServers"][name]


def test_the_entry_starts_this_very_chalie_with_this_home(chalie: Run, home: Path) -> None:
    code, out, err = chalie("mcp", "install")
    written = entry(Path(".mcp.json"))
    assert code == exits.OK and json.loads(out)["mcpServers"]["chalie"] == written
    assert written["type"] == "stdio" and Path(written["command"]).parent == Path(sys.executable).parent
    assert written["args"][-4:] == ["--home", str(home), "mcp", "serve"]
    assert "Claude Code" in err and "any other client" in err


def test_the_options_of_serve_are_in_the_entry(chalie: Run) -> None:
    chalie("mcp", "install", "--channel", "chat", "--person-at-client", "--name", "mine")
    assert entry(Path(".mcp.json"), "mine")["args"][-3:] == ["--channel", "chat", "--person-at-client"]
    assert chalie("mcp", "install", "--person-at-client")[0] == exits.USAGE


def test_what_else_stands_in_the_file_stays_and_so_does_its_mode(chalie: Run) -> None:
    file = Path(".mcp.json")
    file.write_text(json.dumps({"mcpServers": {"other": {"command": "x"}}, "more": [1]}), encoding="utf-8")
    file.chmod(0o600)
    chalie("mcp", "install")
    assert json.loads(file.read_text(encoding="utf-8"))["more"] == [1]
    assert entry(file, "other") == {"command": "x"} and entry(file)["type"] == "stdio"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in Path().iterdir()] == [".mcp.json"]


def test_twice_is_once_and_another_entry_is_replaced_only_when_told_to(chalie: Run) -> None:
    chalie("mcp", "install")
    before = Path(".mcp.json").read_bytes()
    assert "is there already" in chalie("mcp", "install")[2]
    assert Path(".mcp.json").read_bytes() == before
    code, _, err = chalie("mcp", "install", "--channel", "chat")
    assert code == exits.SETUP and "--replace" in err and Path(".mcp.json").read_bytes() == before
    assert chalie("mcp", "install", "--channel", "chat", "--replace")[0] == exits.OK
    assert "chat" in entry(Path(".mcp.json"))["args"]


@pytest.mark.parametrize("text", ["{", "[]", '{"mcpServers": []}', "\ufeff{}"])
def test_a_file_that_is_not_the_clients_is_left_alone(chalie: Run, text: str) -> None:
    Path(".mcp.json").write_text(text, encoding="utf-8")
    code, _, err = chalie("mcp", "install")
    assert code == exits.SETUP and "[bad-config]" in err and "--print" in err
    assert Path(".mcp.json").read_text(encoding="utf-8") == text


def test_for_all_projects_it_goes_to_the_account_and_a_link_stays_a_link(chalie: Run, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere.json"
    real.write_text("{}", encoding="utf-8")
    (tmp_path / ".claude.json").symlink_to(real)
    chalie("mcp", "install", "--user")
    assert (tmp_path / ".claude.json").is_symlink() and entry(real)["type"] == "stdio"


def test_printing_writes_nothing(chalie: Run) -> None:
    code, out, _ = chalie("mcp", "install", "--print")
    assert code == exits.OK and "mcpServers" in out and not list(Path().iterdir())


def test_the_entry_of_a_server_that_runs_names_the_token_and_does_not_hold_it(
    chalie: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHALIE_TOKEN", "chalie_mcp_secret")
    _, out, _ = chalie("mcp", "install", "--url", "http://127.0.0.1:8321/mcp")
    assert "chalie_mcp_secret" not in out + Path(".mcp.json").read_text(encoding="utf-8")
    assert entry(Path(".mcp.json"))["headers"] == {"Authorization": "Bearer ${CHALIE_TOKEN}"}
    assert chalie("mcp", "install", "--url", "http://x/mcp", "--channel", "chat")[0] == exits.USAGE


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--person-at-client",), "--channel chat"),
        (("--channel", "web_search"), "delegate"),
        (("--channel", "nowhere"), "there is no channel"),
        (("--allow-host", "x"), "--http"),
        (("--http", "127.0.0.1:0", "--principal", "ada"), "chalie tokens add"),
        (("--http", "8321"), "HOST:PORT"),
        (("--http", "127.0.0.1:0", "--channel", "web_search"), "delegate"),
    ],
)
def test_what_cannot_be_served_is_said_in_one_line(chalie: Run, words: tuple[str, ...], said: str) -> None:
    code, out, err = chalie("mcp", "serve", *words)
    assert code in (exits.USAGE, exits.SETUP) and said in err and not out
    assert "Traceback" not in err


@pytest.mark.parametrize("found", [None, "1.28.0", "3.0.0"])
def test_without_the_sdk_that_fits_there_is_one_clear_line(
    chalie: Run, monkeypatch: pytest.MonkeyPatch, found: str | None
) -> None:
    real = importlib.metadata.version

    def version(name: str) -> str:
        if name != "mcp":
            return real(name)
        if found is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return found

    monkeypatch.setattr(importlib.metadata, "version", version)
    code, out, err = chalie("mcp", "serve")
    assert code == exits.SETUP and not out and "[extra-missing]" in err
    assert 'python -m pip install "chalie[mcp]"' in err
    assert (found or "MCP needs the extra") in err
