"""Which permission was used when, by whom, for as long as a rule asks about it."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

__all__ = ["Counter"]


class Counter:
    """Calls of this process, the oldest forgotten. Safe from any thread.

    Args:
        seconds: how far back anybody asks.
        clock: seconds that never go back.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._calls: dict[str, deque[tuple[float, str]]] = {}

    def add(self, permission: str, principal: str) -> None:
        """Note a call that ran now."""
        now = self._clock()
        with self._lock:
            calls = self._calls.setdefault(permission, deque())
            calls.append((now, principal))
            while calls and calls[0][0] <= now - self._seconds:
                calls.popleft()

    def used(self, permission: str, principal: str | None, seconds: float) -> int:
        """Return how many calls of a permission ran in the last seconds.

        Args:
            principal: only this one's; everybody's where it is None.
        """
        since = self._clock() - seconds
        with self._lock:
            return sum(
                at > since and principal in (None, whose) for at, whose in self._calls.get(permission, ())
            )
