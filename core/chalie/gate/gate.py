"""The gate: decides on a call, and asks a person where the decision is to ask."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from attrs import frozen

from ..calls import (
    Answer,
    AnswerKind,
    Approver,
    Call,
    Channel,
    Decision,
    HoldView,
    Setting,
    Sight,
    Verdict,
)
from ..catalogue.descriptor import Descriptor
from ..ledger import Ledger
from .approvers import answer_by
from .fold import fold
from .permissions import setting_line
from .policies import Policies

__all__ = ["INTERNAL", "Admission", "Gate"]

#: the host's own tools, by (distribution, name): no package and no name can claim a place here.
INTERNAL: Final[frozenset[tuple[str, str]]] = frozenset(
    {
        ("chalie", "find_tools"),
        ("chalie", "find_skills"),
        ("chalie", "read_result"),
        ("chalie-ability-memory", "memory"),
    }
)

_UNDERIVED: Final = Verdict(
    author="host", kind="limit", value="must_ask", reason="which of its actions this is could not be told"
)


@frozen
class Admission:
    """Whether a call may run, and what to tell its caller where it may not.

    Attributes:
        decision: the gate's word before anybody was asked.
        allowed: whether the call may run.
        code: the error's code, or None.
        message, hint: for the envelope.
        answered_by: who said yes or no, where somebody was asked.
    """

    decision: Decision
    allowed: bool
    code: str | None = None
    message: str = ""
    hint: str | None = None
    answered_by: str | None = None


class Gate:
    """Every call on every road passes here once.

    Args:
        ledger: where the rows are, and the trail.
        policies: the enabled policies, or None for none.
        clock: the time in seconds since 1970.
        ask_timeout_s: seconds that an approver may take before it counts as a no; None waits on the
            caller's own thread for as long as it takes.
    """

    def __init__(
        self,
        ledger: Ledger,
        policies: Policies | None = None,
        *,
        clock: Callable[[], float] = time.time,
        ask_timeout_s: float | None = 300.0,
    ) -> None:
        self._ledger = ledger
        self._policies = policies or Policies()
        self._clock = clock
        self._ask_timeout_s = ask_timeout_s
        self._passes = 0
        self._counting = threading.Lock()

    @property
    def passes(self) -> int:
        """How many calls came through `admit`, whatever became of them."""
        return self._passes

    @property
    def closed(self) -> Verdict | None:
        """Why no call at all may run, or None."""
        return self._policies.closed

    def decide(self, call: Call, channel: Channel, *, complete: bool = False) -> Decision:
        """Return the decision on a call, changing nothing: for calls, search and explanations alike.

        Args:
            call: `arguments` may be None, when a search asks.
            channel: its policy channel's rows apply.
            complete: also hear the opinions that a row or the internal table makes void.

        Raises:
            LedgerUnavailable: the rows cannot be read.
        """
        row = self._ledger.permissions.for_call(channel.policy, call.dist, call.name, call.permission)
        internal = (call.dist, call.name) in INTERNAL
        said = self._policies.ask(call, reviewed=complete or not (row is not None or internal))
        opinions, limits = said.opinions, said.limits
        if call.requires_approval:
            opinions = (*opinions, Verdict(call.dist, "opinion", "ask", "the tool itself asks for approval"))
        if call.must_ask:
            limits = (*limits, _UNDERIVED)
        return fold(row, internal, opinions, limits, channel.has_person)

    def sight(
        self, descriptor: Descriptor, channel: Channel, principal: str, conversation: str | None
    ) -> Sight:
        """Return how a search on a channel shows a tool.

        Hidden is only what a row or a limit denies for every action. What nobody can be asked about, or what
        a failing policy holds up, is shown with `not_allowed`, so that a person can be told what to do.
        """
        blocked: tuple[Call, Decision] | None = None
        for permission, effect in descriptor.permissions():
            call = Call(
                dist=descriptor.dist,
                name=descriptor.name,
                permission=permission,
                effect=effect,
                arguments=None,
                channel=channel.policy,
                principal=principal,
                conversation=conversation,
                descriptor_hash=descriptor.hash,
                requires_approval=descriptor.requires_approval,
            )
            decision = self.decide(call, channel)
            if decision.setting is not Setting.DENY:
                return Sight()
            if blocked is None and _deciding(decision).kind in ("channel", "failure"):
                blocked = (call, decision)
        if blocked is None:
            return Sight(hidden=True)
        call, decision = blocked
        if _deciding(decision).kind == "failure":
            return Sight(not_allowed=decision.reason)
        return Sight(not_allowed=_way_out(call, channel, decision) or decision.reason)

    def admit(
        self, call: Call, channel: Channel, approver: Approver | None, view: Callable[[], HoldView]
    ) -> Admission:
        """Let a call through, ask a person about it, or refuse it. The one way to a run.

        Args:
            call: healed and validated.
            channel: where it was made.
            approver: who can be asked, or None.
            view: makes what the person is shown, its secrets masked; its id is the call's.

        Raises:
            LedgerUnavailable: rows cannot be read, or an answer cannot be recorded; the call must not run.
        """
        with self._counting:
            self._passes += 1
        decision = self.decide(call, channel)
        if not any(verdict.kind in ("row", "internal") for verdict in decision.verdicts):
            self._ledger.permissions.note(channel.policy, call.dist, call.permission)
        if decision.setting is Setting.ALLOW:
            return Admission(decision, allowed=True)
        if decision.setting is Setting.DENY:
            return _refused(call, channel, decision)
        if approver is None:
            message = f"{call.permission} needs a person's yes, and nobody can be asked here; do not retry."
            line = setting_line(channel.policy, call.dist, call.permission)
            hint = None if decision.must_ask else f"to allow it: {line}"
            return Admission(decision, False, "permission-denied", message, hint)
        return self._asked(call, channel, decision, approver, view())

    def _asked(
        self, call: Call, channel: Channel, decision: Decision, approver: Approver, view: HoldView
    ) -> Admission:
        answer, failure = self._answer(approver, view)
        kind = AnswerKind.DECLINE if answer is None else answer.kind
        by = None if answer is None else answer.by
        if answer is not None and not _is_once(answer, decision):
            declined = kind is AnswerKind.DECLINE_ALWAYS
            self._ledger.permissions.set(
                channel.policy,
                call.dist,
                call.permission,
                Setting.DENY if declined else Setting.ALLOW,
                by=answer.by,
                until=answer.until if kind is AnswerKind.UNTIL else None,
            )
        self._ledger.trail.append(
            "approval.decided",
            call_id=view.id,
            channel=channel.policy,
            principal=call.principal,
            conversation=call.conversation,
            dist=call.dist,
            name=call.name,
            permission=call.permission,
            effect=call.effect.value,
            setting=kind.value,
            detail=failure,
            by=by,
        )
        if kind in (AnswerKind.DECLINE, AnswerKind.DECLINE_ALWAYS):
            return _declined(call, decision, failure, by)
        # the answer may have taken minutes: what was denied meanwhile stays denied
        again = self.decide(call, channel)
        if again.setting is Setting.DENY:
            return _refused(call, channel, again, by)
        return Admission(decision, allowed=True, answered_by=by)

    def _answer(self, approver: Approver, view: HoldView) -> tuple[Answer | None, str | None]:
        """Return the answer, or None and why there is none: an approver that fails has not said yes."""
        box: list[Answer | BaseException] = []

        def ask() -> None:
            try:
                box.append(approver.ask(view))
            except BaseException as error:
                box.append(error)

        if self._ask_timeout_s is None:
            ask()
        else:
            context = contextvars.copy_context()
            context.run(answer_by.set, time.monotonic() + self._ask_timeout_s)
            thread = threading.Thread(target=context.run, args=(ask,), name="chalie-ask", daemon=True)
            thread.start()
            thread.join(self._ask_timeout_s)
        if not box:
            return None, f"no answer within {self._ask_timeout_s:g} s"
        answer = box[0]
        if isinstance(answer, KeyboardInterrupt) and self._ask_timeout_s is None:
            raise answer
        if isinstance(answer, BaseException):
            return None, f"asking failed: {type(answer).__name__}: {_line(answer)}"
        flaw = _flaw(answer, self._clock())
        return (answer, None) if flaw is None else (None, f"the answer cannot be used: {flaw}")


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


def _is_once(answer: Answer, decision: Decision) -> bool:
    """Tell whether an answer writes no row: what must be asked each time can only be allowed once."""
    if answer.kind in (AnswerKind.ALWAYS, AnswerKind.UNTIL):
        return decision.must_ask
    return answer.kind is not AnswerKind.DECLINE_ALWAYS


def _declined(call: Call, decision: Decision, failure: str | None, by: str | None) -> Admission:
    if failure is None:
        message = f"{call.permission} was declined by the person; do not retry."
    else:
        message = f"{call.permission} was not approved ({failure}); do not retry."
    hint = "go on without it, or ask the person what they would rather have"
    return Admission(decision, False, "declined", message, hint, by)


def _refused(call: Call, channel: Channel, decision: Decision, by: str | None = None) -> Admission:
    message = f"{call.permission} may not run on {channel.name}: {decision.reason}; do not retry."
    return Admission(decision, False, "permission-denied", message, _way_out(call, channel, decision), by)


def _way_out(call: Call, channel: Channel, decision: Decision) -> str | None:
    """Return the line that would allow the call, where a row would: no row widens a limit."""
    limited = any(verdict.kind == "limit" and verdict.counted for verdict in decision.verdicts)
    if limited or _deciding(decision).kind != "channel":
        return None
    return f"to allow it: {setting_line(channel.policy, call.dist, call.permission)}"


def _deciding(decision: Decision) -> Verdict:
    """Return the verdict that decided: the last one that counts."""
    return next(verdict for verdict in reversed(decision.verdicts) if verdict.counted)


def _line(error: BaseException) -> str:
    try:
        return " ".join(str(error).split())[:300]
    except Exception:
        return "(its message cannot be shown)"
