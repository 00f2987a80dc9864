"""The ledger as a whole: opening, migrating, retention and closing."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final

from ..config import Retention
from ..errors import LedgerUnavailable
from .approvers import Approvers
from .database import BUSY_S, Database, refusal
from .declined import Declined
from .enabled import Enabled
from .holds import Holds
from .inbox import Inbox
from .jobs import Jobs
from .migrations import APPLICATION_ID, MIGRATIONS, migrate
from .permissions import Permissions
from .pins import Pins
from .presence import Presence
from .results import Results
from .seals import Seals
from .secrets import Secrets
from .tokens import Tokens
from .trail import Trail, record

__all__ = ["Ledger"]

_DAY_S: Final = 86_400.0


class Ledger:
    """The SQLite store of a home, shared by its threads and by other processes.

    Two connections: one that syncs the disk at every commit, for what people decided and what is kept
    (opened when first needed), and one that leaves this to the system, for the trail of calls.

    Attributes:
        permissions, pins, holds, declined, trail, jobs, inbox, results, enabled, approvers, tokens, seals:
            the tables, each with its statements.
        created: whether this very `open` made the ledger, so that nobody was there before.
    """

    def __init__(
        self, path: Path, fast: Database, retention: Retention, clock: Callable[[], float], created: bool
    ) -> None:
        self.path = path
        self.created = created
        self._retention = retention
        self._clock = clock
        self._fast = fast
        self._durable: Database | None = None
        self._opening = threading.Lock()
        self.trail = Trail(fast, clock)
        self.permissions = Permissions(fast, self._durably, clock)
        self.enabled = Enabled(fast, self._durably, clock)
        self.approvers = Approvers(fast, self._durably, clock)
        self.tokens = Tokens(fast, self._durably, clock)
        self.seals = Seals(self._durably, clock)
        self._presence = Presence(path.parent / "alive")
        secrets = Secrets(path.parent / "secrets")
        self.pins = Pins(fast, self._durably, clock)
        self.holds = Holds(fast, self._durably, clock, self._presence, secrets)
        self.declined = Declined(fast, self._durably, clock)
        self.jobs = Jobs(fast, self._presence, clock)
        self.inbox = Inbox(fast, self._durably, clock)
        self.results = Results(fast, self._durably, clock, retention.results_days * _DAY_S)

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        retention: Retention | None = None,
        clock: Callable[[], float] = time.time,
        migrations: Sequence[Sequence[str]] = MIGRATIONS,
    ) -> Ledger:
        """Open a home's ledger, making or migrating it where needed.

        Args:
            path: the file, in a folder that exists.
            retention: how long rows live; the defaults when left out.
            clock: the time in seconds since 1970.
            migrations: the steps that make a ledger.

        Raises:
            LedgerUnavailable: it cannot be written, is damaged, is no ledger, or a newer Chalie made it.
                The file is then left as it was.
        """
        created = False
        if not _is_ready(path, len(migrations)):
            created = _prepare(path, migrations)
        # told now, not at the first call: SQLite itself opens such a file without a word, for reading only
        if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
            raise _unusable(path, OSError(errno.EACCES, "it cannot be written"))
        fast = Database(path, durable=False)
        return cls(path, fast, retention or Retention(), clock, created)

    def mark(self) -> int:
        """Return a number that changes whenever another connection or process has written."""
        return self._fast.mark()

    def note(self, name: str) -> str | None:
        """Return what was noted under a name, or None."""
        rows = self._fast.read("SELECT value FROM notes WHERE name = ?", (name,))
        return rows[0][0] if rows else None

    def noted(self, name: str, value: str, event: str, detail: str) -> bool:
        """Remember a text under a name; where it is another than before, record that as an event.

        Returns:
            Whether it was another one.
        """
        if self.note(name) == value:
            return False
        now = self._clock()
        with self._durably().transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, value))
            record(connection, now, event, detail=detail)
        return True

    def retain(self) -> dict[str, int]:
        """Apply the retention settings where no process did so for a day; return the counts."""
        today = int(self._clock() // _DAY_S)
        if self._fast.read("SELECT 1 FROM changes WHERE name = 'retained' AND n >= ?", (today,)):
            return {}
        with self._fast.transaction() as connection:
            # of several processes that find it due, the one that moves the day does it
            mine = connection.execute(
                "INSERT INTO changes VALUES ('retained', ?) "
                "ON CONFLICT (name) DO UPDATE SET n = excluded.n WHERE n < excluded.n",
                (today,),
            ).rowcount
        return self.apply_retention() if mine else {}

    def apply_retention(self, now: float | None = None) -> dict[str, int]:
        """Delete what is older than the retention settings and record how much; return the counts.

        Args:
            now: seconds since 1970; the clock's time when left out.
        """
        moment = self._clock() if now is None else now
        old = moment - self._retention.trail_days * _DAY_S
        counts = {
            "trail": self.trail.forget(old),
            "jobs": self.jobs.forget(old),
            "holds": self.holds.forget(old),
            "inbox": self.inbox.forget(old, moment - self._retention.results_days * _DAY_S),
            "results": self.results.expire(moment),
        }
        counts = {table: count for table, count in counts.items() if count}
        if counts:
            self.trail.append("retention.applied", detail=counts)
        return counts

    def present(self) -> None:
        """Have other processes of the home know that this one runs tools, from now until it ends."""
        self._presence.mark()

    def others(self) -> frozenset[int]:
        """Return the ids of the other living processes of this home that said so."""
        return self._presence.others()

    def close(self) -> None:
        """Close the connections; may be called again."""
        self._presence.close()
        with self._opening:
            if self._durable is not None:
                self._durable.close()
        self._fast.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _durably(self) -> Database:
        with self._opening:
            if self._durable is None:
                self._durable = Database(self.path, durable=True)
            return self._durable


def _is_ready(path: Path, version: int) -> bool:
    """Tell whether the file is a ledger of this version, without writing anything.

    Raises:
        LedgerUnavailable: it is damaged, somebody else's, or newer.
    """
    try:
        if path.stat().st_size == 0:
            return False
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unusable(path, error) from error
    database = Database(path, durable=False)
    try:
        found, mark = database.value("PRAGMA user_version"), database.value("PRAGMA application_id")
        tables = database.value("SELECT count(*) FROM sqlite_master")
        if tables and mark != APPLICATION_ID:
            raise LedgerUnavailable(
                f"{path} is an SQLite file of some other program, not a ledger; nothing was written to it",
                hint="move it aside, or set CHALIE_HOME to another folder",
            )
        if found > version:
            raise LedgerUnavailable(
                f"the ledger {path} was written by a newer chalie: its format is {found}, this one reads up "
                f"to {version}; nothing was written to it",
                hint="pip install --upgrade chalie",
            )
        return bool(found == version and database.value("PRAGMA journal_mode") == "wal")
    finally:
        database.close()


def _prepare(path: Path, migrations: Sequence[Sequence[str]]) -> bool:
    """Make or migrate the ledger, one process at a time; return whether it was made."""
    from filelock import FileLock, Timeout

    try:
        path.parent.stat()  # it must be there: the lock would make it, open to everybody
        with FileLock(path.with_name(f"{path.name}.lock"), timeout=3 * BUSY_S, mode=0o600):
            if _is_ready(path, len(migrations)):
                return False  # another process was first
            # made by hand for its mode: SQLite gives its log and index files the mode of this one
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            return _migrate(path, migrations) == 0
    except Timeout as error:
        raise LedgerUnavailable(
            f"the ledger {path} is being prepared by another process; it did not finish in {3 * BUSY_S:g} s",
            hint="try again",
        ) from error
    except OSError as error:
        raise _unusable(path, error) from error


def _migrate(path: Path, migrations: Sequence[Sequence[str]]) -> int:
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)) as connection:
            # small pages: a call's two rows are short, and each commit writes and sums up whole pages
            connection.execute("PRAGMA page_size=1024")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("BEGIN IMMEDIATE")
            found = migrate(connection, migrations)
            connection.execute("COMMIT")
            return found
    except sqlite3.Error as error:
        raise refusal(path, error) from error


def _unusable(path: Path, error: OSError) -> LedgerUnavailable:
    return LedgerUnavailable(
        f"the ledger {path} cannot be used: {error.strerror or error}",
        hint=f"make {path.parent} writable for this account, or set CHALIE_HOME",
    )
