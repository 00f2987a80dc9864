"""The one road a call takes: resolve, arguments, gate, run, envelope, trail."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..calls import Approver, Call, CallRecord, HoldView, SideEffect
from ..catalogue.descriptor import Descriptor
from ..envelope import render
from ..errors import ChalieError, DescribeFailed, LedgerUnavailable
from ..ledger.trail import Overtaken
from ..names import OWN_DIST, is_server
from ..result import ToolResult
from .arguments import Prepared, copied, expanded, prepare, take_injected
from .background import Background
from .classify import declared, derived, located
from .flight import Flight
from .handles import Handles, has_handle
from .held import Held, Reopen
from .making import Maker
from .pool import Busy, Cancelled, Pool
from .record import Recorder
from .refusals import (
    Ended,
    busy,
    cancelled,
    cannot_record,
    denied,
    described,
    gate_failed,
    no_background,
    not_begun,
)
from .resolve import resolve
from .results import Results
from .run import Runner, failed, was_pressed
from .state import CancelToken, Progress, TurnState

if TYPE_CHECKING:
    from ..ability import Ability
    from ..catalogue.snapshot import Snapshot
    from ..config import Config
    from ..gate.gate import Gate
    from ..ledger import Ledger
    from ..ledger.hold import Hold

__all__ = ["Dispatcher"]

#: calls of `acall` that may be on their way to the gate or to their end at once, besides those that wait
#: for a person (the gate bounds these) or were given up, up to four times as many together.
ROAD_THREADS: Final = 64


class Dispatcher:
    """Runs every call of every turn.

    Args:
        ledger: where calls are recorded and results, jobs and inbox are kept.
        gate: asked once per call.
        load: gives an ability's class; raises `NotReady` where its files are not those described.
        config: limits and per-package options.
        embed: texts -> one unit vector each.
        data_folder: distribution -> its private folder (made on first use).
        observe: told of each finished call; may raise without effect.
        deliver: told of each finished background call as (conversation, call id, envelope), after the
            inbox has it; may raise without effect.
        stamp: gives what tells one state of an isolated ability's package from another; raises `NotReady`
            where its files are not those described.
        trusts: tells of a server's package and its hash whether a person trusts it; None trusts none.
        reopen: gives the turn that an approved hold is run in, and its ability as it is now; None where this
            dispatcher runs no holds.
    """

    def __init__(
        self,
        *,
        ledger: Ledger,
        gate: Gate,
        load: Callable[[Descriptor, Snapshot], type[Ability]],
        config: Config,
        embed: Callable[[Sequence[str]], list[list[float]]],
        data_folder: Callable[[str], Path],
        observe: Callable[[CallRecord], None],
        deliver: Callable[[str | None, str, str], None],
        stamp: Callable[[Descriptor, Snapshot], str],
        reopen: Reopen | None = None,
        trusts: Callable[[str, str], bool] | None = None,
    ) -> None:
        limits = config.limits
        self._ledger = ledger
        self._gate = gate
        self._trusts = trusts
        self._pool = Pool("chalie-ability", limits.workers)
        self._road = Pool("chalie-road", ROAD_THREADS, most_lost=4 * ROAD_THREADS)
        self._runner = Runner(self._pool)
        self._maker = Maker(load, stamp, config, embed, data_folder, self._pool)
        self._handles = Handles(ledger.results)
        self._results = Results(ledger.results, limits.result_kib * 1024)
        self._recorder = Recorder(ledger.trail, self._results, observe, gate.holds)
        self._background = Background(ledger, limits.workers, self._finish, deliver)
        self._flights: dict[str, Flight] = {}
        self._held = Held(
            ledger, gate.holds, reopen, self._begin_held, self._run, self._finish, deliver, limits.workers
        )
        self._closed = False
        self._pid = os.getpid()

    # --- what others call -----------------------------------------------------------------------------

    def call(
        self,
        state: TurnState,
        name: str,
        arguments: Any = None,
        *,
        token: CancelToken | None = None,
        progress: Progress | None = None,
        approver: Approver | None = None,
    ) -> str:
        """Run one call and return its envelope. Never raises for anything a tool does.

        Args:
            state: the turn.
            name: what the model calls: an exposed, qualified or aliased name.
            arguments: a mapping, the JSON text of an object, or None.
            token: cancels this call alone; it should hang on `state.cancel`.
            progress: told how far this call is, in place of the turn's.
            approver: who is asked about this call, in place of the turn's.

        Raises:
            KeyboardInterrupt: a person pressed Ctrl-C; the call is then recorded as cancelled.
        """
        flight = Flight(state, name, token, progress, approver)
        try:
            refusal = self._begin(flight, arguments)
            if refusal is not None:
                return self._finish(flight, refusal) or ""
            if flight.background:
                return self._to_background(flight)
            return self._finish(flight, self._run(flight)) or ""
        except KeyboardInterrupt:
            flight.token.cancel()
            self._finish(flight, _abandoned(flight))
            raise

    async def acall(
        self,
        state: TurnState,
        name: str,
        arguments: Any = None,
        *,
        token: CancelToken | None = None,
        progress: Progress | None = None,
        approver: Approver | None = None,
    ) -> str:
        """Do what `call` does without ever blocking the running event loop.

        Policies, a person's answer, the import of a package and the ledger's writes happen on threads of
        their own, a sync ability on the pool, an async one on this loop. Cancelling the awaiting task
        cancels the call: nothing is delivered for it.
        """
        import asyncio

        flight = Flight(state, name, token, progress, approver)
        if os.getpid() != self._pid:  # a fork has none of the threads that would be waited for
            error = LedgerUnavailable("the host was opened by the process this one was forked from")
            return self._finish(flight, cannot_record(flight.name, error)) or ""
        try:
            begun = self._road.submit(lambda: self._begin(flight, arguments))
            refusal = await begun.aresult(None, flight.token)
            if refusal is None and flight.background:
                return await self._road.submit(lambda: self._to_background(flight)).aresult()
            if refusal is None and flight.hold is not None:
                refusal = await self._road.submit(lambda: self._start(flight)).aresult()
            if refusal is not None:
                return await self._afinish(flight, refusal)
            assert flight.work is not None
            return await self._afinish(
                flight, await self._runner.arun(flight.work, flight.limit_s, flight.token)
            )
        except asyncio.CancelledError:
            flight.token.cancel()
            self._give_up(flight)
            raise
        except Cancelled:
            return await self._afinish(flight, _abandoned(flight))
        except Busy:
            return self._finish(flight, busy(flight.name)) or ""

    def seed(self, state: TurnState, calls: Iterable[tuple[str, Mapping[str, Any]]]) -> list[str]:
        """Run the framework's own calls down the same road, in order, and return their envelopes."""
        return [self.call(state, name, arguments) for name, arguments in calls]

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

    def run_hold(self, hold_id: str) -> str | None:
        """Run an approved hold and return its envelope, which also goes to the conversation's inbox.

        Returns:
            The envelope; None where another process or thread has taken the hold on, or where it became void.

        Raises:
            ChalieError: `hold-unknown`, `not-allowed` (another environment's), `not-ready`.
        """
        return self._held.run(hold_id)

    def watch_holds(self) -> None:
        """Run from now on what is approved for the conversations of this process."""
        self._held.watch()

    def cancel(self, call_id: str) -> bool:
        """Cancel one running call, in the background or not; return whether it was running."""
        flight = self._flights.get(call_id)
        if flight is None:
            return False
        flight.token.cancel()
        return True

    def recover(self) -> int:
        """Say of background calls and holds whose process ended what is known; return how many."""
        return self._background.recover() + self._gate.holds.recover(self._held.busy)

    @property
    def lost(self) -> int:
        """Threads that are stuck in calls nobody waits for any more."""
        return self._runner.lost

    def close(self, drain_s: float = 5.0) -> None:
        """Take no more calls, wait for background ones up to `drain_s`, mark the rest, end the workers."""
        self._closed = True
        self._held.close()
        self._background.close(drain_s)
        for flight in list(self._flights.values()):
            flight.token.cancel()
        self._runner.close()
        self._road.close()
        self._maker.close()

    # --- the road up to the run -----------------------------------------------------------------------

    def _begin(self, flight: Flight, arguments: Any) -> Ended | None:
        """Take a call as far as it goes before it runs; return the refusal, or None where it may run."""
        return self._guarded(flight, lambda: self._admit(flight, arguments))

    def _begin_held(self, flight: Flight, hold: Hold) -> Ended | None:
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
        if self._closed or flight.token.cancelled:
            return not_begun(flight.name, self._closed)
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
            self._held.watch()
        return None if admission.allowed else denied(flight.name, admission)

    def _view(self, flight: Flight, model_says: str) -> HoldView:
        """Return what a person is shown of a call, secrets masked; from now on it waits for that person."""
        flight.whole = None
        flight.waits = self._road.lend()
        return flight.view(model_says)

    # --- the run --------------------------------------------------------------------------------------

    def _start(self, flight: Flight) -> Ended | None:
        """Say of a call that a person approved that it runs now; return its end where it must not."""
        try:
            return self._recorder.start_hold(flight)
        except LedgerUnavailable as error:
            return cannot_record(flight.name, error)

    def _run(self, flight: Flight) -> Ended:
        assert flight.work is not None
        refusal = self._start(flight) if flight.hold is not None else None
        if refusal is not None:
            return refusal
        return self._runner.run(flight.work, flight.limit_s, flight.token)

    # --- the road after the run -----------------------------------------------------------------------

    def _to_background(self, flight: Flight) -> str:
        try:
            self._background.start(flight, partial(self._run, flight))
        except Busy:
            return self._finish(flight, busy(flight.name)) or ""
        except LedgerUnavailable as error:
            return self._finish(flight, cannot_record(flight.name, error)) or ""
        result = ToolResult.ok(
            f"{flight.name} runs in the background. Its result will be delivered to this conversation; "
            "do not wait for it and do not call it again.",
            call=flight.id,
            state="running",
        )
        return render(flight.called[:128], result)

    async def _afinish(self, flight: Flight, ended: Ended) -> str:
        return await self._road.submit(lambda: self._finish(flight, ended)).aresult() or ""

    def _give_up(self, flight: Flight) -> None:
        """Record that nobody waits for a call any more, without holding up the event loop."""
        try:
            self._road.submit(lambda: self._finish(flight, _abandoned(flight)))
        except Busy:
            self._finish(flight, _abandoned(flight))

    def _finish(self, flight: Flight, ended: Ended) -> str | None:
        """Record how a call ended and return its envelope; None where that was done before."""
        self._flights.pop(flight.id, None)
        return self._recorder.finish(flight, ended)


def _abandoned(flight: Flight) -> Ended:
    """Return the end of a cancelled call: once its token is raised, what has not started never will."""
    with flight.lock:
        return cancelled(flight.name) if flight.started else not_begun(flight.name)
