"""Fixtures of the dispatcher's tests."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .inside import Inside


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Inside]]:
    """Open insides with limits of the test's choosing; all are closed at its end."""
    made: list[Inside] = []

    def make(**limits: Any) -> Inside:
        made.append(Inside(tmp_path / f"inside-{len(made)}", **limits))
        return made[-1]

    yield make
    for inside in made:
        inside.close()


@pytest.fixture
def inside(opened: Callable[..., Inside]) -> Inside:
    """An inside with the default limits."""
    return opened()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Any]:
    """Write a module into an import folder and import it: what a worker process can import too."""
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))

    def write(name: str, source: str) -> Any:
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
        monkeypatch.delitem(sys.modules, name, raising=False)
        return __import__(name)

    return write


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """An event that hanging abilities wait for; raised at the test's end, so that no thread outlives it."""
    over = threading.Event()
    yield over
    over.set()
