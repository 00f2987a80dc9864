"""Abilities that do what a test sets, and an event that hanging ones wait for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .inside import Plain


class Doing(Plain):
    """Does what the test sets."""

    called = "doing"
    do: Any = None

    def run(self, params: Any) -> Any:
        return type(self).do()


class DoingAsync(Plain):
    called = "doing_async"
    do: Any = None

    async def run(self, params: Any) -> Any:
        return await type(self).do()


def doing(monkeypatch: pytest.MonkeyPatch, do: Callable[[], Any]) -> type[Doing]:
    monkeypatch.setattr(Doing, "do", staticmethod(do))
    return Doing


def doing_async(monkeypatch: pytest.MonkeyPatch, do: Callable[[], Any]) -> type[DoingAsync]:
    monkeypatch.setattr(DoingAsync, "do", staticmethod(do))
    return DoingAsync
