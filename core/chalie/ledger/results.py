"""Whole results that were too long to show, kept for a while under a handle."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from typing import NamedTuple

from .database import Database

__all__ = ["KeptResult", "Results"]


class KeptResult(NamedTuple):
    """A kept body, its SHA-256 (hex) and its size in bytes of UTF-8."""

    body: str
    sha256: str
    size: int


class Results:
    """Kept bodies; only the principal whose call made one can have it.

    Args:
        fast: the connection for reading.
        durable: gives the connection whose commits survive a loss of power.
        clock: the time in seconds since 1970.
        keep_s: seconds that a body is kept.
    """

    def __init__(
        self,
        fast: Database,
        durable: Callable[[], Database],
        clock: Callable[[], float],
        keep_s: float,
    ) -> None:
        self._fast = fast
        self._durable = durable
        self._clock = clock
        self._keep_s = keep_s

    def put(self, principal: str, body: str) -> str:
        """Keep a body and return its id, which cannot be guessed."""
        data = body.encode("utf-8", "surrogatepass")
        result_id = os.urandom(8).hex()
        now = self._clock()
        self._durable().write(
            "INSERT INTO results (id, principal, body, size, sha256, at, expires_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                result_id,
                principal,
                data,
                len(data),
                hashlib.sha256(data).hexdigest(),
                now,
                now + self._keep_s,
            ),
        )
        return result_id

    def get(self, principal: str, result_id: str) -> KeptResult | None:
        """Return a kept body, or None where there is none of that id for this principal any more."""
        rows = self._fast.read(
            "SELECT body, sha256, size FROM results WHERE id = ? AND principal = ? AND expires_at > ?",
            (result_id, principal, self._clock()),
        )
        if not rows:
            return None
        body, sha256, size = rows[0]
        return KeptResult(bytes(body).decode("utf-8", "surrogatepass"), sha256, size)

    def facts(self, principal: str, result_id: str) -> tuple[str, int] | None:
        """Return the SHA-256 (hex) and the size in bytes of a kept body without reading it, or None."""
        rows = self._fast.read(
            "SELECT sha256, size FROM results WHERE id = ? AND principal = ? AND expires_at > ?",
            (result_id, principal, self._clock()),
        )
        return (rows[0][0], rows[0][1]) if rows else None

    def expire(self, now: float | None = None) -> int:
        """Delete the bodies whose time is over; return how many."""
        moment = self._clock() if now is None else now
        with self._fast.transaction() as connection:
            return connection.execute("DELETE FROM results WHERE expires_at <= ?", (moment,)).rowcount
