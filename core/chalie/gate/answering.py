"""A person's answer to a call that waits, given from anywhere: recorded once, and the call then run once."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import Final

from ..calls import Answer, AnswerKind
from ..errors import ChalieError
from ..ledger import Ledger
from ..ledger.hold import Hold
from . import notices
from .holds import Holds

__all__ = ["answered"]

#: seconds that a live host has to take an approved hold on before the answering process does.
_TAKEN_S: Final = 5.0
_LOOK_S: Final = 0.05


def answered(
    holds: Holds,
    ledger: Ledger,
    run: Callable[[str], str | None],
    hold_id: str,
    kind: AnswerKind | str,
    by: str,
    until: datetime | None = None,
) -> Hold:
    """Record an answer and, where it is yes, see to it that the call runs.

    Args:
        holds: this process's.
        ledger: where they are.
        run: runs an approved hold in this process; does nothing where another took it on.
        hold_id: its id, or a beginning of it.
        kind: the answer.
        by: whose it is, as proven.
        until: end of a time-limited allowance.

    Raises:
        ChalieError: `hold-unknown`, `already-decided`, `not-allowed`, `not-ready`.
    """
    hold, kind = holds.get(hold_id), AnswerKind(kind)
    if kind in (AnswerKind.DECLINE, AnswerKind.DECLINE_ALWAYS):
        return holds.answered(hold, Answer(kind, by))
    runner = ledger.holds.runner(hold)
    if hold.environment != holds.environment and runner is None:
        raise ChalieError(
            f"the hold {hold.id} was asked in another Python environment ({hold.environment}), which is the "
            "only one that can run it",
            code="not-allowed",
            hint="approve it with the chalie command of that environment, or start the agent there again",
        )
    if hold.state != "approved":
        hold = holds.answered(hold, Answer(kind, by, until))
    elif runner is not None:
        raise notices.already(hold)
    _seen_to(holds, ledger, run, hold)
    return holds.current(hold)


def _seen_to(holds: Holds, ledger: Ledger, run: Callable[[str], str | None], hold: Hold) -> None:
    """Give the live host of the conversation a moment to take the hold on; else run it here."""
    runner = ledger.holds.runner(hold)
    if runner is not None and (runner != ledger.holds.own_mark or holds.is_waited_for(hold.id)):
        end = time.monotonic() + _TAKEN_S
        while time.monotonic() < end:
            if ledger.holds.state(hold.id) != "approved":
                return
            time.sleep(_LOOK_S)
    if hold.environment == holds.environment:
        run(hold.id)
