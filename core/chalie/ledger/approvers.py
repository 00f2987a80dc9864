"""The tokens that let a program answer for the owner."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from attrs import frozen

from .database import Database
from .trail import record

__all__ = ["OWN_APPROVER", "ApproverRow", "Approvers"]

#: the label of the token that the process which makes a home holds while it is open.
OWN_APPROVER: Final = "the process that made the home"


@frozen
class ApproverRow:
    """An approver token's label, who made it, and when; the token itself is not kept."""

    label: str
    by: str
    at: datetime


class Approvers:
    """Tokens, kept only as their SHA-256: they are random, so no slower hash is needed.

    Args:
        fast: the connection for reading.
        durable: gives the connection whose commits survive a loss of power.
        clock: the time in seconds since 1970.
    """

    def __init__(self, fast: Database, durable: Callable[[], Database], clock: Callable[[], float]) -> None:
        self._fast = fast
        self._durable = durable
        self._clock = clock

    def add(self, label: str, *, by: str = "host") -> str:
        """Make a token and return it; this is the only time it can be seen.

        Args:
            label: a short name for it, shown wherever it decided something.
            by: who made it.

        Raises:
            ValueError: the label is taken, empty, longer than 64 characters or not printable.
        """
        if not label.strip() or len(label) > 64 or not label.isprintable():
            raise ValueError(f"a label is 1 to 64 printable characters, not {label!r}")
        import secrets

        token = f"chalie_{secrets.token_urlsafe(32)}"
        now = self._clock()
        with self._durable().transaction() as connection:
            if connection.execute("SELECT 1 FROM approvers WHERE label = ?", (label,)).fetchone():
                raise ValueError(
                    f"there is an approver {label!r} already; remove it first or choose another label"
                )
            connection.execute("INSERT INTO approvers VALUES (?, ?, ?, ?)", (label, _digest(token), by, now))
            record(connection, now, "approver.added", detail=label, by=by)
        return token

    def check(self, token: str) -> str | None:
        """Return the label of a token, or None where there is no such token."""
        rows = self._fast.read("SELECT label FROM approvers WHERE token_hash = ?", (_digest(token),))
        return rows[0][0] if rows else None

    def list(self) -> tuple[ApproverRow, ...]:
        """Return the approvers in order of their labels."""
        rows = self._fast.read("SELECT label, by, at FROM approvers ORDER BY label")
        return tuple(ApproverRow(row[0], row[1], datetime.fromtimestamp(row[2], UTC)) for row in rows)

    def remove(self, label: str, *, by: str = "host") -> bool:
        """Take a token back; return whether there was one of that label."""
        now = self._clock()
        with self._durable().transaction() as connection:
            found = connection.execute("DELETE FROM approvers WHERE label = ?", (label,)).rowcount
            if found:
                record(connection, now, "approver.removed", detail=label, by=by)
        return bool(found)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
