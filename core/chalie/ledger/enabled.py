"""Which packages' policies and plugins a person enabled, and which policies they trust."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from attrs import frozen

from .database import Database
from .trail import record

__all__ = ["Enabled", "EnabledRow"]

_ONE: Final = "WHERE dist = ? AND files_hash = ?"


@frozen
class EnabledRow:
    """One enabled package, as it was when it was enabled.

    Attributes:
        dist: the distribution's normalised name.
        files_hash: SHA-256 (hex) over its files; other files are not enabled.
        environment: key of the Python environment where that was said; it counts in all of the home.
        trusted: whether its policies' allow counts.
        by: who enabled it, or last changed the trust.
        at: when.
    """

    dist: str
    files_hash: str
    environment: str
    trusted: bool
    by: str
    at: datetime


class Enabled:
    """What was said counts for a distribution with exactly those files, and for each such state side by side.

    It counts in every Python environment of the home. An environment is another one as soon as its import
    path is, as by an editable install, and no limit may end with that.

    Args:
        fast: the connection for reading.
        durable: gives the connection whose commits survive a loss of power.
        clock: the time in seconds since 1970.
    """

    def __init__(self, fast: Database, durable: Callable[[], Database], clock: Callable[[], float]) -> None:
        self._fast = fast
        self._durable = durable
        self._clock = clock

    def set(self, dist: str, files_hash: str, environment: str, *, by: str) -> None:
        """Enable a package with exactly these files; it keeps the trust it has.

        Args:
            environment: where that is said.
        """
        if not (dist and files_hash and environment and by):
            raise ValueError("enabling needs a distribution, its files' hash, an environment and who said so")
        now = self._clock()
        with self._durable().transaction() as connection:
            added = connection.execute(
                "INSERT OR IGNORE INTO enabled SELECT ?, ?, ?, coalesce(max(trusted), 0), ?, ? "
                f"FROM enabled {_ONE}",
                (dist, files_hash, environment, by, now, dist, files_hash),
            ).rowcount
            if added:
                record(connection, now, "package.enabled", dist=dist, detail=f"files {files_hash}", by=by)

    def clear(self, dist: str, *, environment: str | None = None, by: str) -> int:
        """Take enabling and trust back from all files of a package; return how many rows that were.

        Args:
            environment: only there; everywhere when left out.
        """
        now = self._clock()
        with self._durable().transaction() as connection:
            removed = connection.execute(
                "DELETE FROM enabled WHERE dist = ? AND (? IS NULL OR environment = ?)",
                (dist, environment, environment),
            ).rowcount
            if removed:
                record(connection, now, "package.disabled", dist=dist, by=by)
        return removed

    def trust(self, dist: str, files_hash: str, trusted: bool, *, by: str) -> bool:
        """Say whether an enabled package's allow counts; return False where it is not enabled."""
        now = self._clock()
        with self._durable().transaction() as connection:
            found = connection.execute(
                f"UPDATE enabled SET trusted = ?, by = ?, at = ? {_ONE}",
                (int(trusted), by, now, dist, files_hash),
            ).rowcount
            if found:
                setting = "trusted" if trusted else "distrusted"
                detail = f"files {files_hash}"
                record(connection, now, "trust.changed", dist=dist, setting=setting, detail=detail, by=by)
        return bool(found)

    def is_enabled(self, dist: str, files_hash: str) -> bool:
        """Tell whether a package with exactly these files is enabled."""
        return bool(self._fast.read(f"SELECT 1 FROM enabled {_ONE}", (dist, files_hash)))

    def trusted(self, dist: str, files_hash: str) -> bool:
        """Tell whether a package with exactly these files is enabled and trusted."""
        return bool(self._fast.read(f"SELECT max(trusted) FROM enabled {_ONE}", (dist, files_hash))[0][0])

    def list(self, environment: str | None = None) -> tuple[EnabledRow, ...]:
        """Return every row, or those of one environment, in order of distribution and time."""
        rows = self._fast.read(
            "SELECT dist, files_hash, environment, trusted, by, at FROM enabled "
            "WHERE ? IS NULL OR environment = ? ORDER BY dist, at",
            (environment, environment),
        )
        return tuple(
            EnabledRow(row[0], row[1], row[2], bool(row[3]), row[4], datetime.fromtimestamp(row[5], UTC))
            for row in rows
        )
