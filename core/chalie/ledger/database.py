"""One SQLite connection that threads share, and the words for everything that can go wrong with it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from ..errors import LedgerUnavailable

__all__ = ["BUSY_S", "Database"]

#: how long a statement waits for another process's write before it gives up, in seconds.
BUSY_S: Final = 10.0

#: pages of write-ahead log between checkpoints (16 MiB): a checkpoint syncs the disk, so not every few calls.
_CHECKPOINT_PAGES: Final = 16_000


class _Forked:
    """Stands in for a connection in a forked child, which must not touch its parent's."""

    def execute(self, *_: object) -> Any:
        raise sqlite3.ProgrammingError("it was opened before this process was forked; open it again here")

    def close(self) -> None:
        """Do nothing: the connection is the parent's."""


_open: Final[weakref.WeakSet[Database]] = weakref.WeakSet()
_inherited: Final[list[object]] = []  # never finalised: closing would act on the parent's locks and log


def _after_fork() -> None:
    for database in list(_open):
        database.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Database:
    """A connection in autocommit mode, used by one thread at a time.

    Args:
        path: an existing SQLite file.
        durable: sync the disk at every commit (FULL), so that it survives a loss of power; otherwise a
            commit survives the end of the process in any way (NORMAL with a write-ahead log).

    Raises:
        LedgerUnavailable: from every method, where SQLite cannot do what is asked.
    """

    def __init__(self, path: Path, *, durable: bool) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            self._connection: Any = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=rw",
                uri=True,
                timeout=BUSY_S,
                isolation_level=None,
                check_same_thread=False,
            )
            # before anything that could write: the settings that make a commit mean what is promised
            self._connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            self._connection.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT_PAGES}")
            self._connection.execute("PRAGMA journal_size_limit=67108864")
            self._marker: Any = self._connection.cursor()
            self._writer: Any = self._connection.cursor()
        except sqlite3.Error as error:
            raise self.refusal(error) from error
        _open.add(self)

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of one statement, which sees one state of the file."""
        with self._lock:
            try:
                return self._connection.execute(sql, values).fetchall()  # type: ignore[no-any-return]
            except sqlite3.Error as error:
                raise self.refusal(error) from error

    def value(self, sql: str) -> Any:
        """Return the first column of the statement's first row."""
        with self._lock:
            try:
                return self._connection.execute(sql).fetchone()[0]
            except sqlite3.Error as error:
                raise self.refusal(error) from error

    def mark(self) -> int:
        """Return a number that changes whenever another connection or process has written to the file."""
        with self._lock:
            try:  # asked for on every call: a cursor of its own saves a quarter of it
                return next(self._marker.execute("PRAGMA data_version"))[0]  # type: ignore[no-any-return]
            except sqlite3.Error as error:
                raise self.refusal(error) from error

    def write(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Run one statement as its own transaction; return the last row's id, 0 where none was changed."""
        with self._lock:
            try:
                done = self._writer.execute(sql, values)
                return done.lastrowid if done.rowcount else 0
            except sqlite3.Error as error:
                raise self.refusal(error) from error

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Give the connection for several statements that happen together or not at all."""
        with self._lock:
            try:
                # IMMEDIATE: a transaction that reads first and writes later could not wait for its turn
                self._connection.execute("BEGIN IMMEDIATE")
                try:
                    yield self._connection
                    self._connection.execute("COMMIT")
                except BaseException:
                    with contextlib.suppress(sqlite3.Error):  # SQLite may have rolled back by itself
                        self._connection.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise self.refusal(error) from error

    def close(self) -> None:
        """Close the connection; statements after that are refused."""
        with self._lock, contextlib.suppress(sqlite3.Error):
            self._connection.close()

    def abandon(self) -> None:
        """Let go of the connection without closing it, in a forked child."""
        _inherited.append((self._connection, self._marker, self._writer))
        self._connection = self._marker = self._writer = _Forked()
        self._lock = threading.Lock()  # the parent's may have been held at the moment of the fork

    def refusal(self, error: sqlite3.Error) -> LedgerUnavailable:
        """Return what an SQLite error means for its reader."""
        return refusal(self.path, error)


def refusal(path: Path, error: sqlite3.Error) -> LedgerUnavailable:
    """Return what an SQLite error of this file means for its reader."""
    kind = getattr(error, "sqlite_errorname", "") or ""
    if kind.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return LedgerUnavailable(
            f"the ledger {path} is damaged ({error}); nothing was written to it",
            hint=f"restore it from a backup, or move {path}* out of {path.parent} to begin with an empty one",
        )
    if kind.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return LedgerUnavailable(
            f"the ledger {path} was kept locked by another process for {BUSY_S:g} s",
            hint=f"try again; a process that hangs can be found with: fuser {path}",
        )
    if kind == "SQLITE_FULL":
        return LedgerUnavailable(
            f"the ledger {path} cannot be written: the disk is full", hint=f"free space for {path.parent}"
        )
    if kind.startswith("SQLITE_IOERR"):
        return LedgerUnavailable(
            f"the ledger {path} cannot be read or written: {error} ({kind})",
            hint=f"look at the space, quota and health of the disk that holds {path.parent}",
        )
    if kind.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return LedgerUnavailable(
            f"the ledger {path} cannot be written: {error}",
            hint=f"make {path.parent} and the files in it writable for this account, or set CHALIE_HOME",
        )
    return LedgerUnavailable(f"the ledger {path} cannot be used: {error}")
