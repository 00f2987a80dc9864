"""Marks of what was handed out to be brought back once: whoever brings it first uses it up."""

from __future__ import annotations

from collections.abc import Callable

from .database import Database

__all__ = ["Seals"]


class Seals:
    """The marks that were brought back and are not good any more.

    Args:
        durable: gives the connection whose commits survive a loss of power.
        clock: the time in seconds since 1970.
    """

    def __init__(self, durable: Callable[[], Database], clock: Callable[[], float]) -> None:
        self._durable = durable
        self._clock = clock

    def use(self, mark: str, expires_at: float) -> bool:
        """Use a mark up; return whether it was unused and in time.

        Args:
            mark: random, as it was handed out.
            expires_at: seconds since 1970 until which it is good; it is remembered as long.
        """
        now = self._clock()
        if expires_at <= now:
            return False
        with self._durable().transaction() as connection:
            connection.execute("DELETE FROM seals WHERE expires_at <= ?", (now,))
            added = connection.execute("INSERT OR IGNORE INTO seals VALUES (?, ?)", (mark, expires_at))
            return added.rowcount == 1
