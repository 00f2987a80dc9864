"""A ledger per test, and real processes that work on it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from chalie.ledger import Ledger

Start = Callable[..., "subprocess.Popen[str]"]


class Clock:
    """A clock that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path: Path, clock: Clock) -> Iterator[Ledger]:
    with Ledger.open(path, clock=clock) as opened:
        yield opened


@pytest.fixture
def start() -> Iterator[Start]:
    """Start Python on a piece of code; `sys`, `Path` and `Ledger` are imported."""
    running: list[subprocess.Popen[str]] = []

    def start(code: str, *arguments: object) -> subprocess.Popen[str]:
        head = "import os, sys\nfrom pathlib import Path\nfrom chalie.ledger import Ledger\n"
        process = subprocess.Popen(
            [sys.executable, "-c", head + dedent(code), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()
