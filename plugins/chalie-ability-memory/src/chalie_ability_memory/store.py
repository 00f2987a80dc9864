"""The SQLite file memories are kept in. One file for the home, one set of rows per principal.

Every call opens it afresh, so any number of processes and threads may use it at once; a writer waits
its turn. Statements on memories live here and nowhere else.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from attrs import frozen

__all__ = ["Full", "Memory", "Store", "Unusable"]

#: seconds a writer waits for the others.
_WAIT_S: Final = 10.0
#: memories of one principal. A recall looks at all of them, so the number has to have an end.
_MOST: Final = 10_000
_VERSION: Final = 1
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS memories (
    principal TEXT NOT NULL,
    id TEXT NOT NULL,
    text TEXT NOT NULL,
    location TEXT NOT NULL,
    stored_at TEXT NOT NULL,
    digest BLOB NOT NULL,
    model TEXT NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (principal, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS memories_digest ON memories (principal, digest);
"""


class Unusable(Exception):
    """The file cannot be read or written; the text says why."""


class Full(Exception):
    """The principal has as many memories as there may be."""


@frozen
class Memory:
    """One memory.

    Attributes:
        id: what it is forgotten by.
        text: what is remembered.
        location: the place it belongs to, or empty.
        stored_at: UTC, ISO 8601.
        model: which embedding model `vector` is of; empty where there is no vector.
        vector: float32 values in the machine's byte order.
    """

    id: str
    text: str
    location: str
    stored_at: str
    model: str = ""
    vector: bytes = b""


class Store:
    """The memories of one principal.

    Args:
        file: the SQLite file; made when missing, readable by the account alone.
        principal: whose memories; no method reaches another's.
    """

    def __init__(self, file: Path, principal: str) -> None:
        self._file = file
        self._principal = _clean(principal)

    def add(self, text: str, location: str, model: str, vector: bytes) -> tuple[Memory, bool]:
        """Store a memory.

        Returns:
            (the memory, whether it is new): the same text for the same place is kept once.

        Raises:
            Full: there are too many.
            Unusable: the file cannot be used.
        """
        text, location = _clean(text), _clean(location)
        digest = hashlib.sha256(f"{text.casefold()}\0{location.casefold()}".encode()).digest()
        with self._writing() as connection:
            row = connection.execute(
                f"SELECT {_COLUMNS} FROM memories WHERE principal = ? AND digest = ?",
                (self._principal, digest),
            ).fetchone()
            if row is not None:
                return Memory(*row), False
            query = "SELECT count(*) FROM memories WHERE principal = ?"
            if connection.execute(query, (self._principal,)).fetchone()[0] >= _MOST:
                raise Full(f"{_MOST} memories are kept already")
            memory = Memory(_new_id(connection, self._principal), text, location, _now(), model, vector)
            values = (memory.id, text, location, memory.stored_at, model, vector)
            connection.execute(
                f"INSERT INTO memories (principal, digest, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (self._principal, digest, *values),
            )
            return memory, True

    def all(self) -> list[Memory]:
        """Return every memory, the newest first. Raises `Unusable`."""
        with self._open() as connection:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM memories WHERE principal = ? ORDER BY stored_at DESC, id",
                (self._principal,),
            )
            return [Memory(*row) for row in rows]

    def set_vectors(self, vectors: Iterable[tuple[str, str, bytes]]) -> None:
        """Replace vectors, given as (id, model, vector). Raises `Unusable`."""
        with self._writing() as connection:
            connection.executemany(
                "UPDATE memories SET model = ?, vector = ? WHERE principal = ? AND id = ?",
                [(model, vector, self._principal, id) for id, model, vector in vectors],
            )

    def remove(self, id: str) -> Memory | None:
        """Erase one memory, also from the file's free pages; None where there is none. Raises `Unusable`."""
        with self._writing() as connection:
            row = connection.execute(
                f"DELETE FROM memories WHERE principal = ? AND id = ? RETURNING {_COLUMNS}",
                (self._principal, _clean(id)),
            ).fetchone()
        if row is None:
            return None
        # What is forgotten should not stay readable in the log either; a busy log is emptied later.
        with contextlib.suppress(Unusable), self._open() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return Memory(*row)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._open() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with contextlib.closing(self._connected()) as connection:
                yield connection
        except (sqlite3.Error, OSError) as error:
            raise Unusable(f"{self._file}: {' '.join(str(error).split())}") from error

    def _connected(self) -> sqlite3.Connection:
        # Made here and not by SQLite, so that there is no moment in which others could open it.
        os.close(os.open(self._file, os.O_RDWR | os.O_CREAT, 0o600))
        connection = sqlite3.connect(self._file, timeout=_WAIT_S, isolation_level=None)
        try:
            connection.execute("PRAGMA secure_delete = ON")
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version > _VERSION:
                raise Unusable(f"{self._file} was written by a newer chalie-ability-memory; upgrade this one")
            if version < _VERSION:
                _made(connection)
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
        return connection


_COLUMNS: Final = "id, text, location, stored_at, model, vector"


def _made(connection: sqlite3.Connection) -> None:
    """Make the tables, while other processes may be doing the same."""
    deadline = time.monotonic() + _WAIT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError:
            # Changing the journal does not wait for its turn as writing does.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    connection.execute("BEGIN IMMEDIATE")
    for statement in _SCHEMA.split(";"):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {_VERSION}")
    connection.execute("COMMIT")


def _new_id(connection: sqlite3.Connection, principal: str) -> str:
    while True:
        id = f"m-{secrets.token_hex(4)}"
        taken = "SELECT 1 FROM memories WHERE principal = ? AND id = ?"
        if connection.execute(taken, (principal, id)).fetchone() is None:
            return id


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _clean(text: str) -> str:
    """Return text that SQLite can hold: a lone surrogate is written out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def texts(memories: Sequence[Memory]) -> list[str]:
    """Return what of each memory is embedded: its place is part of what it means."""
    return [f"{memory.text} ({memory.location})" if memory.location else memory.text for memory in memories]
