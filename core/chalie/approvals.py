"""The gate of a host, put together: trusted policies, pinned tools, and the answers that holds get."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Final

from .calls import AnswerKind, Call, HoldChange, HoldView, SideEffect
from .config import Config
from .envelope import render
from .errors import ChalieError
from .gate import notices
from .gate.answering import answered
from .gate.authority import Authority
from .gate.drift import pin_of
from .gate.gate import Gate
from .gate.holds import Holds
from .gate.policies import Policies, note_policies
from .ledger import Ledger
from .ledger.hold import OPEN, RUNNING, Hold
from .ledger.pins import Pin
from .names import is_server
from .result import ToolResult

if TYPE_CHECKING:
    from .build import Upkeep
    from .catalogue.descriptor import Descriptor
    from .catalogue.plugins import Plugins
    from .dispatch.state import TurnState

__all__ = ["Approvals"]

#: seconds between looks at a call that another thread or process runs.
_LOOK_S: Final = 0.05
#: seconds that another process has to take on what was approved, before its result is left to come later.
_TAKEN_S: Final = 5.0


class Approvals:
    """What a host knows of decisions: made once, with it.

    Args:
        config: its options of the gate.
        ledger: rows, holds, pins and trust.
        upkeep: what is installed.
        plugins: the loaded policies.
        authority: proves who answers.

    Attributes:
        environment: key of this Python environment.
        gate: decides on every call.
        holds: what waits for a person.
    """

    def __init__(
        self,
        config: Config,
        ledger: Ledger,
        upkeep: Upkeep,
        plugins: Plugins,
        authority: Authority,
    ) -> None:
        options = config.gate
        self.environment = upkeep.environment
        self._config = config
        self._ledger = ledger
        self._upkeep = upkeep
        self._plugins = plugins
        self._authority = authority
        self.holds = Holds(
            ledger,
            environment=self.environment,
            keep_s=options.hold_days * 86_400,
            facts=self.pin,
            changed=self._changed,
        )
        policies = Policies(
            plugins, required=options.required, deadline_ms=options.deadline_ms, trusted=self.trusts
        )
        note_policies(ledger, self.environment, plugins, options.required)
        self.gate = Gate(
            ledger, policies, ask_timeout_s=options.ask_timeout_s, holds=self.holds, facts=self.pin
        )

    def trusts(self, dist: str) -> bool:
        """Tell whether a loaded policy's allow counts: no longer, once its files are not those loaded."""
        loaded = self._plugins.files_hashes.get(dist)
        return (
            loaded is not None
            and loaded == self.files_hash(dist)
            and self._ledger.permissions.trusts(dist, loaded)
        )

    def trusts_server(self, dist: str, files_hash: str) -> bool:
        """Tell whether a person trusts a server, as it is configured now, to say what its tools do."""
        return bool(files_hash) and self._ledger.permissions.trusts(dist, files_hash)

    def effect(self, descriptor: Descriptor, effect: SideEffect) -> SideEffect:
        """Return the class that calls count as: what an untrusted server says of its tools is no word."""
        if not is_server(descriptor.dist):
            return effect
        trusted = self.trusts_server(descriptor.dist, self.files_hash(descriptor.dist))
        return effect if trusted else SideEffect.DESTRUCTIVE

    def files_hash(self, dist: str) -> str:
        """Return the hash over a package's files as they are described; empty where there are none."""
        row = self._upkeep.latest.snapshot.distribution(dist)
        return "" if row is None else row.files_hash

    def pin(self, dist: str, name: str) -> Pin | None:
        """Return an ability as a person's allow would pin it now; None where it is not there."""
        found = self._upkeep.latest.snapshot.get(dist, name)
        return None if found is None else pin_of(found, self.files_hash(dist))

    def answer(
        self,
        run: Callable[[str], str | None],
        hold_id: str,
        kind: AnswerKind | str,
        until: datetime | None,
        token: str | None,
    ) -> Hold:
        """Prove who answers a hold, record the answer and see to its run; `Host.answer` says what of it."""
        by = self._authority.prove(token or self._config.approver_token)
        return answered(self.holds, self._ledger, run, hold_id, kind, by, until)

    def waiting(self, principal: str, conversation: str | None) -> tuple[HoldView, ...]:
        """Return the calls of a principal's conversation that wait for a person, oldest first."""
        return tuple(
            notices.view_of(hold)
            for hold in self.holds.list(principal=principal)
            if hold.conversation == conversation and hold.state in OPEN
        )

    def asked_about(self, call: Call | None, hold_id: str | None, turn: TurnState) -> str | None:
        """Return the id of the hold of this very call in a turn's conversation, or None.

        Args:
            call: as the gate sees it; None where it cannot be made now or need not be compared.
            hold_id: the hold that is meant; without it, it is the one of the call that has waited longest.
            turn: whose channel, principal and conversation it has to be.

        Raises:
            ChalieError: `hold-unknown`, also where it is another principal's.
        """
        if hold_id is not None:
            candidates: tuple[Hold, ...] = (self.holds.get(hold_id, principal=turn.principal),)
        elif call is not None:
            scope = self.holds.scope(call, turn.id)
            waits = self.holds.list(principal=turn.principal)
            candidates = tuple(hold for hold in waits if hold.state in OPEN and hold.scope == scope)
        else:
            candidates = ()
        for hold in candidates:
            here = (hold.channel, hold.conversation) == (turn.channel.name, turn.conversation)
            digests = () if call is None else (self.holds.digest(call, False), self.holds.digest(call, True))
            if here and (call is None or hold.digest in digests):
                return hold.id
        return None

    def outcome(self, hold_id: str, principal: str) -> str | None:
        """Return the envelope of a call that waited, once it has ended; None while it still waits.

        A call that is being run is waited for. Taking the envelope marks it as read in the inbox.

        Raises:
            ChalieError: `hold-unknown`, also where it is another principal's.
        """
        hold = self.holds.get(hold_id, principal=principal)
        end = time.monotonic() + _TAKEN_S
        while hold.state in RUNNING or (hold.state == "approved" and time.monotonic() < end):
            time.sleep(_LOOK_S)
            hold = self.holds.current(hold)
        if hold.state in OPEN:
            return None
        text = self._ledger.inbox.of_call(hold.principal, hold.call_id)
        return text if text is not None else _said(hold)

    def settle(
        self,
        run: Callable[[str], str | None],
        hold_id: str,
        kind: AnswerKind | str,
        until: datetime | None,
        token: str | None,
        principal: str,
    ) -> str:
        """Answer a call that waits and return its envelope; `Turn.settle` says what of it."""
        hold = self.holds.get(hold_id, principal=principal)
        try:
            self.answer(run, hold.id, kind, until, token)
        except ChalieError as error:
            if error.code != "already-decided":
                raise
        return self.outcome(hold.id, principal) or _said(self.holds.current(hold))

    def _changed(self, change: HoldChange) -> None:
        self._plugins.tell("hold_changed", change=change)


def _said(hold: Hold) -> str:
    """Return the envelope for whoever asks after a call that has none of its own."""
    if hold.state in OPEN:
        reason = hold.detail or "it waits for a person"
        result = ToolResult.error(f"{hold.permission} was not run: {reason}", code="permission-denied")
    elif hold.state in ("approved", *RUNNING):
        message = f"{hold.permission} was approved; do not retry: its result comes to this conversation."
        result = ToolResult.error(message, code="approval-pending")
    else:
        error = notices.already(hold)
        result = ToolResult.error(error.message or str(error), code="already-decided")
    return render(hold.name, result)
