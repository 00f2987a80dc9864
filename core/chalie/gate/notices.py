"""What is said of a hold: to whoever answers it, and to the conversation whose call it was."""

from __future__ import annotations

import copy
from datetime import UTC, datetime

from ..calls import HoldView, SideEffect
from ..envelope import render
from ..errors import ChalieError
from ..ledger.hold import Hold
from ..result import ToolResult

__all__ = ["already", "declined", "expired", "interrupted", "view_of", "void"]


def declined(hold: Hold) -> str:
    """Return the envelope for a conversation whose call was declined after it had been told to wait."""
    return _refusal(hold, f"{hold.permission} was declined by the person; do not retry.", "declined")


def expired(hold: Hold) -> str:
    """Return the envelope for a conversation whose call nobody answered in time."""
    return _refusal(hold, f"{hold.permission} was not run: nobody answered in time", "permission-denied")


def void(hold: Hold, reason: str) -> str:
    """Return the envelope for a conversation whose call fits nothing any more."""
    hint = "what the person was asked about is not there any more; call it again if it is still wanted."
    return _refusal(hold, f"{hold.permission} was not run: {reason}", "permission-denied", hint)


def interrupted(hold: Hold) -> str:
    """Return the envelope for a conversation whose call was running when its process ended."""
    hint = "whether it took effect is not known; check before you call it again."
    return _refusal(hold, f"{hold.name} was running when its process ended", "cancelled", hint)


def _refusal(hold: Hold, message: str, code: str, hint: str | None = None) -> str:
    return render(hold.name, ToolResult.error(message, code=code, hint=hint))


def already(hold: Hold) -> ChalieError:
    """Return the refusal of an answer that comes too late, saying what became of the hold."""
    how = {
        "approved": "was approved",
        "spent": "was approved and is being run",
        "started": "was approved and is running",
        "done": "was approved and has run",
        "failed": "was approved and ran; the tool answered with an error",
        "interrupted": "was approved; whether it took effect is not known",
        "declined": "was declined",
        "expired": "expired, nobody having answered in time",
        "void": "is void",
    }.get(hold.state, f"is {hold.state}")
    by = f" by {hold.decided_by}" if hold.decided_by else ""
    why = f": {hold.detail}" if hold.detail and hold.state in ("void", "interrupted") else ""
    return ChalieError(
        f"the hold {hold.id} {how}{by}{why}", code="already-decided", hint=f"see: chalie holds {hold.id}"
    )


def view_of(hold: Hold) -> HoldView:
    """Return what a person is shown of a stored hold."""
    return HoldView(
        id=hold.id,
        name=hold.name,
        dist=hold.dist,
        permission=hold.permission,
        effect=SideEffect(hold.effect),
        arguments=copy.deepcopy(dict(hold.arguments)),  # whoever is shown them may change them
        channel=hold.channel,
        principal=hold.principal,
        conversation=hold.conversation,
        model_says=hold.model_says,
        reasons=hold.reasons,
        must_ask=hold.must_ask,
        call_id=hold.call_id,
        expires_at=datetime.fromtimestamp(hold.expires_at, UTC),
    )
