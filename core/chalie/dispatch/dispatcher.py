"""The one road a call takes: resolve, arguments, gate, run, envelope, trail."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..calls import Approver, Call, CallRecord
from ..catalogue.descriptor import Descriptor
from ..envelope import render
from ..errors import LedgerUnavailable
from ..result import ToolResult
from .approach import Approach
from .background import Background
from .flight import Flight
from .held import Held, Reopen
from .making import Maker
from .pool import Busy, Cancelled, Pool
from .record import Recorder
from .refusals import (
    Ended,
    busy,
    cancelled,
    cannot_record,
    not_begun,
)
from .results import Results
from .run import Runner
from .state import CancelToken, Progress, TurnState

if TYPE_CHECKING:
    from ..ability import Ability
    from ..catalogue.snapshot import Snapshot
    from ..config import Config
    from ..gate.gate import Gate
    from ..ledger import Ledger

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
        self._holds = gate.holds
        self._pool = Pool("chalie-ability", limits.workers)
        self._road = Pool("chalie-road", ROAD_THREADS, most_lost=4 * ROAD_THREADS)
        self._runner = Runner(self._pool)
        self._maker = Maker(load, stamp, config, embed, data_folder, self._pool)
        self._results = Results(ledger.results, limits.result_kib * 1024)
        self._recorder = Recorder(ledger.trail, self._results, observe, gate.holds)
        self._background = Background(ledger, limits.workers, self._finish, deliver)
        self._flights: dict[str, Flight] = {}
        self._approach = Approach(
            ledger=ledger,
            gate=gate,
            maker=self._maker,
            recorder=self._recorder,
            road=self._road,
            flights=self._flights,
            trusts=trusts,
            watch=self.watch_holds,
        )
        self._held = Held(
            ledger,
            gate.holds,
            reopen,
            self._approach.begin_held,
            self._run,
            self._finish,
            deliver,
            limits.workers,
        )
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
            refusal = self._approach.begin(flight, arguments)
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
            begun = self._road.submit(lambda: self._approach.begin(flight, arguments))
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

    def examine(self, state: TurnState, name: str, arguments: Any = None) -> Call | ToolResult:
        """Return a call as the gate would see it, changing and running nothing: for explanations.

        Returns:
            The call, or the refusal that it would meet before the gate.

        Raises:
            ChalieError: `not-ready`, `ledger-unavailable`.
        """
        return self._approach.examine(state, name, arguments)

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
        return self._background.recover() + self._holds.recover(self._held.busy)

    @property
    def lost(self) -> int:
        """Threads that are stuck in calls nobody waits for any more."""
        return self._runner.lost

    def close(self, drain_s: float = 5.0) -> None:
        """Take no more calls, wait for background ones up to `drain_s`, mark the rest, end the workers."""
        self._approach.closed = True
        self._held.close()
        self._background.close(drain_s)
        for flight in list(self._flights.values()):
            flight.token.cancel()
        self._runner.close()
        self._road.close()
        self._maker.close()

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
