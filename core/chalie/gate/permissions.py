"""What a person's rows mean to the gate, and the line that sets one."""

from __future__ import annotations

import shlex
from typing import Final

from ..calls import Decision, Setting, Verdict
from ..ledger.permissions import PermissionRow

__all__ = ["row_decision", "row_verdict", "setting_line"]


#: what was made of the rows that were looked at, by the row's identity: made once and said many times.
_made: Final[dict[int, tuple[PermissionRow, Decision]]] = {}
_MOST: Final = 4096


def row_decision(row: PermissionRow) -> Decision:
    """Return the decision of a row that nobody narrows, on a channel where somebody can be asked."""
    made = _made.get(id(row))
    if made is not None and made[0] is row:
        return made[1]
    if len(_made) >= _MOST:
        _made.clear()
    decision = Decision(row.setting, False, (_verdict(row),))
    _made[id(row)] = (row, decision)  # the row is kept, so that no other gets its identity
    return decision


def row_verdict(row: PermissionRow) -> Verdict:
    """Return what a row contributes to a decision."""
    return row_decision(row).verdicts[0]


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
