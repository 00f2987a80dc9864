"""The rows that people set: what a channel may do with a package's permissions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final

from attrs import frozen

from ..calls import Setting
from .database import Database
from .trail import record

__all__ = ["PermissionRow", "Permissions"]

_READ: Final = "SELECT channel, package, permission, setting, until, by, at FROM permissions"
_SET: Final = """INSERT INTO permissions (channel, package, permission, setting, until, by, at)
    VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (channel, package, permission) DO UPDATE SET
    setting = excluded.setting, until = excluded.until, by = excluded.by, at = excluded.at"""

_Key = tuple[str, str, str]


@frozen
class PermissionRow:
    """A person's setting of one permission, or a permission that was asked for without one.

    Attributes:
        channel: the policy channel.
        package: the distribution or MCP server.
        permission: `name`, covering all its actions, or `name.action`.
        setting: what was set; `ask` where nothing was.
        until: when it ends (UTC), or None.
        by: who set it; empty where nobody did.
        at: when it was set, or first asked for.
        default: True where nobody set it, so that it is no row for the gate.
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


@frozen
class _Copy:
    """The rows as last read: the connection's mark, the table's counter, and the rows."""

    mark: int
    counter: int
    rows: Mapping[_Key, PermissionRow]


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
        self._copy = _Copy(-1, -1, {})
        self._noted: set[_Key] = set()

    def get(self, channel: str, package: str, permission: str) -> PermissionRow | None:
        """Return the row of exactly this permission, or None; a row whose time is over does not count."""
        row = self._rows().get((channel, package, permission))
        return row if row is None or row.ends > self._clock() else None

    def for_call(self, channel: str, package: str, name: str, permission: str) -> PermissionRow | None:
        """Return the row that covers a call: the action's own, else the bare name's, else None."""
        rows = self._rows()
        row = rows.get((channel, package, permission))
        if row is not None and row.ends > self._clock():
            return row
        if permission == name:
            return None
        row = rows.get((channel, package, name))
        return row if row is None or row.ends > self._clock() else None

    def set(
        self,
        channel: str,
        package: str,
        permission: str,
        setting: Setting | str,
        *,
        by: str,
        until: datetime | None = None,
    ) -> PermissionRow:
        """Set a permission and record it on the trail, both or neither.

        Args:
            setting: `allow`, `ask` or `deny`.
            by: who said so, as proven (`terminal:ada`).
            until: timezone-aware end of the setting, in the future.

        Raises:
            ValueError: for anything else in these arguments.
            LedgerUnavailable: it could not be stored.
        """
        setting = Setting(setting)
        if setting is Setting.INTERNAL:
            raise ValueError("'internal' is the host's own; a person sets allow, ask or deny")
        if not (channel and package and permission and by):
            raise ValueError("a row needs a channel, a package, a permission and who set it")
        now = self._clock()
        ends = None if until is None else _moment(until, now)
        row = _row(channel, package, permission, setting, ends, by, now)
        with self._durable().transaction() as connection:
            connection.execute(_SET, (channel, package, permission, setting.value, ends, by, now))
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
        rows = {key: row for key, row in self._rows().items() if row.ends > now}
        if asked:
            for channel, package, permission, at in self._fast.read("SELECT * FROM asked"):
                key = (channel, package, permission)
                if key not in rows:
                    rows[key] = PermissionRow(
                        *key, Setting.ASK, None, "", datetime.fromtimestamp(at, UTC), default=True
                    )
        return tuple(rows[key] for key in sorted(rows))

    def _rows(self) -> Mapping[_Key, PermissionRow]:
        copy = self._copy
        # changes with every commit of *another* connection: the rows are never set through this one
        mark = self._fast.value("PRAGMA data_version")
        if mark == copy.mark:
            return copy.rows
        counter = self._fast.value("SELECT n FROM changes WHERE name = 'permissions'")
        rows = copy.rows
        if counter != copy.counter:
            rows = {(row[0], row[1], row[2]): _row(*row) for row in self._fast.read(_READ)}
        # one assignment: a thread that is late replaces all three, and its old mark brings the next look
        self._copy = _Copy(mark, counter, rows)
        return rows


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
