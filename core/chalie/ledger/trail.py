"""The trail: the append-only record of every call, decision and change of policy."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final

from attrs import frozen

from ..compact import compact
from .database import Database

__all__ = ["EVENTS", "WHO", "Overtaken", "Trail", "TrailRow", "Who", "record", "stored"]

#: event -> what it says; the reference page of events is made from this table.
EVENTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "call.started": "a call passed the gate and is about to run",
        "call.finished": "a call ended; `code` says how where it is an error",
        "call.refused": "a call did not run; `code` and `detail` say why",
        "approval.hold_opened": "a call waits for a person; `detail` names the hold and when it expires",
        "approval.decided": "a person answered a hold; `setting` is the answer and `by` who gave it",
        "approval.spent": "a process took an approved hold on, to run it once",
        "approval.ended": "a hold ended, or did not start and waits again; `setting` is its state",
        "approval.cleared": "a person lets a declined call be asked again",
        "permission.changed": "a person set a permission",
        "permission.removed": "a person removed a setting",
        "package.enabled": "a person let a package's policies or plugins be loaded",
        "package.disabled": "a person took that back",
        "policy.changed": "a host came up with other policies than the last; `detail` names them all",
        "trust.changed": "a person said whether a policy's allow counts",
        "approver.added": "an approver token was made",
        "approver.removed": "an approver token was taken back",
        "token.added": "a token for the HTTP door was made; `channel` and `principal` are what it is for",
        "token.revoked": "a token for the HTTP door was taken back",
        "generation.published": "a new catalogue and its indexes are in use",
        "retention.applied": "old rows were deleted; `detail` says how many",
    }
)

#: longest text of masked arguments and of a detail kept whole, in characters.
_WHOLE: Final = 65_536
#: longest text of a name kept, in characters: a model may call a tool by any text.
_NAME: Final = 512
_HEAD: Final = 4_096

#: the columns that say whose call it is and what the gate made of it; alike in all rows of one call.
WHO: Final = (
    "call_id",
    "ordinal",
    "channel",
    "principal",
    "conversation",
    "dist",
    "name",
    "permission",
    "effect",
    "setting",
)
Who = tuple[
    str | None,
    int | None,
    str | None,
    str | None,
    str | None,
    str | None,
    str | None,
    str | None,
    str | None,
    str | None,
]
_COLUMNS: Final = f"at, event, {', '.join(WHO)}, status, code, arguments, detail, duration_us, by"
_INSERT: Final = f"INSERT INTO trail ({_COLUMNS}) VALUES ({', '.join('?' * 18)})"
_INSERT_GIVEN: Final = (
    f"INSERT INTO trail ({_COLUMNS}) SELECT {', '.join('?' * 18)} FROM changes "
    "WHERE name = 'permissions' AND n = ?"
)
_FORGET_AT_ONCE: Final = 5_000

_encode: Final = compact(default=str)


class Overtaken(Exception):
    """What a decision was based on was changed before it could be recorded; it has to be made again."""


@frozen
class TrailRow:
    """One event.

    Attributes:
        id: grows with every event.
        at: when, in UTC.
        event: a key of `EVENTS`.
        arguments: the masked arguments as JSON text; of a very long one its size, hash and beginning.
        detail: a text, or JSON.
        by: who decided, where somebody did.
    """

    id: int
    at: datetime
    event: str
    call_id: str | None
    ordinal: int | None
    channel: str | None
    principal: str | None
    conversation: str | None
    dist: str | None
    name: str | None
    permission: str | None
    effect: str | None
    setting: str | None
    status: str | None
    code: str | None
    arguments: str | None
    detail: str | None
    duration_us: int | None
    by: str | None


class Trail:
    """The trail's statements.

    Args:
        fast: the connection for calls.
        clock: the time in seconds since 1970.
    """

    def __init__(self, fast: Database, clock: Callable[[], float]) -> None:
        self._fast = fast
        self._clock = clock

    def append(
        self,
        event: str,
        *,
        call_id: str | None = None,
        ordinal: int | None = None,
        channel: str | None = None,
        principal: str | None = None,
        conversation: str | None = None,
        dist: str | None = None,
        name: str | None = None,
        permission: str | None = None,
        effect: str | None = None,
        setting: str | None = None,
        status: str | None = None,
        code: str | None = None,
        arguments: Mapping[str, Any] | str | None = None,
        detail: Mapping[str, Any] | str | None = None,
        duration_us: int | None = None,
        by: str | None = None,
    ) -> int:
        """Record one event; when this returns, the row outlives the process in every way it can end.

        Args:
            event: a key of `EVENTS`, or a plugin's own dotted name.
            arguments: already masked (`schema.mask`).

        Returns:
            The row's id.

        Raises:
            LedgerUnavailable: it could not be recorded.
        """
        if name is not None and len(name) > _NAME:
            name = f"{name[: _NAME - 1]}…"
        who = (call_id, ordinal, channel, principal, conversation, dist, name, permission, effect, setting)
        return self.append_call(event, who, status, code, arguments, detail, duration_us, by)

    def append_call(
        self,
        event: str,
        who: Who,
        status: str | None = None,
        code: str | None = None,
        arguments: Mapping[str, Any] | str | None = None,
        detail: Mapping[str, Any] | str | None = None,
        duration_us: int | None = None,
        by: str | None = None,
        given: int | None = None,
    ) -> int:
        """Do what `append` does for who keeps the first columns ready: every call has two rows.

        Args:
            who: in the order of `WHO`.
            given: record it only where what people set is still as it was at this count (`Rows.counter`).

        Raises:
            Overtaken: a setting was changed since, and nothing was recorded.
            LedgerUnavailable: it could not be recorded.
        """
        if arguments is not None:
            arguments = _text(arguments)
        if detail is not None:
            detail = _text(detail)
        values = (self._clock(), event, *who, status, code, arguments, detail, duration_us, by)
        if given is None:
            return self._write(_INSERT, values)
        row = self._write(_INSERT_GIVEN, (*values, given))
        if not row:
            raise Overtaken
        return row

    def _write(self, insert: str, values: tuple[Any, ...]) -> int:
        try:
            return self._fast.write(insert, values)
        except UnicodeEncodeError:
            return self._fast.write(insert, tuple(map(stored, values)))

    def append_within(self, connection: sqlite3.Connection, event: str, **columns: Any) -> None:
        """Record an event as `append` does, inside the transaction of a change that it belongs to."""
        for name in ("arguments", "detail"):
            if columns.get(name) is not None:
                columns[name] = _text(columns[name])
        record(connection, self._clock(), event, **columns)

    def outcome(
        self, call_id: str, *, status: str, code: str | None, duration_us: int, **columns: Any
    ) -> int:
        """Record how a call ended, as a row of its own beside the one that announced it.

        Args:
            status: `success` or `error`.
            code: the error's code, or None.
            duration_us: microseconds from dispatch to outcome.
            columns: more of `append`'s.
        """
        return self.append(
            "call.finished", call_id=call_id, status=status, code=code, duration_us=duration_us, **columns
        )

    def query(
        self,
        *,
        event: str | None = None,
        call_id: str | None = None,
        channel: str | None = None,
        principal: str | None = None,
        conversation: str | None = None,
        dist: str | None = None,
        name: str | None = None,
        code: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> tuple[TrailRow, ...]:
        """Return rows, newest first.

        Args:
            event: an event's name, or with a closing dot all of a kind (`call.`).
            since, until: timezone-aware bounds, the first included.
            before: only rows with a smaller id: the last id of one page begins the next.
            limit: how many rows at most.
        """
        where: list[str] = []
        values: list[Any] = []
        equal = {
            "call_id": call_id,
            "channel": channel,
            "principal": principal,
            "conversation": conversation,
            "dist": dist,
            "name": name,
            "code": code,
        }
        for column, value in equal.items():
            if value is not None:
                where.append(f"{column} = ?")
                values.append(stored(value))
        if event is not None:
            where.append("substr(event, 1, ?) = ?" if event.endswith(".") else "event = ?")
            values += [len(event), event] if event.endswith(".") else [event]
        for column, sign, bound in (("at", ">=", since), ("at", "<", until)):
            if bound is not None:
                where.append(f"{column} {sign} ?")
                values.append(bound.timestamp())
        if before is not None:
            where.append("id < ?")
            values.append(before)
        condition = f"WHERE {' AND '.join(where)} " if where else ""
        rows = self._fast.read(
            f"SELECT id, {_COLUMNS} FROM trail {condition}ORDER BY id DESC LIMIT ?", [*values, limit]
        )
        return tuple(TrailRow(row[0], datetime.fromtimestamp(row[1], UTC), *row[2:]) for row in rows)

    def forget(self, before: float) -> int:
        """Delete the rows older than a moment (seconds since 1970), a few at a time; return how many."""
        kept = self._fast.read("SELECT id FROM trail WHERE at >= ? ORDER BY id LIMIT 1", (before,))
        beyond = kept[0][0] if kept else self._fast.value("SELECT coalesce(max(id), 0) + 1 FROM trail")
        deleted = 0
        while True:
            # in pieces: others must be able to record while a long trail is cleared
            with self._fast.transaction() as connection:
                cursor = connection.execute(
                    "DELETE FROM trail WHERE id IN (SELECT id FROM trail WHERE id < ? ORDER BY id LIMIT ?)",
                    (beyond, _FORGET_AT_ONCE),
                )
            deleted += cursor.rowcount
            if cursor.rowcount < _FORGET_AT_ONCE:
                return deleted


def record(connection: sqlite3.Connection, at: float, event: str, **columns: str | int | None) -> None:
    """Write an event inside the transaction of the change that it tells of.

    Args:
        connection: inside that transaction.
        at: seconds since 1970.
        event: a key of `EVENTS`.
        columns: columns of the trail, as they are stored.
    """
    names = ", ".join(columns)
    connection.execute(
        f"INSERT INTO trail (at, event, {names}) VALUES (?, ?, {', '.join('?' * len(columns))})",
        (at, event, *map(stored, columns.values())),
    )


def _text(value: Mapping[str, Any] | str) -> str:
    """Return the text to keep; never raises, since a call must not fail for what it looks like."""
    if not isinstance(value, str):
        try:
            value = _encode(value)
        except (TypeError, ValueError, RecursionError):
            value = '"(not expressible as JSON)"'
    if len(value) <= _WHOLE:
        return value
    whole = value.encode("utf-8", "surrogatepass")
    return _encode(
        {"cut": True, "bytes": len(whole), "sha256": hashlib.sha256(whole).hexdigest(), "head": value[:_HEAD]}
    )


def stored(value: Any) -> Any:
    """Return a text that SQLite can hold: lone surrogates as `\\udXXX`."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    return value
