"""The gate: decides on a call, and asks a person where the decision is to ask."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from attrs import evolve

from ..calls import Approver, Call, Channel, Decision, HoldView, Setting, SideEffect, Sight, Verdict
from ..catalogue.descriptor import Descriptor
from ..ledger import Ledger
from ..ledger.hold import Hold
from ..ledger.permissions import PermissionRow, Rows
from ..ledger.pins import Pin
from ..names import OWN_DIST, RESERVED
from .admission import Admission, deciding, declined, refused, way_out
from .asking import Asking
from .drift import changes
from .fold import fold
from .holds import Holds
from .policies import Policies

__all__ = ["INTERNAL", "Admission", "Gate"]

#: the host's own tools, by (distribution, name): no package and no name can claim a place here.
INTERNAL: Final[frozenset[tuple[str, str]]] = frozenset(
    {
        *((OWN_DIST, name) for name in RESERVED),
        ("chalie-ability-memory", "memory"),
    }
)

_UNDERIVED: Final = Verdict(
    author="host", kind="limit", value="must_ask", reason="which of its actions this is could not be told"
)


class Gate:
    """Every call on every road passes here once.

    Args:
        ledger: where the rows are, and the trail.
        policies: the enabled policies, or None for none.
        clock: the time in seconds since 1970.
        ask_timeout_s: seconds that a caller waits for an answer before it is told that the call waits; None
            waits on the caller's own thread for as long as it takes.
        holds: what waits for a person; one of its own environment where left out.
        facts: gives an ability as it is now, so that what was allowed is pinned; None where it is unknown.
    """

    def __init__(
        self,
        ledger: Ledger,
        policies: Policies | None = None,
        *,
        clock: Callable[[], float] = time.time,
        ask_timeout_s: float | None = 300.0,
        holds: Holds | None = None,
        facts: Callable[[str, str], Pin | None] | None = None,
    ) -> None:
        self._ledger = ledger
        self._policies = policies or Policies()
        self.holds = holds or Holds(ledger, clock=clock)
        self._asking = Asking(self.holds, clock, ask_timeout_s)
        self._facts = facts
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
        return self._decided(call, channel, self._ledger.permissions.look(), complete)

    def _decided(self, call: Call, channel: Channel, rows: Rows, complete: bool = False) -> Decision:
        row = self._row(call, channel, rows)
        internal = (call.dist, call.name) in INTERNAL
        said = self._policies.ask(call, reviewed=complete or not (row is not None or internal))
        opinions, limits = said.opinions, said.limits
        if call.requires_approval:
            opinions = (*opinions, Verdict(call.dist, "opinion", "ask", "the tool itself asks for approval"))
        if call.must_ask:
            limits = (*limits, _underived(call))
        if call.dist != OWN_DIST and not channel.reaches(call.permission):
            limits = (*limits, _out_of_reach(channel))
        return fold(row, internal, opinions, limits, channel.has_person)

    def sight(
        self,
        descriptor: Descriptor,
        channel: Channel,
        principal: str,
        conversation: str | None,
        *,
        files_hash: str = "",
        trusted: bool = True,
    ) -> Sight:
        """Return how a search on a channel shows a tool.

        Hidden is only what a row or a limit denies for every action. What nobody can be asked about, or what
        a failing policy holds up, is shown with `not_allowed`, so that a person can be told what to do. What
        a server's tool says of itself counts only where the server is `trusted`.
        """
        blocked: tuple[Call, Decision] | None = None
        for permission, effect in descriptor.permissions():
            call = Call(
                dist=descriptor.dist,
                name=descriptor.name,
                permission=permission,
                effect=effect if trusted else SideEffect.DESTRUCTIVE,
                arguments=None,
                channel=channel.policy,
                principal=principal,
                conversation=conversation,
                descriptor_hash=descriptor.hash,
                requires_approval=descriptor.requires_approval,
                files_hash=files_hash,
                trusted=trusted,
            )
            decision = self.decide(call, channel)
            if decision.setting is not Setting.DENY:
                return Sight()
            if blocked is None and deciding(decision).kind in ("channel", "failure"):
                blocked = (call, decision)
        if blocked is None:
            return Sight(hidden=True)
        call, decision = blocked
        if deciding(decision).kind == "failure":
            return Sight(not_allowed=decision.reason)
        return Sight(not_allowed=way_out(call, channel, decision) or decision.reason)

    def admit(
        self,
        call: Call,
        channel: Channel,
        approver: Approver | None,
        view: Callable[[], HoldView],
        *,
        turn: str = "",
        provisional: bool = False,
        again: bool = False,
    ) -> Admission:
        """Let a call through, ask a person about it, or refuse it. The one way to a run.

        Args:
            call: healed and validated.
            channel: where it was made.
            approver: who can be asked now, or None.
            view: makes what the person is shown, its secrets masked; its id is the call's.
            turn: the turn's id.
            provisional: what is allowed without a policy may be decided by the rows as last known, since the
                caller makes sure of them as it records the run (`Admission.given`); it saves a look.
            again: the same call once more, since what it was decided by had changed; it is not counted.

        Raises:
            LedgerUnavailable: rows cannot be read, or a hold or its answer cannot be stored; the call must
                not run.
        """
        if not again:
            with self._counting:
                self._passes += 1
            if provisional and not self._policies.any:
                known = self._ledger.permissions.last()
                decision = self._decided(call, channel, known)
                if decision.setting is Setting.ALLOW:
                    return Admission(decision, True, given=known.counter)
        decision = self._noted(call, channel)
        if decision.setting is Setting.ALLOW:
            return Admission(decision, allowed=True)
        if decision.setting is Setting.DENY:
            return refused(call, channel, decision)
        shown = view()
        before = self.holds.declined(call, shown, turn)
        if before is not None:
            return declined(call.permission, decision, before.by, again=True)
        hold = self.holds.open(call, channel, shown, decision, turn)
        admission = self._asking.ask(hold, decision, approver)
        if admission.hold is None:
            return admission
        # the answer may have taken minutes: what was denied meanwhile stays denied
        return self._again(call, channel, admission.hold, admission)

    def readmit(self, call: Call, channel: Channel, hold: Hold) -> Admission:
        """Ask again about the call of a hold that this process has spent, before it is run.

        A person said yes, so `ask` is no obstacle any more; what denies it is. The hold is then given back.
        """
        with self._counting:
            self._passes += 1
        decision = self._noted(call, channel)
        admission = Admission(decision, True, answered_by=hold.decided_by, hold=hold)
        return self._again(call, channel, hold, admission, decision)

    def _noted(self, call: Call, channel: Channel) -> Decision:
        """Decide on a call; what nobody has set then shows in the list of permissions."""
        decision = self.decide(call, channel)
        for verdict in decision.verdicts:
            if verdict.kind in ("row", "internal"):
                return decision
        self._ledger.permissions.note(channel.policy, call.dist, call.permission)
        return decision

    def _again(
        self,
        call: Call,
        channel: Channel,
        hold: Hold,
        admission: Admission,
        decision: Decision | None = None,
    ) -> Admission:
        decision = decision or self.decide(call, channel)
        if decision.setting is not Setting.DENY:
            return admission
        self.holds.unstarted(hold, f"it was denied after it had been approved: {decision.reason}")
        return refused(call, channel, decision, admission.answered_by)

    def _row(self, call: Call, channel: Channel, rows: Rows) -> PermissionRow | None:
        """Return the person's row for a call; an allow that was given to something else has become `ask`."""
        row = rows.for_call(channel.policy, call.dist, call.name, call.permission)
        if row is None or row.setting is not Setting.ALLOW:
            return row
        pins = rows.pinned(call.dist, call.name)
        if (call.descriptor_hash, call.files_hash) in pins:
            return row
        if not pins:
            return self._first(call, row)
        if not call.files_hash and any(descriptor == call.descriptor_hash for descriptor, _ in pins):
            return row  # a server's tool, or a look at a tool whose files nobody asked about
        now = None if self._facts is None else self._facts(call.dist, call.name)
        lapsed = changes(self._ledger.pins.of(call.dist, call.name), now)
        return evolve(row, setting=Setting.ASK, lapsed=lapsed)

    def _first(self, call: Call, row: PermissionRow) -> PermissionRow:
        """Pin what a row allows that was set before its tool was there to be pinned."""
        if call.arguments is not None and self._facts is not None:
            now = self._facts(call.dist, call.name)
            if now is not None and now.descriptor_hash == call.descriptor_hash:
                self._ledger.pins.add(now, by=row.by)
        return row


def _out_of_reach(channel: Channel) -> Verdict:
    """Return the limit of a call that its turn was not opened for."""
    reach = ", ".join(channel.permissions or ())
    return Verdict("host", "limit", "deny", f"the token of this turn is for {reach} alone", "the token")


def _underived(call: Call) -> Verdict:
    """Return the limit of a call whose action could not be told: in its ability's words, if it gave any."""
    if not call.asked_because:
        return _UNDERIVED
    return Verdict(call.dist, "limit", "must_ask", call.asked_because, "classify")
