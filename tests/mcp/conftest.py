"""Homes to serve from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .served import Here, Served, here, prepare


@pytest.fixture(scope="session")
def read_once(tmp_path_factory: pytest.TempPathFactory) -> Served:
    """Tools and a home that has read them, for others to copy."""
    return prepare(tmp_path_factory.mktemp("served"))


@pytest.fixture
def served(read_once: Served, home: Path, monkeypatch: pytest.MonkeyPatch) -> Served:
    """The tools on this process's path, and the home CHALIE_HOME points at."""
    monkeypatch.syspath_prepend(str(read_once.site))
    return read_once.copied(home)


@pytest.fixture
def server(served: Served) -> Iterator[Here]:
    """A server in this process, for one client on a pipe."""
    with here(served) as found:
        yield found
