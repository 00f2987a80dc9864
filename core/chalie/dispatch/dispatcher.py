"""The one road a call takes: resolve, arguments, gate, run, envelope, trail."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..calls import Call, CallRecord, HoldView
from ..catalogue.descriptor import Descriptor
from ..envelope import render
from ..errors import ChalieError, DescribeFailed, LedgerUnavailable
from ..result import ToolResult
from .arguments import Prepared, prepare, take_injected
from .background import Background
from .classify import declared, derived
from .context import CallContext
from .flight import Flight
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
from .run import Runner, Work, failed, was_pressed
from .state import CancelToken, Progress, TurnState

if TYPE_CHECKING:
    from ..ability import Ability
    from ..catalogue.snapshot import Snapshot
    from ..config import Config
    from ..gate.gate import Gate
    from ..ledger import Ledger
    from .isolation import Workers

__all__ = ["Dispatcher"]

#: seconds an ability's own `classify` may take.
CLASSIFY_S: Final = 2.0
#: calls of `acall` that may be on their way to the gate, or wait for a person, at once.
ROAD_THREADS: Final = 64

_HOST: Final = "chalie"


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
    ) -> None:
        limits = config.limits
        self._ledger = ledger
        self._gate = gate
        self._load = load
        self._config = config
        self._embed = embed
        self._data_folder = data_folder
        self._stamp = stamp
        self._pool = Pool("chalie-ability", limits.workers)
        self._road = Pool("chalie-road", ROAD_THREADS, most_lost=ROAD_THREADS)
        self._runner = Runner(self._pool)
        self._workers: Workers | None = None
        self._making = threading.Lock()
        self._results = Results(ledger.results, limits.result_kib * 1024)
        self._recorder = Recorder(ledger.trail, self._results, observe)
        self._background = Background(ledger, limits.workers, self._finish, deliver)
        self._flights: dict[str, Flight] = {}
        self._options: dict[tuple[str, str, str], tuple[bool, float | None]] = {}
        self._closed = False

    # --- what others call -----------------------------------------------------------------------------

    def call(
        self,
        state: TurnState,
        name: str,
        arguments: Any = None,
        *,
        token: CancelToken | None = None,
        progress: Progress | None = None,
    ) -> str:
        """Run one call and return its envelope. Never raises for anything a tool does.

        Args:
            state: the turn.
            name: what the model calls: an exposed, qualified or aliased name.
            arguments: a mapping, the JSON text of an object, or None.
            token: cancels this call alone; it should hang on `state.cancel`.
            progress: told how far this call is, in place of the turn's.

        Raises:
            KeyboardInterrupt: a person pressed Ctrl-C; the call is then recorded as cancelled.
        """
        flight = Flight(state, name, token, progress)
        try:
            refusal = self._begin(flight, arguments)
            if refusal is not None:
                return self._finish(flight, refusal) or ""
            if flight.background:
                return self._to_background(flight)
            assert flight.work is not None
            ended = self._runner.run(flight.work, flight.limit_s, flight.token)
            return self._finish(flight, ended) or ""
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
    ) -> str:
        """Do what `call` does without ever blocking the running event loop.

        Policies, a person's answer, the import of a package and the ledger's writes happen on threads of
        their own, a sync ability on the pool, an async one on this loop. Cancelling the awaiting task
        cancels the call: nothing is delivered for it.
        """
        import asyncio

        flight = Flight(state, name, token, progress)
        try:
            begun = self._road.submit(lambda: self._begin(flight, arguments))
            refusal = await begun.aresult(None, flight.token)
            if refusal is not None:
                return await self._afinish(flight, refusal)
            if flight.background:
                return await self._road.submit(lambda: self._to_background(flight)).aresult()
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
        """Return the call as the gate sees it: permission and class derived, handles bound.

        Raises:
            ChalieError: `result-unknown` for a handle, `not-ready` where the ability must be imported to be
                classified and cannot be, `ledger-unavailable`.
        """
        arguments = prepared.arguments
        if descriptor.dist != _HOST:  # the host's own tools take handles as they are
            arguments = self._results.bind(state.principal, arguments)
        if descriptor.classifies and descriptor.key not in state.internal:
            classify = self._classifier(state, descriptor, _copied(arguments))
            permission, effect, must_ask = derived(descriptor, classify)
        else:
            permission, effect, must_ask = declared(descriptor, arguments)
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
        )

    def cancel(self, call_id: str) -> bool:
        """Cancel one running call, in the background or not; return whether it was running."""
        flight = self._flights.get(call_id)
        if flight is None:
            return False
        flight.token.cancel()
        return True

    def recover(self) -> int:
        """Mark and deliver background calls whose process ended without doing so; return how many."""
        return self._background.recover()

    @property
    def lost(self) -> int:
        """Threads that are stuck in calls nobody waits for any more."""
        return self._runner.lost

    def close(self, drain_s: float = 5.0) -> None:
        """Take no more calls, wait for background ones up to `drain_s`, mark the rest, end the workers."""
        self._closed = True
        self._background.close(drain_s)
        for flight in list(self._flights.values()):
            flight.token.cancel()
        self._runner.close()
        self._road.close()
        with self._making:
            if self._workers is not None:
                self._workers.close()

    # --- the road up to the run -----------------------------------------------------------------------

    def _begin(self, flight: Flight, arguments: Any) -> Ended | None:
        """Take a call as far as it goes before it runs; return the refusal, or None where it may run."""
        try:
            return self._admit(flight, arguments)
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
        if descriptor.dist != _HOST:
            arguments = self._results.decode(state.principal, descriptor.parameters, arguments)
        prepared = prepare(descriptor, arguments)
        if isinstance(prepared, ToolResult):
            return Ended(prepared)
        flight.healed = prepared.healed
        if flight.background and not state.channel.background:
            return no_background(flight.name, state.channel.name)
        call = flight.call = self.prepare_call(state, descriptor, prepared)
        self._recorder.mask(flight, call, descriptor.parameters)
        # What policies and approvers are shown is theirs to spoil; what runs is set apart before.
        bound = _copied(call.arguments)
        handles = call.arguments is not prepared.arguments
        refusal = self._ask_gate(flight, call, model_says)
        if refusal is not None:
            return refusal
        if flight.background:
            # It outlives the exchange that asked for it: only `cancel` by its id still reaches it.
            flight.token = CancelToken()
        refusal = self._recorder.begin(flight)
        if refusal is not None:
            return refusal
        self._flights[flight.id] = flight
        if handles:
            bound = self._results.expand(state.principal, bound)
        self._prepare_work(flight, descriptor, bound)
        return None

    def _ask_gate(self, flight: Flight, call: Call, model_says: str) -> Ended | None:
        state = flight.state
        try:
            admission = self._gate.admit(
                call, state.channel, state.approver, partial(_view, flight, model_says)
            )
        except LedgerUnavailable:
            raise
        except Exception as error:
            return gate_failed(flight.name, error)
        flight.setting = admission.decision.setting.value
        flight.answered_by = admission.answered_by
        return None if admission.allowed else denied(flight.name, admission)

    def _prepare_work(self, flight: Flight, descriptor: Descriptor, params: dict[str, Any]) -> None:
        """Make ready what runs: class or instance, context, limit. Imports the ability's module."""
        state = flight.state
        context = CallContext(
            state, flight.id, descriptor.dist, flight.token, flight.progress, self._embed, self._data_folder
        )
        maker = state.internal.get(descriptor.key)
        if maker is not None:
            flight.work = Work(flight.name, None, params, context, made=maker())
            return
        isolated, flight.limit_s = self._options_of(descriptor)
        if isolated:
            stamp = self._stamp(descriptor, state.snapshot)
            remote = partial(self._run_remote, descriptor, stamp, flight.name, params, context)
            flight.work = Work(flight.name, None, params, context, remote=remote)
        else:
            flight.work = Work(flight.name, self._load(descriptor, state.snapshot), params, context)

    def _run_remote(
        self,
        descriptor: Descriptor,
        stamp: str,
        name: str,
        params: dict[str, Any],
        context: CallContext,
        limit_s: float | None,
        token: CancelToken,
    ) -> Ended:
        return self._isolation().run(descriptor, stamp, name, params, context, limit_s, token)

    def _isolation(self) -> Workers:
        with self._making:
            if self._workers is None:
                from .isolation import Workers  # most hosts never isolate anything

                self._workers = Workers(self._config.limits.describe_s)
                if self._closed:
                    self._workers.close()
            return self._workers

    def _classifier(
        self, state: TurnState, descriptor: Descriptor, arguments: dict[str, Any]
    ) -> Callable[[], Any]:
        """Return what asks the ability's own `classify`; its module is imported now."""
        token = CancelToken(state.cancel)
        context = CallContext(state, "", descriptor.dist, token, None, self._embed, self._data_folder)
        isolated, _ = self._options_of(descriptor)
        if isolated:
            stamp = self._stamp(descriptor, state.snapshot)
            return partial(self._isolation().classify, descriptor, stamp, arguments, context, CLASSIFY_S)
        cls = self._load(descriptor, state.snapshot)

        def classify() -> Any:
            try:
                ability = cls().bind(context)
                return ability.classify(ability.arguments_for(arguments))
            except BaseException:  # whatever it is, it names no action
                return None

        return lambda: self._pool.submit(classify).result(CLASSIFY_S, token)

    def _options_of(self, descriptor: Descriptor) -> tuple[bool, float | None]:
        """Return whether an ability runs in a worker process, and its time limit in seconds."""
        key = (descriptor.dist, descriptor.name, descriptor.hash)
        found = self._options.get(key)
        if found is None:
            options = self._config.package(descriptor.dist)
            isolated = descriptor.isolate if options.isolate is None else options.isolate
            limits = (options.time_limit_s, descriptor.time_limit_s, self._config.limits.call_s)
            found = isolated, next((limit for limit in limits if limit is not None), None)
            self._options[key] = found
        return found

    # --- the road after the run -----------------------------------------------------------------------

    def _to_background(self, flight: Flight) -> str:
        work = flight.work
        assert work is not None
        try:
            self._background.start(flight, partial(self._runner.run, work, flight.limit_s, flight.token))
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


def _view(flight: Flight, model_says: str) -> HoldView:
    """Return what a person is shown of a call, secrets masked."""
    call = flight.call
    assert call is not None
    return HoldView(
        id=flight.id,
        name=call.name,
        dist=call.dist,
        permission=call.permission,
        effect=call.effect,
        arguments=dict(flight.masked or {}),
        channel=flight.state.channel.name,
        principal=call.principal,
        conversation=call.conversation,
        model_says=model_says,
        reasons=(),
        must_ask=call.must_ask,
    )


def _copied(value: Any) -> Any:
    """Return a copy of JSON values that shares no list or object with the original."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value
