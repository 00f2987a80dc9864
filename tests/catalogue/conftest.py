"""Fixtures of the catalogue's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from .places import Place, place_in


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A place with nothing installed."""
    return place_in(tmp_path, monkeypatch)
