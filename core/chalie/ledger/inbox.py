"""What waits to be read in a conversation: the results of calls that ran in the background."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from attrs import frozen

from .database import Database

__all__ = ["Inbox", "Message", "put"]

_WAITING: Final = (
    "SELECT id, conversation, call_id, text, delivered_at FROM inbox "
    "WHERE principal IS ? AND conversation IS ? AND taken_at IS NULL ORDER BY id"
)


@frozen
class Message:
    """One delivered text: of which call, for which conversation, and when."""

    id: int
    conversation: str | None
    call_id: str
    text: str
    at: datetime


class Inbox:
    """Messages by principal and conversation; each is taken once, by whoever takes it first.

    A conversation's id is the program's own and may be used for two people, or be none at all: what was done
    on behalf of one is not for another.

    Args:
        fast: the connection for reading.
        durable: gives the connection whose commits survive a loss of power.
        clock: the time in seconds since 1970.
    """

    def __init__(self, fast: Database, durable: Callable[[], Database], clock: Callable[[], float]) -> None:
        self._fast = fast
        self._durable = durable
        self._clock = clock

    def deliver(self, principal: str | None, conversation: str | None, call_id: str, text: str) -> int:
        """Put a text into the inbox of a principal's conversation and return its id."""
        with self._durable().transaction() as connection:
            return put(connection, principal, conversation, call_id, text, self._clock())

    def take(self, principal: str | None, conversation: str | None) -> tuple[Message, ...]:
        """Return what waits in a principal's conversation, oldest first, and mark it taken."""
        if not self._fast.read(f"{_WAITING} LIMIT 1", (principal, conversation)):
            return ()  # the usual case costs no write
        with self._durable().transaction() as connection:
            rows = connection.execute(_WAITING, (principal, conversation)).fetchall()
            connection.executemany(
                "UPDATE inbox SET taken_at = ? WHERE id = ?", [(self._clock(), row[0]) for row in rows]
            )
        return tuple(map(_message, rows))

    def peek(self, principal: str | None, conversation: str | None) -> tuple[Message, ...]:
        """Return what waits in a principal's conversation, oldest first, and leave it there."""
        return tuple(map(_message, self._fast.read(_WAITING, (principal, conversation))))

    def of_call(self, principal: str | None, call_id: str) -> str | None:
        """Return what was delivered for one call, taken before or not, marking it taken; None for nothing."""
        rows = self._fast.read(
            "SELECT id, conversation, call_id, text, delivered_at FROM inbox "
            "WHERE principal IS ? AND call_id = ? ORDER BY id DESC LIMIT 1",
            (principal, call_id),
        )
        if not rows:
            return None
        self._fast.write(
            "UPDATE inbox SET taken_at = ? WHERE id = ? AND taken_at IS NULL", (self._clock(), rows[0][0])
        )
        return _message(rows[0]).text

    def forget(self, waiting_before: float, taken_before: float) -> int:
        """Delete messages that wait since before one moment or were taken before the other; count them."""
        with self._fast.transaction() as connection:
            return connection.execute(
                "DELETE FROM inbox WHERE taken_at < ? OR (taken_at IS NULL AND delivered_at < ?)",
                (taken_before, waiting_before),
            ).rowcount


def put(
    connection: sqlite3.Connection,
    principal: str | None,
    conversation: str | None,
    call_id: str,
    text: str,
    now: float,
) -> int:
    """Deliver a text inside a transaction of the durable connection; return its id."""
    cursor = connection.execute(
        "INSERT INTO inbox (principal, conversation, call_id, text, delivered_at) VALUES (?, ?, ?, ?, ?)",
        (principal, conversation, call_id, text.encode("utf-8", "surrogatepass"), now),
    )
    return int(cursor.lastrowid or 0)


def _message(row: Any) -> Message:
    text = bytes(row[3]).decode("utf-8", "surrogatepass")
    return Message(row[0], row[1], row[2], text, datetime.fromtimestamp(row[4], UTC))
