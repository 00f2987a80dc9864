"""What these tests need: npm, node, and two packages of the protocol's own makers, fetched once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import frozen

from tests.mcp.served import Running, Served, prepare, running

ROOT = Path(__file__).resolve().parents[3]
#: one version each, moved on purpose; node 22 comes along where the machine's own is older.
PACKAGES = {
    "@modelcontextprotocol/inspector": "2.12.0",
    "@modelcontextprotocol/conformance": "0.1.16",
    "node": "22.23.3",
}


@frozen
class Node:
    """Programs of npm packages."""

    folder: Path

    def run(self, package: str, *words: str, seconds: float = 180) -> subprocess.CompletedProcess[str]:
        """Run a package's program to its end."""
        facts = json.loads((self.folder / "node_modules" / package / "package.json").read_text())
        script = self.folder / "node_modules" / package / next(iter(facts["bin"].values()))
        node = self.folder / "node_modules" / "node" / "bin" / "node"
        return subprocess.run(
            [str(node), str(script), *words],
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            cwd=self.folder,
            env={**os.environ, "HOME": str(self.folder), "NO_COLOR": "1"},
        )


@pytest.fixture(scope="session")
def node() -> Node:
    npm = shutil.which("npm")
    assert npm is not None, "these tests need npm on the path: install Node.js"
    folder = ROOT / "build" / "interop-clients"
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {"private": True, "dependencies": PACKAGES}
    listed = folder / "package.json"
    done = folder / "node_modules" / ".complete"
    if not done.exists() or json.loads(listed.read_text(encoding="utf-8")) != wanted:
        listed.write_text(json.dumps(wanted), encoding="utf-8")
        words = [npm, "install", "--no-audit", "--no-fund", "--no-package-lock"]
        ran = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, f"npm could not fetch {list(PACKAGES)}:\n{ran.stderr}"
        done.touch()
    return Node(folder)


@pytest.fixture(scope="session")
def read_once(tmp_path_factory: pytest.TempPathFactory) -> Served:
    return prepare(tmp_path_factory.mktemp("served"))


@pytest.fixture
def served(read_once: Served, home: Path) -> Served:
    return read_once.copied(home)


@pytest.fixture(scope="session")
def door(read_once: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server by HTTP, whose clients' persons may be asked."""
    with running(read_once.copied(tmp_path_factory.mktemp("http") / "home"), "--person-at-client") as found:
        yield found
