"""Whole environments from the checkout's wheels, made once for all test processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from attrs import frozen
from filelock import FileLock

from tests.support import wheels as building
from tests.support.agent import Agent
from tests.support.terminal import Said, at_terminal


@frozen
class Program:
    """One installed `chalie` and the home it works on."""

    python: Path
    env: Mapping[str, str]

    def __call__(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a command as a program would: with nobody at a terminal."""
        return subprocess.run(
            [str(self.python.parent / "chalie"), *words],
            env={**self.env, **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            start_new_session=True,
            check=False,
        )

    def at_terminal(self, *words: str, answers: list[tuple[str, str]] | None = None, **more: str) -> Said:
        """Run a command as a person would."""
        return at_terminal(
            [str(self.python.parent / "chalie"), *words], answers=answers or [], env={**self.env, **more}
        )


@pytest.fixture(scope="session")
def with_pip(shared: Path, wheels: Path) -> Path:
    """The interpreter of an environment with pip and everything the checkout builds."""

    def make(folder: Path) -> None:
        names = ("chalie[standard]", "chalie-ability-weather")
        building.environment(folder, *names, find_links=wheels, pip=True)

    return _once(shared / "with-pip", make)


@pytest.fixture(scope="session")
def without_pip(shared: Path, wheels: Path) -> Path:
    """The interpreter of an environment without pip, as uv makes them, with the host alone."""

    def make(folder: Path) -> None:
        building.environment(folder, "chalie", find_links=wheels)

    return _once(shared / "without-pip", make)


@pytest.fixture(scope="session")
def watched(shared: Path, wheels: Path) -> Path:
    """The interpreter of an environment with the host, into which a person installs tools and a policy."""

    def make(folder: Path) -> None:
        building.environment(folder, "chalie[standard]", find_links=wheels, pip=True)

    return _once(shared / "watched", make)


def _once(folder: Path, make: Callable[[Path], None]) -> Path:
    with FileLock(f"{folder}.lock"):
        done = folder / ".complete"
        if not done.exists():
            make(folder)
            done.touch()
    return folder / "bin" / "python"


@pytest.fixture
def chalie(with_pip: Path, tmp_path: Path) -> Iterator[Program]:
    """The command line of the environment with everything, on a fresh home."""
    with using(with_pip):
        yield Program(with_pip, building.clean_environment(tmp_path / "home"))


def using(python: Path) -> FileLock:
    """Return what keeps other test processes out of an environment: a test may install into it."""
    return FileLock(f"{python.parents[1]}.lock")


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """An import folder that wheels are installed into."""
    folder = tmp_path / "target"
    folder.mkdir()
    return folder


@pytest.fixture
def agent(tmp_path: Path, target: Path) -> Callable[..., Agent]:
    """Start an agent on this environment's host, with the import folder on its path."""

    def start(*more: Path) -> Agent:
        paths = ":".join(str(path) for path in (target, *more))
        return Agent(sys.executable, building.clean_environment(tmp_path / "home", PYTHONPATH=paths))

    return start
