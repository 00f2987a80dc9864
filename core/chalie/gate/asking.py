"""Asking a person about one call: a stored hold, an approver, and whoever answers elsewhere meanwhile."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from ..calls import Answer, AnswerKind, Approver, Decision
from ..ledger.hold import OPEN, Hold
from .admission import Admission, declined, elsewhere, expired, over, pending
from .approvers import answer_by, settled
from .holds import Holds
from .notices import view_of

__all__ = ["Asking"]

#: questions that may be with approvers at once, those counted that nobody waits for any more; a call beyond
#: waits among the holds without being asked about.
MOST_ASKED: Final = 128
#: seconds between looks at whether a hold was answered from elsewhere.
_LOOK_S: Final = 0.2


class Asking:
    """Asks about calls whose setting is `ask`.

    Args:
        holds: where each is stored before anyone is asked.
        clock: the time in seconds since 1970.
        ask_timeout_s: seconds that a caller waits for an answer; None waits on the caller's own thread for as
            long as the approver takes.
    """

    def __init__(self, holds: Holds, clock: Callable[[], float], ask_timeout_s: float | None) -> None:
        self._holds = holds
        self._clock = clock
        self._timeout_s = ask_timeout_s
        self._asked = 0
        self._counting = threading.Lock()

    def ask(self, hold: Hold, decision: Decision, approver: Approver | None) -> Admission:
        """Return whether the call of a stored hold may run now.

        An answer may come from the approver or, meanwhile, from anybody who is allowed to give one. Where
        none comes the hold stays, and the caller is told that it waits.

        Raises:
            LedgerUnavailable: an answer could not be stored; the call must not run.
        """
        with self._holds.waiting(hold):
            if hold.state == "approved" or approver is None:
                return self._settled(hold, decision, None)
            answer, failure = self._answer(approver, hold)
            if answer is not None:
                changed = self._holds.answer(hold, answer, spend=True)
                if changed is not None:
                    if changed.state == "declined":
                        return declined(hold.permission, decision, answer.by)
                    return Admission(decision, True, answered_by=answer.by, hold=changed)
            return self._settled(hold, decision, failure)

    def _settled(self, hold: Hold, decision: Decision, failure: str | None) -> Admission:
        """Return what follows from the hold's state, which others change as well."""
        now = self._holds.current(hold)
        if now.state in OPEN:
            now = self._holds.leave(hold)
        if now.state == "approved":
            spent = self._holds.spend(now.id)
            if spent is not None:
                return Admission(decision, True, answered_by=spent.decided_by, hold=spent)
            now = self._holds.current(hold)
        if now.state in OPEN and now.expires_at > self._clock():
            return pending(now, decision, failure)
        if now.state == "declined":
            return declined(now.permission, decision, now.decided_by)
        if now.state in (*OPEN, "expired", "approved"):
            return expired(now, decision)
        if now.state == "void":
            return over(now, decision)
        return elsewhere(now, decision)

    def _answer(self, approver: Approver, hold: Hold) -> tuple[Answer | None, str | None]:
        """Return the answer, or None and why there is none: an approver that fails has not said anything."""
        view = view_of(hold)
        box: list[Answer | BaseException] = []
        done = threading.Event()

        def ask() -> None:
            try:
                box.append(approver.ask(view))
            except BaseException as error:
                box.append(error)
            with self._counting:
                self._asked -= 1
            done.set()

        with self._counting:
            if self._asked >= MOST_ASKED:
                return None, f"{self._asked} questions are with approvers already"
            self._asked += 1

        if self._timeout_s is None:
            ask()
        else:
            try:
                reason = self._wait(ask, done, hold)
            except RuntimeError as error:  # the system gives no more threads
                with self._counting:
                    self._asked -= 1
                reason = f"asking failed: {_line(error)}"
            if not box:
                return None, reason
        answer = box[0]
        if isinstance(answer, KeyboardInterrupt) and self._timeout_s is None:
            raise answer
        if isinstance(answer, BaseException):
            return None, f"asking failed: {type(answer).__name__}: {_line(answer)}"
        flaw = _flaw(answer, self._clock())
        return (answer, None) if flaw is None else (None, f"the answer cannot be used: {flaw}")

    def _wait(self, ask: Callable[[], None], done: threading.Event, hold: Hold) -> str | None:
        """Ask on a thread of its own until it is answered, here or elsewhere, or too late."""
        assert self._timeout_s is not None
        end = time.monotonic() + self._timeout_s
        answered = threading.Event()
        context = contextvars.copy_context()
        context.run(answer_by.set, end)
        context.run(settled.set, answered)
        threading.Thread(target=context.run, args=(ask,), name="chalie-ask", daemon=True).start()
        try:
            while not done.wait(max(0.0, min(_LOOK_S, end - time.monotonic()))):
                if self._holds.state(hold) != hold.state:
                    return None
                if time.monotonic() >= end:
                    return f"no answer within {self._timeout_s:g} s"
        finally:
            answered.set()  # a question that is still shown is taken back
        return None


def _flaw(answer: object, now: float) -> str | None:
    """Return what is wrong with an answer, or None: whoever answers is a program of somebody else's."""
    if not isinstance(answer, Answer) or not isinstance(answer.kind, AnswerKind):
        return f"it is a {type(answer).__name__}"
    if not isinstance(answer.by, str) or not answer.by.strip():
        return "it does not say whose it is"
    if answer.kind is AnswerKind.UNTIL:
        if not isinstance(answer.until, datetime) or answer.until.tzinfo is None:
            return "it does not say until when, with a time zone"
        if answer.until <= datetime.fromtimestamp(now, UTC):
            return "its time is over already"
    return None


def _line(error: BaseException) -> str:
    try:
        return " ".join(str(error).split())[:300]
    except Exception:
        return "(its message cannot be shown)"
