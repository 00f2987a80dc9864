"""What a person's allow was given to: an ability's descriptor and its package's files, as they were then."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from attrs import field, frozen

from .database import Database

__all__ = ["Pin", "PinRow", "Pins", "pin"]

_ADD: Final = "INSERT OR IGNORE INTO pins VALUES (?, ?, ?, ?, ?, ?, ?, ?)"


@frozen
class Pin:
    """An ability as a person judged it.

    Attributes:
        dist, name: whose it is.
        descriptor_hash: over its facts.
        files_hash: over its package's files; empty where it has none, as a server's tool.
        version: the package's, for people.
        facts: the descriptor's facts, so that a later difference can be shown.
    """

    dist: str
    name: str
    descriptor_hash: str
    files_hash: str
    version: str
    facts: Mapping[str, Any] = field(hash=False)


@frozen
class PinRow:
    """A pin, who made it by allowing, and when."""

    pin: Pin
    by: str
    at: datetime


class Pins:
    """Pins stand side by side, one per state of an ability that a person has allowed.

    Args:
        fast: the connection for reading.
        durable: gives the connection whose commits survive a loss of power.
        clock: the time in seconds since 1970.
    """

    def __init__(self, fast: Database, durable: Callable[[], Database], clock: Callable[[], float]) -> None:
        self._fast = fast
        self._durable = durable
        self._clock = clock

    def add(self, pin_: Pin, *, by: str) -> None:
        """Pin an ability as it is now."""
        now = self._clock()
        with self._durable().transaction() as connection:
            pin(connection, pin_, by, now)

    def of(self, dist: str, name: str) -> tuple[PinRow, ...]:
        """Return an ability's pins, newest first."""
        rows = self._fast.read(
            "SELECT dist, name, descriptor_hash, files_hash, version, facts, by, at FROM pins "
            "WHERE dist = ? AND name = ? ORDER BY at DESC",
            (dist, name),
        )
        return tuple(map(_row, rows))

    def list(self) -> tuple[PinRow, ...]:
        """Return every pin, in order of package and name, newest first."""
        rows = self._fast.read(
            "SELECT dist, name, descriptor_hash, files_hash, version, facts, by, at FROM pins "
            "ORDER BY dist, name, at DESC"
        )
        return tuple(map(_row, rows))


def pin(connection: sqlite3.Connection, what: Pin, by: str, at: float) -> None:
    """Pin an ability inside the transaction of the setting that allows it."""
    facts = json.dumps(dict(what.facts), ensure_ascii=False, default=list).encode("utf-8", "surrogatepass")
    connection.execute(
        _ADD, (what.dist, what.name, what.descriptor_hash, what.files_hash, what.version, facts, by, at)
    )


def _row(row: Any) -> PinRow:
    facts = json.loads(bytes(row[5]).decode("utf-8", "surrogatepass"))
    pinned = Pin(row[0], row[1], row[2], row[3], row[4], facts)
    return PinRow(pinned, row[6], datetime.fromtimestamp(row[7], UTC))
