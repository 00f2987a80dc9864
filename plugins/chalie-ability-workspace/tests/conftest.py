"""A workspace with everything a bypass needs, beside a folder that must stay out of reach."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chalie import Ability, ToolResult
from hypothesis import HealthCheck, settings

# The abilities are tested from their source; they are installed only where a test is about installing.
sys.path.append(str(Path(__file__).parents[1] / "src"))
sys.path.append(str(Path(__file__).parent))

settings.register_profile(
    "workspace", deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
settings.load_profile("workspace")

Call = Callable[..., ToolResult]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The workspace's one folder; `outside` beside it holds what may not be reached."""
    root, outside = tmp_path / "work", tmp_path / "outside"
    for folder in (root / "src", root / ".git" / "hooks", outside, tmp_path / "home"):
        folder.mkdir(parents=True)
    (outside / "far.txt").write_text("CANARY\n")
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    (root / "src" / "main.py").write_text("print('hello')\n")
    (root / ".env").write_text("KEY=CANARY\n")
    (root / ".git" / "config").write_text("[core]\n")
    (root / "out").symlink_to(outside)
    (root / "out.txt").symlink_to(outside / "far.txt")
    (root / "dangling").symlink_to(outside / "new.txt")
    (root / "inner").symlink_to("src")
    monkeypatch.setenv("CHALIE_WORKSPACE_ROOTS", str(root))
    monkeypatch.setenv("CHALIE_HOME", str(tmp_path / "home"))
    return root


class Bound:
    """The context of a call, as far as these abilities look at it."""

    def __init__(self, folder: Path, principal: str | None = None) -> None:
        self.principal = principal or getpass.getuser()
        self.conversation: str | None = "talk"
        self.channel = "chat"
        self.client: dict[str, Any] = {}
        self.data_folder = folder
        self.cancelled = False


@pytest.fixture
def bound(tmp_path: Path) -> Bound:
    folder = tmp_path / "data"
    folder.mkdir()
    return Bound(folder)


@pytest.fixture
def call(work: Path, bound: Bound) -> Call:
    """Run an ability: `call(Read, path="a.txt")`."""

    def run(cls: type[Ability], context: Any = None, **params: Any) -> ToolResult:
        result = cls().bind(context or bound).run(params)
        assert isinstance(result, ToolResult)
        return result

    return run
