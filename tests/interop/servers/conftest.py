"""Servers that others wrote: fetched once, started with files of their own, and read by a host."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from chalie import Host

from tests.mcp.reaching import hosted

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "build" / "interop-servers"
#: one version each, moved on purpose.
NPM = {
    "@modelcontextprotocol/server-everything": "2026.8.31",
    "@modelcontextprotocol/server-filesystem": "2026.8.31",
    "@modelcontextprotocol/server-memory": "2026.8.31",
}
PYTHON = {
    "time": "mcp-server-time==2026.10.19",
    "git": "mcp-server-git==2026.10.19",
    "fastmcp": "fastmcp>=4,<5",
}


def fetched(folder: Path, wanted: object, *commands: list[str]) -> None:
    """Run the commands that fetch what is wanted into a folder, unless it is there."""
    done = folder / ".complete"
    text = json.dumps(wanted)
    if done.exists() and done.read_text(encoding="utf-8") == text:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps({"private": True}), encoding="utf-8")
    for command in commands:
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, f"{' '.join(command)} failed:\n{ran.stdout}{ran.stderr}"
    done.write_text(text, encoding="utf-8")


def program(name: str) -> str:
    """Return a program's path; without it nothing here can run."""
    found = shutil.which(name)
    assert found is not None, f"these tests need {name} on the path"
    return found


@pytest.fixture(scope="session")
def node() -> Path:
    """The folder of the servers that npm has."""
    folder = FOLDER / "npm"
    packages = [f"{name}@{version}" for name, version in NPM.items()]
    install = [program("npm"), "install", "--no-audit", "--no-fund", "--no-package-lock", *packages]
    program("node")
    fetched(folder, NPM, install)
    return folder / "node_modules" / ".bin"


@pytest.fixture(scope="session")
def python() -> Callable[[str], Path]:
    """Return the `bin` folder of an environment that holds one server of the Python index."""

    def environment(name: str) -> Path:
        folder = FOLDER / name
        found = folder / "environment" / "bin"
        make = [sys.executable, "-m", "venv", str(folder / "environment")]
        install = [str(found / "python"), "-m", "pip", "install", "-q", PYTHON[name]]
        if shutil.which("uv"):
            make = ["uv", "venv", "-q", "--python", sys.executable, str(folder / "environment")]
            install = ["uv", "pip", "install", "-q", "--python", str(found / "python"), PYTHON[name]]
        fetched(folder, PYTHON[name], make, install)
        return found

    return environment


@pytest.fixture(scope="session")
def entries(
    node: Path, python: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, dict[str, Any]]:
    """Every server's entry, by the name it gets here."""
    git = program("git")
    files = tmp_path_factory.mktemp("files")
    (files / "note.txt").write_text("milk and bread\n")
    (files / "dot.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    repository = tmp_path_factory.mktemp("repository")
    (repository / "a.txt").write_text("one\n")
    for words in ("init -q -b main", "config user.name Ada", "config user.email ada@example.org", "add ."):
        subprocess.run([git, "-C", str(repository), *words.split()], check=True)
    subprocess.run([git, "-C", str(repository), "commit", "-q", "-m", "Begin"], check=True)
    (repository / "a.txt").write_text("two\n")
    memory = {"MEMORY_FILE_PATH": str(files.parent / "memory.jsonl")}
    return {
        "everything": {"command": str(node / "mcp-server-everything"), "env": {"PATH": os.environ["PATH"]}},
        "files": {"command": str(node / "mcp-server-filesystem"), "args": [str(files)], "cwd": str(files)},
        "memory": {"command": str(node / "mcp-server-memory"), "env": memory},
        "time": {"command": str(python("time") / "mcp-server-time")},
        "git": {"command": str(python("git") / "mcp-server-git"), "args": ["--repository", str(repository)]},
        "many": {
            "command": str(python("fastmcp") / "python"),
            "args": [str(Path(__file__).with_name("many.py"))],
        },
    }


@pytest.fixture(scope="session")
def everyone(
    entries: Mapping[str, dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Host]:
    """A host that has read all of them and may call all of their tools."""
    with hosted(tmp_path_factory.mktemp("everyone") / "home", **entries) as host:
        yield host
