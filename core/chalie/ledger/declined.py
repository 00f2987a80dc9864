"""Calls that a person declined: the same one is refused at once until the person clears it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from attrs import frozen

from .database import Database
from .trail import record

__all__ = ["Declined", "DeclinedRow"]


@frozen
class DeclinedRow:
    """A declined call: whose, in which conversation or turn, by which hold, by whom and when."""

    principal: str
    scope: str
    hold: str
    permission: str
    by: str
    at: datetime


class Declined:
    """Declined calls by principal, conversation and the digest of the call; written with the hold's answer.

    Args:
        fast: the connection for reading.
        durable: gives the connection whose commits survive a loss of power.
        clock: the time in seconds since 1970.
    """

    def __init__(self, fast: Database, durable: Callable[[], Database], clock: Callable[[], float]) -> None:
        self._fast = fast
        self._durable = durable
        self._clock = clock

    def get(self, principal: str, scope: str, digest: str) -> DeclinedRow | None:
        """Return the decline of exactly this call, or None."""
        rows = self._fast.read(
            "SELECT principal, scope, hold, permission, by, at FROM declined "
            "WHERE principal = ? AND scope = ? AND digest = ?",
            (_text(principal), _text(scope), digest),
        )
        return _row(rows[0]) if rows else None

    def list(self) -> tuple[DeclinedRow, ...]:
        """Return every decline that still stands, newest first."""
        rows = self._fast.read(
            "SELECT principal, scope, hold, permission, by, at FROM declined ORDER BY at DESC"
        )
        return tuple(map(_row, rows))

    def clear(self, hold_id: str, *, by: str) -> bool:
        """Forget the decline of a hold, so that its call may be asked again; return whether there was one."""
        now = self._clock()
        with self._durable().transaction() as connection:
            row = connection.execute(
                "SELECT principal, permission FROM declined WHERE hold = ?", (hold_id,)
            ).fetchone()
            if row is None:
                return False
            connection.execute("DELETE FROM declined WHERE hold = ?", (hold_id,))
            record(
                connection,
                now,
                "approval.cleared",
                principal=row[0],
                permission=row[1],
                detail=f'{{"hold": "{hold_id}"}}',
                by=by,
            )
        return True


def _row(row: Any) -> DeclinedRow:
    return DeclinedRow(row[0], row[1], row[2], row[3], row[4], datetime.fromtimestamp(row[5], UTC))


def _text(value: str) -> str:
    return value.encode("utf-8", "backslashreplace").decode("utf-8")
