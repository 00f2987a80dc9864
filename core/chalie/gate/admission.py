"""Whether a call may run, and what its caller is told where it may not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from attrs import frozen

from ..calls import Call, Channel, Decision, Verdict
from ..ledger.hold import Hold
from .permissions import setting_line

__all__ = [
    "Admission",
    "deciding",
    "declined",
    "elsewhere",
    "expired",
    "over",
    "pending",
    "refused",
    "way_out",
]

_GO_ON: Final = "go on without it, or ask the person what they would rather have"


@frozen
class Admission:
    """Whether a call may run, and what to tell its caller where it may not.

    Attributes:
        decision: the gate's word before anybody was asked.
        allowed: whether the call may run.
        code: the error's code, or None.
        message, hint: for the envelope.
        answered_by: who said yes or no, where somebody was asked.
        hold: what was answered, where the call may run because of that; spent, so that it must be started
            directly before the run and finished after it.
        detail: what only the trail is told.
        given: the count of changes to people's settings that it was decided at without looking whether there
            were more; the run may be recorded only while that is the count. None where it was looked.
    """

    decision: Decision
    allowed: bool
    code: str | None = None
    message: str = ""
    hint: str | None = None
    answered_by: str | None = None
    hold: Hold | None = None
    detail: str | None = None
    given: int | None = None


def declined(permission: str, decision: Decision, by: str | None, *, again: bool = False) -> Admission:
    """Return the refusal of what a person declined.

    Args:
        again: it is the same call once more, and nobody was asked.
    """
    when = " before, in this conversation" if again else ""
    message = f"{permission} was declined by the person{when}; do not retry."
    return Admission(decision, False, "declined", message, _GO_ON, by)


def pending(hold: Hold, decision: Decision, failure: str | None = None) -> Admission:
    """Return what the caller of a call is told that waits for a person."""
    message = (
        f"{hold.permission} waits for a person's yes, until {_moment(hold.expires_at)}; do not retry: what "
        "becomes of it comes to this conversation."
    )
    hint = f"the person answers with: chalie approve {hold.id}, or: chalie decline {hold.id}"
    detail = f"hold {hold.id}" + (f": {failure}" if failure else "")
    return Admission(decision, False, "approval-pending", message, hint, detail=detail)


def elsewhere(hold: Hold, decision: Decision) -> Admission:
    """Return what the caller is told whose call was approved and taken on by another process."""
    message = (
        f"{hold.permission} was approved and is run by another process; do not retry: its result comes to "
        "this conversation."
    )
    return Admission(decision, False, "approval-pending", message, None, hold.decided_by)


def expired(hold: Hold, decision: Decision) -> Admission:
    """Return the refusal of a call that nobody answered in time."""
    message = (
        f"{hold.permission} was not run: nobody answered until {_moment(hold.expires_at)}; do not retry."
    )
    return Admission(decision, False, "permission-denied", message, _GO_ON)


def over(hold: Hold, decision: Decision) -> Admission:
    """Return the refusal of a call whose hold ended in another way while its caller waited."""
    message = f"{hold.permission} was not run: {hold.detail or f'its hold is {hold.state}'}; do not retry."
    return Admission(decision, False, "permission-denied", message, _GO_ON)


def refused(call: Call, channel: Channel, decision: Decision, by: str | None = None) -> Admission:
    """Return the refusal of what the gate denies."""
    message = f"{call.permission} may not run on {channel.name}: {decision.reason}; do not retry."
    return Admission(decision, False, "permission-denied", message, way_out(call, channel, decision), by)


def way_out(call: Call, channel: Channel, decision: Decision) -> str | None:
    """Return the line that would allow the call, where a row would: no row widens a limit."""
    limited = any(verdict.kind == "limit" and verdict.counted for verdict in decision.verdicts)
    if limited or deciding(decision).kind != "channel":
        return None
    return f"to allow it: {setting_line(channel.policy, call.dist, call.permission)}"


def deciding(decision: Decision) -> Verdict:
    """Return the verdict that decided: the last one that counts."""
    return next(verdict for verdict in reversed(decision.verdicts) if verdict.counted)


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
