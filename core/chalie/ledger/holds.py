"""Calls that wait for a person: every step of one is a row's state, and no step is taken twice.

    pending -> approved -> spent -> started -> done | failed | interrupted

or `declined`, `expired`, `void`. A hold that was spent and not started is `not-started` and may be approved
again. Each change names the states it may come from, so of two that try it at once only one does.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from attrs import evolve

from .database import Database
from .hold import (
    COLUMNS,
    DETAIL,
    ENDED,
    INSERT,
    OPEN,
    RUNNING,
    Hold,
    decoded,
    hold_of,
    said,
    stored,
    tell,
    values,
)
from .inbox import put
from .presence import Presence
from .secrets import Secrets

__all__ = ["ENDED", "OPEN", "RUNNING", "Hold", "Holds"]


#: characters of an id that may stand for it.
_SHORTEST: Final = 4
#: how a run ends.
_RAN: Final = ("done", "failed", "interrupted")


class Holds:
    """The holds of a home, for all its processes.

    Args:
        fast: the connection for reading, and for steps that a following durable one makes last.
        durable: gives the connection whose commits survive a loss of power.
        clock: the time in seconds since 1970.
        presence: this process's mark, and whether other processes live.
        secrets: where secret arguments are kept.
    """

    def __init__(
        self,
        fast: Database,
        durable: Callable[[], Database],
        clock: Callable[[], float],
        presence: Presence,
        secrets: Secrets,
    ) -> None:
        self._fast = fast
        self._durable = durable
        self._clock = clock
        self._presence = presence
        self.secrets = secrets

    @property
    def own_mark(self) -> str:
        """This process's mark."""
        return self._presence.mark()

    # reading

    def get(self, hold_id: str) -> Hold | None:
        """Return a hold by its id, or by a beginning of it that no other has; None where there is none."""
        rows = self._fast.read(f"SELECT {COLUMNS} FROM holds WHERE id = ?", (hold_id,))
        if not rows and len(hold_id) >= _SHORTEST:
            rows = self._fast.read(
                f"SELECT {COLUMNS} FROM holds WHERE id > ? AND id < ? ORDER BY id LIMIT 2",
                (hold_id, f"{hold_id}~"),
            )
        return hold_of(rows[0]) if len(rows) == 1 else None

    def state(self, hold_id: str) -> str | None:
        """Return a hold's state: what is asked again and again while somebody waits."""
        rows = self._fast.read("SELECT state FROM holds WHERE id = ?", (hold_id,))
        return rows[0][0] if rows else None

    def list(self, *, states: Sequence[str] = (), principal: str | None = None) -> tuple[Hold, ...]:
        """Return the holds in any of some states, or all, oldest first.

        Args:
            principal: only this principal's.
        """
        where = f"state IN ({', '.join('?' * len(states))})" if states else "1"
        rows = self._fast.read(
            f"SELECT {COLUMNS} FROM holds WHERE {where} AND (? IS NULL OR principal = ?) "
            "ORDER BY opened_at, id",
            (*states, stored(principal), stored(principal)),
        )
        return tuple(map(hold_of, rows))

    def alike(self, hold: Hold) -> Hold | None:
        """Return an open hold of the same call by the same principal in the same conversation, or None."""
        rows = self._fast.read(
            f"SELECT {COLUMNS} FROM holds WHERE state IN ('pending', 'approved', 'not-started') "
            "AND digest = ? AND principal = ? AND scope = ? AND environment = ? AND descriptor_hash = ? "
            "AND policy = ? AND permission = ? AND expires_at > ? ORDER BY opened_at LIMIT 1",
            (
                hold.digest,
                stored(hold.principal),
                stored(hold.scope),
                hold.environment,
                hold.descriptor_hash,
                hold.policy,
                hold.permission,
                self._clock(),
            ),
        )
        return hold_of(rows[0]) if rows else None

    def ready(self, environment: str) -> tuple[str, ...]:
        """Return the approved holds of this environment that are this process's to run."""
        rows = self._fast.read(
            "SELECT id FROM holds LEFT JOIN leases USING (conversation) WHERE state = 'approved' "
            "AND environment = ? AND coalesce(leases.owner, host) = ? ORDER BY decided_at",
            (environment, self._presence.mark()),
        )
        return tuple(row[0] for row in rows)

    def any_here(self, environment: str) -> bool:
        """Tell whether any open hold of this environment is this process's to run, once it is approved."""
        rows = self._fast.read(
            "SELECT 1 FROM holds LEFT JOIN leases USING (conversation) "
            "WHERE state IN ('pending', 'approved', 'not-started') "
            "AND environment = ? AND coalesce(leases.owner, host) = ? LIMIT 1",
            (environment, self._presence.mark()),
        )
        return bool(rows)

    def runner(self, hold: Hold) -> str | None:
        """Return the mark of the live process that runs a hold once it is approved, or None."""
        rows = self._fast.read(
            "SELECT owner FROM leases WHERE conversation = ?", (stored(hold.conversation),)
        )
        mark = rows[0][0] if rows else hold.host
        return mark if mark and self._presence.is_alive(mark) else None

    def arguments(self, hold: Hold) -> dict[str, Any] | None:
        """Return the whole arguments, secrets included; None where the secret ones are gone."""
        if hold.secret is None:
            return dict(hold.arguments)
        data = self.secrets.get(hold.secret)
        return None if data is None else decoded(data)

    # opening

    def open(self, hold: Hold, whole: bytes | None) -> Hold:
        """Store a hold, before anyone is asked; return it with its id.

        Args:
            hold: pending; its id and host are filled in here.
            whole: the canonical arguments where some are secret, else None.

        Raises:
            LedgerUnavailable: it cannot be stored; the call must not be asked about.
        """
        mark = self._presence.mark()
        secret = None if whole is None else self.secrets.put(whole)
        with self._durable().transaction() as connection:
            hold_id = os.urandom(4).hex()
            while connection.execute("SELECT 1 FROM holds WHERE id = ?", (hold_id,)).fetchone():
                hold_id = os.urandom(4).hex()
            hold = evolve(hold, id=hold_id, host=mark, secret=secret)
            connection.execute(INSERT, values(hold))
            if hold.conversation is not None:
                _lease(connection, hold.conversation, mark, hold.opened_at)
            detail = json.dumps({"hold": hold.id, "expires": round(hold.expires_at)})
            tell(connection, hold.opened_at, "approval.hold_opened", hold, "pending", detail=detail)
        return hold

    def lease(self, conversation: str) -> bool:
        """Take on what is approved in a conversation where something waits and no live process has it.

        Returns:
            Whether it is this process's.
        """
        rows = self._fast.read(
            "SELECT leases.owner FROM holds LEFT JOIN leases USING (conversation) "
            "WHERE state IN ('pending', 'approved', 'not-started') AND conversation = ? LIMIT 1",
            (stored(conversation),),
        )
        if not rows:
            return False
        owner = rows[0][0]
        if owner is not None and self._presence.is_alive(owner):
            return bool(owner == self._presence.mark())
        with self._fast.transaction() as connection:
            _lease(connection, conversation, self._presence.mark(), self._clock())
        return True

    def tell(self, hold: Hold, told: bool = True) -> None:
        """Note whether a hold's caller was told to wait for it."""
        self._fast.write("UPDATE holds SET told = ? WHERE id = ?", (int(told), hold.id))

    # deciding

    def answered(
        self,
        hold: Hold,
        answer: str,
        by: str,
        *,
        spend: bool = False,
        within: Callable[[sqlite3.Connection], None] | None = None,
        text: str | None = None,
    ) -> Hold | None:
        """Record a person's answer; None where the hold was answered, ended or expired before.

        Args:
            answer: `once`, `always`, `until`, `decline` or `decline_always`.
            by: who said it, as proven.
            spend: this process goes on to run it: approved and spent are then one step. Nothing is synced for
                it, since `start` syncs it with its own: what a loss of power takes back has not run.
            within: what else happens with the answer or not at all: the row of an "always".
            text: the envelope for the inbox of a caller who was told to wait, where the answer is no.
        """
        now = self._clock()
        declined = answer.startswith("decline")
        state = "declined" if declined else "spent" if spend else "approved"
        lasting = declined or not spend or within is not None
        with (self._durable() if lasting else self._fast).transaction() as connection:
            changed = connection.execute(
                "UPDATE holds SET state = ?, answer = ?, decided_by = ?, decided_at = ?, owner = ?, "
                "ended_at = ?, code = NULL, detail = NULL WHERE id = ? AND expires_at > ? AND state IN "
                f"('pending', 'not-started'{', ' + repr('approved') if declined else ''})",
                (
                    state,
                    answer,
                    by,
                    now,
                    self._presence.mark() if spend and not declined else None,
                    now if declined else None,
                    hold.id,
                    now,
                ),
            ).rowcount
            if not changed:
                return None
            if within is not None:
                within(connection)
            detail = json.dumps({"hold": hold.id})
            tell(connection, now, "approval.decided", hold, answer, by=by, detail=detail)
            if declined:
                connection.execute(
                    "INSERT OR REPLACE INTO declined VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (
                        stored(hold.principal),
                        stored(hold.scope),
                        hold.digest,
                        hold.id,
                        hold.permission,
                        by,
                        now,
                    ),
                )
                self._ended(connection, now, hold, "declined", text, by=by)
            elif spend:
                tell(connection, now, "approval.spent", hold, "spent", detail=detail)
        if declined:
            self.secrets.erase(hold.secret)
        return self.get(hold.id)

    def spend(self, hold_id: str) -> Hold | None:
        """Take an approved hold on; None where another process did, or it expired."""
        now = self._clock()
        with self._fast.transaction() as connection:
            changed = connection.execute(
                "UPDATE holds SET state = 'spent', owner = ? "
                "WHERE id = ? AND state = 'approved' AND expires_at > ?",
                (self._presence.mark(), hold_id, now),
            ).rowcount
            if not changed:
                return None
            row = connection.execute(f"SELECT {COLUMNS} FROM holds WHERE id = ?", (hold_id,)).fetchone()
            hold = hold_of(row)
            tell(connection, now, "approval.spent", hold, "spent", detail=json.dumps({"hold": hold.id}))
        return hold

    def start(self, hold_id: str) -> bool:
        """Say that a spent hold runs now; return False where it is not this process's to run.

        Whoever got True runs it, at once: from here on a crash leaves it `interrupted`, never run again.
        """
        with self._durable().transaction() as connection:
            return bool(
                connection.execute(
                    "UPDATE holds SET state = 'started' WHERE id = ? AND state = 'spent' AND owner = ?",
                    (hold_id, self._presence.mark()),
                ).rowcount
            )

    def unstarted(self, hold: Hold, reason: str) -> bool:
        """Give a spent hold back: it did not run and may be approved again."""
        now = self._clock()
        with self._durable().transaction() as connection:
            changed = connection.execute(
                "UPDATE holds SET state = 'not-started', owner = NULL, detail = ? "
                "WHERE id = ? AND state = 'spent'",
                (reason[:DETAIL], hold.id),
            ).rowcount
            if changed:
                tell(connection, now, "approval.ended", hold, "not-started", detail=said(hold, reason))
        return bool(changed)

    def finish(
        self,
        hold: Hold,
        state: str,
        *,
        code: str | None = None,
        detail: str | None = None,
        outcome: Callable[[sqlite3.Connection], None] | None = None,
        text: str | None = None,
    ) -> bool:
        """Record how a hold ended; return False where that was done before.

        Args:
            state: one of `ENDED`.
            code: the error's code of a call that ran.
            outcome: writes the call's own row, with this change or not at all.
            text: the envelope for the conversation's inbox; of a hold that did not run only where its caller
                was told to wait.
        """
        before = (
            RUNNING if state in ("done", "failed", "interrupted") else ("pending", "approved", "not-started")
        )
        now = self._clock()
        with self._durable().transaction() as connection:
            changed = connection.execute(
                "UPDATE holds SET state = ?, ended_at = ?, code = ?, detail = ? WHERE id = ? "
                f"AND state IN ({', '.join(map(repr, before))})",
                (state, now, code, detail and detail[:DETAIL], hold.id),
            ).rowcount
            if changed:
                if outcome is not None:
                    outcome(connection)
                self._ended(connection, now, hold, state, text, code=code, reason=detail)
        if changed:
            self.secrets.erase(hold.secret)
        return bool(changed)

    # looking over

    def overdue(self) -> tuple[Hold, ...]:
        """Return the open holds whose time is over."""
        rows = self._fast.read(
            f"SELECT {COLUMNS} FROM holds WHERE state IN ('pending', 'approved', 'not-started') "
            "AND expires_at <= ?",
            (self._clock(),),
        )
        return tuple(map(hold_of, rows))

    def abandoned(self, mine: Iterable[str] = ()) -> tuple[Hold, ...]:
        """Return the holds that a process took on and then ended, or let go of.

        Args:
            mine: those that this process is busy with.
        """
        busy = set(mine)
        own = self._presence.mark()
        return tuple(
            hold
            for hold in self.list(states=RUNNING)
            if hold.id not in busy
            and (hold.owner is None or hold.owner == own or not self._presence.is_alive(hold.owner))
        )

    def sweep(self) -> int:
        """Erase the secret arguments that no open hold needs any more; return how many files."""
        rows = self._fast.read("SELECT secret, state FROM holds WHERE secret IS NOT NULL")
        return self.secrets.sweep({row[0]: row[1] not in ENDED for row in rows})

    def forget(self, before: float) -> int:
        """Delete the holds and declines from before a moment (seconds since 1970); return how many."""
        with self._fast.transaction() as connection:
            connection.execute("DELETE FROM declined WHERE at < ?", (before,))
            return connection.execute("DELETE FROM holds WHERE ended_at < ?", (before,)).rowcount

    def _ended(
        self,
        connection: sqlite3.Connection,
        now: float,
        hold: Hold,
        state: str,
        text: str | None,
        *,
        code: str | None = None,
        reason: str | None = None,
        by: str | None = None,
    ) -> None:
        tell(connection, now, "approval.ended", hold, state, code=code, by=by, detail=said(hold, reason))
        if text is not None and state not in _RAN:
            # who was not told to wait has been told by now how it ended
            row = connection.execute("SELECT told FROM holds WHERE id = ?", (hold.id,)).fetchone()
            text = text if row[0] else None
        if text is not None:
            put(connection, hold.principal, hold.conversation, hold.call_id, text, now)


def _lease(connection: sqlite3.Connection, conversation: str, mark: str, now: float) -> None:
    connection.execute("INSERT OR REPLACE INTO leases VALUES (?, ?, ?)", (stored(conversation), mark, now))
