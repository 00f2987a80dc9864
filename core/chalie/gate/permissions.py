"""What a person's rows mean to the gate, and the line that sets one."""

from __future__ import annotations

import shlex
from typing import Final

from ..calls import Setting, Verdict
from ..ledger.permissions import PermissionRow

__all__ = ["row_verdict", "setting_line"]


#: verdicts of the rows that were looked at, by the row's identity: each is made once and said many times.
_made: Final[dict[int, tuple[PermissionRow, Verdict]]] = {}
_MOST: Final = 4096


def row_verdict(row: PermissionRow) -> Verdict:
    """Return what a row contributes to a decision."""
    made = _made.get(id(row))
    if made is not None and made[0] is row:
        return made[1]
    if len(_made) >= _MOST:
        _made.clear()
    verdict = _verdict(row)
    _made[id(row)] = (row, verdict)  # the row is kept, so that no other gets its identity
    return verdict


def _verdict(row: PermissionRow) -> Verdict:
    until = "" if row.until is None else f" until {row.until:%Y-%m-%d %H:%M} UTC"
    reason = f"{row.permission} is set to {row.setting.value} on {row.channel}{until}, by {row.by}"
    if row.lapsed:
        reason = f"{row.permission} was allowed on {row.channel}, by {row.by}, but has changed since:"
        reason = "\n".join((reason, *row.lapsed))
    return Verdict(
        author="you",
        kind="row",
        value=row.setting.value,
        reason=reason,
        source=f"permissions: {row.channel} {row.package} {row.permission}",
    )


def setting_line(channel: str, package: str, permission: str, setting: Setting = Setting.ALLOW) -> str:
    """Return the command that sets a permission, ready to be pasted into a shell."""
    words = ("chalie", "permissions", "set", channel, permission, setting.value, "--package", package)
    return shlex.join(words)
