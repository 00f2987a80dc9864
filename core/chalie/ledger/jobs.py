"""Calls that run in the background: who runs them, and what became of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from attrs import frozen

from .database import Database
from .presence import Presence

__all__ = ["Job", "Jobs"]

_COLUMNS: Final = "call_id, state, owner, dist, name, principal, conversation, opened_at, ended_at, code"


@frozen
class Job:
    """One background call.

    Attributes:
        state: `running`, `done`, `failed`, `cancelled` or `interrupted` (its process ended first).
        owner: the mark of the process that runs it.
        code: the error's code, or None.
    """

    call_id: str
    state: str
    owner: str
    dist: str
    name: str
    principal: str | None
    conversation: str | None
    opened_at: datetime
    ended_at: datetime | None
    code: str | None


class Jobs:
    """The background calls of all processes of a home.

    Args:
        fast: the connection for calls.
        presence: this process's mark, and whether other processes live.
        clock: the time in seconds since 1970.
    """

    def __init__(self, fast: Database, presence: Presence, clock: Callable[[], float]) -> None:
        self._fast = fast
        self._presence = presence
        self._clock = clock

    def open(
        self,
        call_id: str,
        *,
        dist: str,
        name: str,
        principal: str | None = None,
        conversation: str | None = None,
    ) -> None:
        """Record that this process begins a background call."""
        self._fast.write(
            f"INSERT INTO jobs ({_COLUMNS}) VALUES (?, 'running', ?, ?, ?, ?, ?, ?, NULL, NULL)",
            (call_id, self._presence.mark(), dist, name, principal, conversation, self._clock()),
        )

    def finish(self, call_id: str, state: str = "done", *, code: str | None = None) -> bool:
        """Record how a running call ended; return False where it was not running any more.

        Args:
            state: `done`, `failed` or `cancelled`.
            code: the error's code.
        """
        if state not in ("done", "failed", "cancelled"):
            raise ValueError(f"a job ends done, failed or cancelled, not {state!r}")
        with self._fast.transaction() as connection:
            return bool(
                connection.execute(
                    "UPDATE jobs SET state = ?, code = ?, ended_at = ? "
                    "WHERE call_id = ? AND state = 'running'",
                    (state, code, self._clock(), call_id),
                ).rowcount
            )

    def mark_interrupted(self) -> tuple[Job, ...]:
        """Mark the running calls of processes that are gone; return those that this call marked."""
        owners = [
            row[0] for row in self._fast.read("SELECT DISTINCT owner FROM jobs WHERE state = 'running'")
        ]
        dead = [owner for owner in owners if not self._presence.is_alive(owner)]
        marked: list[Job] = []
        for owner in dead:
            with self._fast.transaction() as connection:
                running = connection.execute(
                    f"SELECT {_COLUMNS} FROM jobs WHERE owner = ? AND state = 'running' ORDER BY opened_at",
                    (owner,),
                ).fetchall()
                now = self._clock()
                connection.execute(
                    "UPDATE jobs SET state = 'interrupted', ended_at = ? "
                    "WHERE owner = ? AND state = 'running'",
                    (now, owner),
                )
            marked += [_job((row[0], "interrupted", *row[2:8], now, row[9])) for row in running]
        return tuple(marked)

    def get(self, call_id: str) -> Job | None:
        """Return one job, or None."""
        rows = self._fast.read(f"SELECT {_COLUMNS} FROM jobs WHERE call_id = ?", (call_id,))
        return _job(rows[0]) if rows else None

    def list(self, *, state: str | None = None) -> tuple[Job, ...]:
        """Return all jobs, or those in one state, newest first."""
        rows = self._fast.read(
            f"SELECT {_COLUMNS} FROM jobs WHERE ? IS NULL OR state = ? ORDER BY opened_at DESC",
            (state, state),
        )
        return tuple(map(_job, rows))

    def forget(self, before: float) -> int:
        """Delete the jobs that ended before a moment (seconds since 1970); return how many."""
        with self._fast.transaction() as connection:
            return connection.execute("DELETE FROM jobs WHERE ended_at < ?", (before,)).rowcount


def _job(row: Any) -> Job:
    call_id, state, owner, dist, name, principal, conversation, opened_at, ended_at, code = row
    opened = datetime.fromtimestamp(opened_at, UTC)
    ended = None if ended_at is None else datetime.fromtimestamp(ended_at, UTC)
    return Job(call_id, state, owner, dist, name, principal, conversation, opened, ended, code)
