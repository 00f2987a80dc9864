"""The rows that people set: what a channel may do with a package's permissions."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from attrs import evolve, field, frozen

from ..calls import Setting
from .database import Database
from .pins import Pin, pin
from .trail import record

__all__ = ["PermissionRow", "Permissions", "Rows"]

_READ: Final = "SELECT channel, package, permission, setting, until, by, at FROM permissions"
_SET: Final = """INSERT INTO permissions (channel, package, permission, setting, until, by, at)
    VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (channel, package, permission) DO UPDATE SET
    setting = excluded.setting, until = excluded.until, by = excluded.by, at = excluded.at"""

_FOREIGN: Final = "_mcp_"
_PINS: Final = "SELECT dist, name, descriptor_hash, files_hash FROM pins"
_TRUSTED: Final = "SELECT DISTINCT dist, files_hash FROM enabled WHERE trusted"

_Key = tuple[str, str, str]
_Pairs = Mapping[tuple[str, str], frozenset[tuple[str, str]]]


@frozen
class PermissionRow:
    """A person's setting of one permission, or a permission that was asked for without one.

    Attributes:
        channel: the policy channel.
        package: the distribution or MCP server.
        permission: `name`, covering all its actions, or `name.action`; of a server's tools also a pattern,
            `_mcp_files_*`.
        setting: what was set; `ask` where nothing was.
        until: when it ends (UTC), or None.
        by: who set it; empty where nobody did.
        at: when it was set, or first asked for.
        default: True where nobody set it, so that it is no row for the gate.
        lapsed: filled in by the gate: what changed since it was allowed, so that it asks again.
    """

    channel: str
    package: str
    permission: str
    setting: Setting
    until: datetime | None
    by: str
    at: datetime
    default: bool = False
    ends: float = float("inf")  # `until` in seconds since 1970, for the comparison on every call
    lapsed: tuple[str, ...] = ()


@frozen
class Rows:
    """What people set, as one look found it.

    Attributes:
        mark: the connection's, at that look.
        counter: of the changes to any of it; a row of the trail can be written on condition that it is still
            the same (`Trail.append_call`).
        rows, patterns, pins, trusted: what was there.
        clock: the time in seconds since 1970.
    """

    mark: int
    counter: int
    rows: Mapping[_Key, PermissionRow]
    patterns: Mapping[tuple[str, str], tuple[tuple[str, PermissionRow], ...]]
    pins: _Pairs
    trusted: frozenset[tuple[str, str]]
    clock: Callable[[], float] = field(eq=False)

    def get(self, channel: str, package: str, permission: str) -> PermissionRow | None:
        """Return the row of exactly this permission, or None; a row whose time is over does not count."""
        row = self.rows.get((channel, package, permission))
        return row if row is None or row.ends > self.clock() else None

    def for_call(self, channel: str, package: str, name: str, permission: str) -> PermissionRow | None:
        """Return the row that decides on a call, or None.

        A deny that covers the call goes before everything. Else the most specific row counts: the action's
        own, the bare name's, then the longest pattern.
        """
        rows = self.rows
        found = rows.get((channel, package, permission))
        if found is not None and found.ends <= self.clock():
            found = None
        if permission != name:
            found = _stricter(found, rows.get((channel, package, name)), self.clock)
        if name.startswith(_FOREIGN):
            for prefix, row in self.patterns.get((channel, package), ()):
                if name.startswith(prefix):
                    found = _stricter(found, row, self.clock)
        return found

    def pinned(self, dist: str, name: str) -> frozenset[tuple[str, str]]:
        """Return the (descriptor hash, files hash) that an ability was allowed with."""
        return self.pins.get((dist, name), frozenset())


class Permissions:
    """The permission rows; look-ups use a copy in memory that is renewed when any process changes a row.

    Args:
        fast: the connection that look-ups ask whether the file changed.
        durable: gives the connection whose commits survive a loss of power.
        clock: the time in seconds since 1970.
    """

    def __init__(self, fast: Database, durable: Callable[[], Database], clock: Callable[[], float]) -> None:
        self._fast = fast
        self._durable = durable
        self._clock = clock
        self._last = Rows(-1, -1, {}, {}, {}, frozenset(), clock)
        self._noted: set[_Key] = set()

    def look(self) -> Rows:
        """Return the rows as they are now."""
        last = self._last
        # changes with every commit of *another* connection: the rows are never set through this one
        mark = self._fast.mark()
        if mark == last.mark:
            return last
        counter = self._fast.value("SELECT n FROM changes WHERE name = 'permissions'")
        if counter == last.counter:
            last = evolve(last, mark=mark)
        else:
            rows = {(row[0], row[1], row[2]): _row(*row) for row in self._fast.read(_READ)}
            pins = _paired(self._fast.read(_PINS))
            trusted = frozenset((row[0], row[1]) for row in self._fast.read(_TRUSTED))
            last = Rows(mark, counter, rows, _patterns(rows.values()), pins, trusted, self._clock)
        # one assignment: a thread that is late replaces all of it, and its old mark brings the next look
        self._last = last
        return last

    def last(self) -> Rows:
        """Return the rows as the last look found them, for who makes sure afterwards that they still are."""
        return self._last if self._last.counter >= 0 else self.look()

    def get(self, channel: str, package: str, permission: str) -> PermissionRow | None:
        """Return what `Rows.get` does of the rows as they are now."""
        return self.look().get(channel, package, permission)

    def for_call(self, channel: str, package: str, name: str, permission: str) -> PermissionRow | None:
        """Return what `Rows.for_call` does of the rows as they are now."""
        return self.look().for_call(channel, package, name, permission)

    def trusts(self, dist: str, files_hash: str) -> bool:
        """Tell whether a policy with exactly these files is trusted."""
        return (dist, files_hash) in self.look().trusted

    def set(
        self,
        channel: str,
        package: str,
        permission: str,
        setting: Setting | str,
        *,
        by: str,
        until: datetime | None = None,
        pins: Sequence[Pin] = (),
    ) -> PermissionRow:
        """Set a permission and record it on the trail, both or neither.

        Args:
            setting: `allow`, `ask` or `deny`.
            by: who said so, as proven (`terminal:ada`).
            until: timezone-aware end of the setting, in the future.
            pins: what is allowed, as it is now.

        Raises:
            ValueError: for anything else in these arguments.
            LedgerUnavailable: it could not be stored.
        """
        with self._durable().transaction() as connection:
            return self.set_within(
                connection, channel, package, permission, setting, by=by, until=until, pins=pins
            )

    def set_within(
        self,
        connection: sqlite3.Connection,
        channel: str,
        package: str,
        permission: str,
        setting: Setting | str,
        *,
        by: str,
        until: datetime | None = None,
        pins: Sequence[Pin] = (),
    ) -> PermissionRow:
        """Do what `set` does inside a transaction of the durable connection."""
        setting = Setting(setting)
        if setting is Setting.INTERNAL:
            raise ValueError("'internal' is the host's own; a person sets allow, ask or deny")
        if not (channel and package and permission and by):
            raise ValueError("a row needs a channel, a package, a permission and who set it")
        if "*" in permission and not _is_pattern(permission):
            raise ValueError(
                f"{permission!r} is no pattern: only the tools of a server can be named by one, as in "
                "_mcp_files_* with its star at the end"
            )
        now = self._clock()
        ends = None if until is None else _moment(until, now)
        row = _row(channel, package, permission, setting, ends, by, now)
        connection.execute(_SET, (channel, package, permission, setting.value, ends, by, now))
        for each in pins if setting is Setting.ALLOW else ():
            pin(connection, each, by, now)
        record(
            connection,
            now,
            "permission.changed",
            channel=channel,
            dist=package,
            permission=permission,
            setting=setting.value,
            detail=None if row.until is None else f"until {row.until.isoformat()}",
            by=by,
        )
        return row

    def remove(self, channel: str, package: str, permission: str, *, by: str) -> bool:
        """Remove a row and record it; return whether there was one."""
        now = self._clock()
        key = (channel, package, permission)
        with self._durable().transaction() as connection:
            found = connection.execute(
                "DELETE FROM permissions WHERE channel = ? AND package = ? AND permission = ?", key
            ).rowcount
            connection.execute("DELETE FROM asked WHERE channel = ? AND package = ? AND permission = ?", key)
            _unpin(connection, package, permission.partition(".")[0])
            if found:
                record(
                    connection,
                    now,
                    "permission.removed",
                    channel=channel,
                    dist=package,
                    permission=permission,
                    by=by,
                )
        self._noted.discard(key)
        return bool(found)

    def note(self, channel: str, package: str, permission: str) -> None:
        """Remember that a permission was asked for without a row, so that the list shows it."""
        key = (channel, package, permission)
        if key not in self._noted:
            self._fast.write("INSERT OR IGNORE INTO asked VALUES (?, ?, ?, ?)", (*key, self._clock()))
            self._noted.add(key)

    def list(self, *, asked: bool = False) -> tuple[PermissionRow, ...]:
        """Return every row in force, in order of channel, package and permission.

        Args:
            asked: also those that were asked for and never set, marked `default`.
        """
        now = self._clock()
        rows = {key: row for key, row in self.look().rows.items() if row.ends > now}
        if asked:
            for channel, package, permission, at in self._fast.read("SELECT * FROM asked"):
                key = (channel, package, permission)
                if key not in rows:
                    rows[key] = PermissionRow(
                        *key, Setting.ASK, None, "", datetime.fromtimestamp(at, UTC), default=True
                    )
        return tuple(rows[key] for key in sorted(rows))


def _is_pattern(permission: str) -> bool:
    """Tell whether a permission names several tools of one server."""
    prefix = permission[:-1]
    return (
        permission.endswith("*")
        and permission.startswith(_FOREIGN)
        and "*" not in prefix
        and "_" in prefix[len(_FOREIGN) + 1 :]
    )


def _patterns(
    rows: Iterable[PermissionRow],
) -> Mapping[tuple[str, str], tuple[tuple[str, PermissionRow], ...]]:
    """Return the rows that are patterns as (prefix, row), the longest first."""
    found: dict[tuple[str, str], list[tuple[str, PermissionRow]]] = {}
    for row in rows:
        if _is_pattern(row.permission):
            found.setdefault((row.channel, row.package), []).append((row.permission[:-1], row))
    return {key: tuple(sorted(pairs, key=lambda pair: -len(pair[0]))) for key, pairs in found.items()}


def _paired(rows: Iterable[Any]) -> _Pairs:
    found: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for dist, name, descriptor_hash, files_hash in rows:
        found.setdefault((dist, name), set()).add((descriptor_hash, files_hash))
    return {key: frozenset(pairs) for key, pairs in found.items()}


def _stricter(
    found: PermissionRow | None, wider: PermissionRow | None, clock: Callable[[], float]
) -> PermissionRow | None:
    """Return which of two rows counts: the wider one where there is no other, or where only it denies."""
    if wider is None or wider.ends <= clock():
        return found
    if found is None:
        return wider
    return wider if wider.setting is Setting.DENY and found.setting is not Setting.DENY else found


def _unpin(connection: sqlite3.Connection, package: str, name: str) -> None:
    """Drop an ability's pins where nothing of it is allowed any more."""
    allowed = connection.execute(
        "SELECT 1 FROM permissions WHERE package = ? AND setting = 'allow' AND (permission = ? "
        "OR substr(permission, 1, ?) = ?) LIMIT 1",
        (package, name, len(name) + 1, f"{name}."),
    ).fetchone()
    if allowed is None:
        connection.execute("DELETE FROM pins WHERE dist = ? AND name = ?", (package, name))


def _row(
    channel: str, package: str, permission: str, setting: str, until: float | None, by: str, at: float
) -> PermissionRow:
    return PermissionRow(
        channel,
        package,
        permission,
        Setting(setting),
        None if until is None else datetime.fromtimestamp(until, UTC),
        by,
        datetime.fromtimestamp(at, UTC),
        ends=float("inf") if until is None else until,
    )


def _moment(until: datetime, now: float) -> float:
    if until.tzinfo is None:
        raise ValueError(f"until needs a time zone: {until.isoformat()}")
    if until.timestamp() <= now:
        raise ValueError(f"until is already over: {until.isoformat()}")
    return until.timestamp()
