"""The road up to the run: which tool, which arguments, what the gate says, and the row that says it runs."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ..calls import Call, HoldView, SideEffect
from ..catalogue.descriptor import Descriptor
from ..errors import ChalieError, DescribeFailed, LedgerUnavailable
from ..ledger.trail import Overtaken
from ..names import OWN_DIST, is_server
from ..result import ToolResult
from .arguments import Prepared, copied, expanded, prepare, take_injected
from .classify import declared, derived, located
from .flight import Flight
from .handles import Handles, has_handle
from .making import Maker
from .pool import Pool
from .record import Recorder
from .refusals import Ended, cannot_record, denied, described, gate_failed, no_background, not_begun
from .resolve import resolve
from .run import failed, was_pressed
from .state import CancelToken, TurnState

if TYPE_CHECKING:
    from ..gate.gate import Gate
    from ..ledger import Ledger
    from ..ledger.hold import Hold

__all__ = ["Approach"]


class Approach:
    """Takes calls from what a model wrote to where nothing is left but to run them.

    Args:
        ledger: where the arguments of holds and kept results are.
        gate: asked once per call.
        maker: makes ready what runs, and asks abilities about their calls.
        recorder: writes the row that says a call is about to run.
        road: whose threads wait while a person is asked.
        flights: call id -> flight; what is about to run is put in.
        trusts: tells of a server's package and its hash whether a person trusts it; None trusts none.
        watch: called when a call has begun to wait for a person.

    Attributes:
        closed: set when no more calls are taken.
    """

    def __init__(
        self,
        *,
        ledger: Ledger,
        gate: Gate,
        maker: Maker,
        recorder: Recorder,
        road: Pool,
        flights: MutableMapping[str, Flight],
        trusts: Callable[[str, str], bool] | None,
        watch: Callable[[], None],
    ) -> None:
        self.closed = False
        self._ledger = ledger
        self._gate = gate
        self._maker = maker
        self._recorder = recorder
        self._road = road
        self._flights = flights
        self._trusts = trusts
        self._watch = watch
        self._handles = Handles(ledger.results)

    def begin(self, flight: Flight, arguments: Any) -> Ended | None:
        """Take a call as far as it goes before it runs; return the refusal, or None where it may run."""
        return self._guarded(flight, lambda: self._admit(flight, arguments))

    def begin_held(self, flight: Flight, hold: Hold) -> Ended | None:
        """Do so with an approved call; `flight.hold` stays None where the hold is not taken on."""
        return self._guarded(flight, lambda: self._admit_held(flight, hold))

    def _guarded(self, flight: Flight, admit: Callable[[], Ended | None]) -> Ended | None:
        try:
            return admit()
        except LedgerUnavailable as error:
            return cannot_record(flight.name, error)
        except (
            DescribeFailed
        ) as error:  # its message quotes the package's own error, which is not the model's
            message = f"{flight.name} could not be imported"
            return Ended(ToolResult.error(message, code=error.code, hint=error.hint), described(error))
        except ChalieError as error:
            result = ToolResult.error(error.message or error.code, code=error.code, hint=error.hint)
            return Ended(result, described(error))
        except BaseException as error:  # importing a package may raise SystemExit and the like
            if isinstance(error, KeyboardInterrupt) and was_pressed(error):
                raise
            return failed(flight.name, error)

    def _admit(self, flight: Flight, arguments: Any) -> Ended | None:
        state = flight.state
        if self.closed or flight.token.cancelled:
            return not_begun(flight.name, self.closed)
        descriptor = resolve(state, flight.called)
        if isinstance(descriptor, ToolResult):
            return Ended(descriptor)
        flight.descriptor = descriptor
        arguments, model_says, flight.background = take_injected(arguments)
        prepared = prepare(descriptor, arguments, self._handles_for(descriptor), state.principal)
        if isinstance(prepared, ToolResult):
            return Ended(prepared)
        flight.healed = prepared.healed
        if flight.background and not state.channel.background:
            return no_background(flight.name, state.channel.name)
        call = flight.call = self.prepare_call(state, descriptor, prepared)
        flight.whole, handles = prepared.whole, prepared.whole is not None
        del prepared  # what handles stand for is kept by the flight alone, which lets go of it
        # What policies and approvers are shown is theirs to spoil; what is recorded and runs is set apart.
        bound = copied(call.arguments)
        self._recorder.mask(flight, bound, descriptor)
        refusal = self._ask_gate(flight, call, model_says)
        if refusal is not None:
            return refusal
        if flight.background:
            # It outlives the exchange that asked for it: only `cancel` by its id still reaches it.
            flight.token = CancelToken()
        try:
            return self._ready(flight, descriptor, bound, handles)
        except Overtaken:
            refusal = self._ask_gate(flight, call, model_says, again=True)
            return refusal or self._ready(flight, descriptor, bound, handles)

    def _admit_held(self, flight: Flight, hold: Hold) -> Ended | None:
        state, descriptor, holds = flight.state, flight.descriptor, self._gate.holds
        assert descriptor is not None
        arguments = self._ledger.holds.arguments(hold)
        if arguments is None:
            holds.void(hold, "its secret arguments are not there any more")
            return None
        handles = has_handle(arguments) and descriptor.dist != OWN_DIST
        try:
            if handles:
                flight.whole = expanded(descriptor, arguments, self._handles, state.principal)
        except ChalieError as error:
            if isinstance(error, LedgerUnavailable):
                raise
            holds.void(hold, "a result that was handed to it is not kept any more")
            return None
        call = flight.call = self.prepare_call(state, descriptor, Prepared(arguments, (), flight.whole))
        if (call.permission, call.effect.value) != (hold.permission, hold.effect) or (
            holds.digest(call, hold.secret is not None) != hold.digest
        ):
            holds.void(hold, f"it would not be the call any more that was asked about ({call.permission})")
            return None
        bound = copied(call.arguments)
        self._recorder.mask(flight, bound, descriptor)
        flight.hold = holds.spend(hold.id)
        if flight.hold is None:
            return None
        admission = self._gate.readmit(call, state.channel, flight.hold)
        flight.setting = admission.decision.setting._value_
        flight.answered_by = admission.answered_by
        if not admission.allowed:
            return denied(flight.name, admission)
        return self._ready(flight, descriptor, bound, handles)

    def _ready(
        self, flight: Flight, descriptor: Descriptor, bound: dict[str, Any], handles: bool
    ) -> Ended | None:
        """Record that an admitted call is about to run, and make ready what runs."""
        refusal = self._recorder.begin(flight)
        if refusal is not None:
            return refusal
        self._flights[flight.id] = flight
        if handles:
            whole, flight.whole = flight.whole, None
            if whole is None:  # a person was asked meanwhile: it is read again, and must be what was bound
                whole = expanded(descriptor, bound, self._handles, flight.state.principal)
            self._recorder.hide(flight, whole, descriptor)
            bound = whole
        self._maker.prepare(flight, descriptor, bound)
        return None

    def _ask_gate(self, flight: Flight, call: Call, model_says: str, *, again: bool = False) -> Ended | None:
        state = flight.state
        try:
            view = partial(self._view, flight, model_says)
            admission = self._gate.admit(
                call, state.channel, flight.approver, view, turn=state.id, provisional=True, again=again
            )
        except LedgerUnavailable:
            raise
        except Exception as error:
            return gate_failed(flight.name, error)
        finally:
            if flight.waits:
                self._road.take_back()
        flight.setting = admission.decision.setting._value_
        flight.answered_by = admission.answered_by
        flight.hold = admission.hold
        flight.given = admission.given
        if admission.code == "approval-pending":
            self._watch()
        return None if admission.allowed else denied(flight.name, admission)

    def _view(self, flight: Flight, model_says: str) -> HoldView:
        """Return what a person is shown of a call, secrets masked; from now on it waits for that person."""
        flight.whole = None
        flight.waits = self._road.lend()
        return flight.view(model_says)

    def prepare_call(self, state: TurnState, descriptor: Descriptor, prepared: Prepared) -> Call:
        """Return the call as the gate sees it: permission and class derived from what will run.

        Its arguments say of a handle what it stands for; the ability that is asked to classify them, or where
        they go, is given the text itself.

        Raises:
            ChalieError: `not-ready` where the ability must be imported to be
                classified and cannot be, `ledger-unavailable`.
        """
        arguments = prepared.arguments
        whole = arguments if prepared.whole is None else prepared.whole
        own = descriptor.key not in state.internal
        if descriptor.classifies and own:
            classify = self._maker.asker(state, descriptor, copied(whole), "classify")
            permission, effect, must_ask, why = derived(descriptor, classify, whole)
        else:
            permission, effect, must_ask, why = declared(descriptor, whole)
        destination = None
        if descriptor.locates and own and effect is SideEffect.EXTERNAL_SEND:
            destination = located(self._maker.asker(state, descriptor, copied(whole), "destination"))
        package = state.snapshot.distribution(descriptor.dist)
        files_hash = "" if package is None else package.files_hash
        trusted = not is_server(descriptor.dist) or (
            self._trusts is not None and self._trusts(descriptor.dist, files_hash)
        )
        if not trusted:
            effect = SideEffect.DESTRUCTIVE  # what a server says of its own tools is a hint, and no more
        return Call(
            descriptor.dist,
            descriptor.name,
            permission,
            effect,
            arguments,
            state.channel.policy,
            state.principal,
            state.conversation,
            descriptor.hash,
            descriptor.requires_approval,
            must_ask,
            files_hash,
            destination,
            trusted,
            asked_because=why,
        )

    def examine(self, state: TurnState, name: str, arguments: Any = None) -> Call | ToolResult:
        """Return a call as the gate would see it, changing and running nothing: for explanations.

        Returns:
            The call, or the refusal that it would meet before the gate.

        Raises:
            ChalieError: as `prepare_call`.
        """
        descriptor = resolve(state, name)
        if isinstance(descriptor, ToolResult):
            return descriptor
        arguments, _, _ = take_injected(arguments)
        prepared = prepare(descriptor, arguments, self._handles_for(descriptor), state.principal)
        return (
            prepared if isinstance(prepared, ToolResult) else self.prepare_call(state, descriptor, prepared)
        )

    def _handles_for(self, descriptor: Descriptor) -> Handles | None:
        """Return what expands handles; None for the host's own tools, which take them as they are."""
        return None if descriptor.dist == OWN_DIST else self._handles
