"""What a model is told of a call that the host did not run, or could not see to its end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import frozen

from ..errors import LedgerUnavailable
from ..result import ToolResult

if TYPE_CHECKING:
    from ..gate.gate import Admission

__all__ = [
    "Ended",
    "busy",
    "cancelled",
    "cannot_record",
    "denied",
    "described",
    "gate_failed",
    "no_background",
    "not_begun",
    "timed_out",
    "worker_died",
]

#: characters of an error's message that the trail keeps.
DETAIL_LENGTH = 2000
#: frames of an error's traceback that the trail keeps.
_MOST_PLACES: Final = 4
#: where the host's own code lies; its frames tell an author nothing.
_HOST: Final = str(Path(__file__).parents[1]) + os.sep


@frozen
class Ended:
    """How a call ended: the result, and what only the trail is told."""

    result: ToolResult
    detail: str | None = None


def described(error: BaseException) -> str:
    """Return an exception's type, message and place for the trail, whatever its `__str__` does."""
    kind = type(error).__qualname__
    try:
        message = str(error)
    except BaseException as broken:  # even SystemExit: it is only text that is asked for
        message = f"(its message could not be read: {type(broken).__qualname__})"
    text = f"{kind}: {message}" if message else kind
    places = " < ".join(_places(error))[: DETAIL_LENGTH // 2]
    end = f" ({places})" if places else ""
    room = DETAIL_LENGTH - len(end)
    return (text if len(text) <= room else text[: room - 1] + "…") + end


def _places(error: BaseException) -> list[str]:
    """Return `file:line in function` of the innermost frames that are not the host's own, innermost first.

    Lines of code and values are left out: either may hold what a person called secret.
    """
    found: list[str] = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if not code.co_filename.startswith(_HOST):
            found.append(f"{code.co_filename}:{trace.tb_lineno} in {code.co_name}")
        trace = trace.tb_next
    return found[: -_MOST_PLACES - 1 : -1]


def not_begun(name: str, closed: bool = False) -> Ended:
    """Return the refusal of a call that was cancelled, or whose host was closed, before it began."""
    why = "the host is closed" if closed else "it was cancelled first"
    return _refused(f"{name} was not run: {why}", "cancelled", "do not retry in this turn.")


def no_background(name: str, channel: str) -> Ended:
    """Return the refusal of `async` where the channel does not offer it."""
    return _refused(
        f"{name} was not run: the channel {channel} does not run calls in the background",
        "background-not-offered",
        "call it again without async.",
    )


def denied(name: str, admission: Admission) -> Ended:
    """Return what the gate's no says."""
    message = admission.message or f"{name} may not run here"
    code = admission.code or "permission-denied"
    result = ToolResult.error(message, code=code, hint=admission.hint)
    return Ended(result, admission.detail or admission.decision.reason or message)


def gate_failed(name: str, error: Exception) -> Ended:
    """Return the refusal where the gate itself broke: a gate that cannot answer is closed."""
    result = ToolResult.error(
        f"{name} was not run: whether it may could not be decided",
        code="permission-denied",
        hint="do not retry.",
    )
    return Ended(result, f"the gate failed with {described(error)}")


def cannot_record(name: str, error: LedgerUnavailable) -> Ended:
    """Return the refusal of a call that would have left no record."""
    result = ToolResult.error(
        f"{name} was not run, because the call could not be recorded",
        code="cannot-record",
        hint="do not retry; the person has to repair the ledger (`chalie doctor`).",
    )
    return Ended(result, described(error))


def busy(name: str) -> Ended:
    """Return the refusal where nothing is left to run a call on."""
    return _refused(f"{name} was not run: too many calls are running or stuck", "busy", "try again later.")


def cancelled(name: str) -> Ended:
    """Return the result of a call whose own result is not delivered any more."""
    return _refused(
        f"the call of {name} was cancelled",
        "cancelled",
        "it may have taken effect before it was stopped; its result is not delivered.",
    )


def timed_out(name: str, limit_s: float | None) -> Ended:
    """Return the result of a call that did not end within its limit."""
    return _refused(
        f"{name} did not finish within {limit_s:g} s",
        "timed-out",
        "whether it took effect is not known; check before you call it again.",
    )


def worker_died(name: str, how: str) -> Ended:
    """Return the result of a call whose worker process ended under it; `how` is for the trail."""
    result = ToolResult.error(
        f"the worker process of {name} ended before it answered",
        code="worker-died",
        hint="whether the call took effect is not known; a new worker is started for the next call.",
    )
    return Ended(result, how)


def _refused(message: str, code: str, hint: str) -> Ended:
    return Ended(ToolResult.error(message, code=code, hint=hint))
