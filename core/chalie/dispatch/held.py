"""Running what a person approved while nobody waited for it: once, exactly as it was asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ..errors import ChalieError, LedgerUnavailable
from ..ledger.hold import Hold
from .flight import Flight
from .pool import Busy, Pool
from .refusals import Ended
from .state import TurnState

if TYPE_CHECKING:
    from ..catalogue.descriptor import Descriptor
    from ..gate.holds import Holds
    from ..ledger import Ledger

__all__ = ["Held", "Reopen"]

#: gives the turn that a hold is run in, and its ability as it is now (None where it is not there).
Reopen = Callable[[Hold], "tuple[TurnState, Descriptor | None]"]

#: seconds between looks at the ledger while anything waits.
_LOOK_S: Final = 0.25
#: seconds between looks at what other processes left behind.
_RECOVER_S: Final = 60.0


class Held:
    """The holds that this process runs.

    Args:
        ledger: where they are.
        holds: the gate's.
        reopen: gives the turn of a hold; None where holds cannot be run here.
        begin: takes a flight through the gate to just before its run, given the ability and its arguments.
        run: runs it and returns how it ended.
        finish: records that and returns its envelope.
        deliver: told of each envelope as (conversation, call id, envelope); may raise without effect.
        workers: holds that run at once.
    """

    def __init__(
        self,
        ledger: Ledger,
        holds: Holds,
        reopen: Reopen | None,
        begin: Callable[[Flight, Hold], Ended | None],
        run: Callable[[Flight], Ended],
        finish: Callable[[Flight, Ended], str | None],
        deliver: Callable[[str | None, str, str], None],
        workers: int,
    ) -> None:
        self._ledger = ledger
        self._holds = holds
        self._reopen = reopen
        self._begin = begin
        self._run = run
        self._finish = finish
        self._deliver = deliver
        self._pool = Pool("chalie-held", workers, most_lost=0)
        self._lock = threading.Lock()
        self._busy: set[str] = set()
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    @property
    def busy(self) -> tuple[str, ...]:
        """The holds that run now."""
        with self._lock:
            return tuple(self._busy)

    def run(self, hold_id: str) -> str | None:
        """Run an approved hold as the principal it was asked for; return its envelope.

        The result also goes to the conversation's inbox. None where another process, or another thread of
        this one, has taken it on.

        Raises:
            ChalieError: `hold-unknown`; `not-allowed`, where it belongs to another Python environment;
                `not-ready`, where its package is not there at the moment.
        """
        hold = self._holds.get(hold_id)
        if hold.environment != self._holds.environment or self._reopen is None:
            raise ChalieError(
                f"the hold {hold.id} was asked in another Python environment ({hold.environment}) and runs "
                "only there",
                code="not-allowed",
                hint="approve it with the chalie command of that environment, or start the agent there again",
            )
        with self._lock:
            if hold.id in self._busy or self._holds.is_waited_for(hold.id):
                return None
            self._busy.add(hold.id)
        try:
            return self._run_once(hold)
        finally:
            with self._lock:
                self._busy.discard(hold.id)

    def watch(self) -> None:
        """Run, from now on, what is approved for this process, until nothing waits any more."""
        with self._lock:
            if self._reopen is None or self._closing.is_set() or self._thread is not None:
                return
            self._thread = threading.Thread(target=self._look, name="chalie-holds", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Take no more holds on."""
        self._closing.set()
        self._pool.close()

    def _run_once(self, hold: Hold) -> str | None:
        assert self._reopen is not None
        state, descriptor = self._reopen(hold)
        if descriptor is None and state.snapshot.state(hold.dist) != "ready":
            raise ChalieError(
                f"{hold.dist} is not installed or not ready now; the hold {hold.id} stays as it is",
                code="not-ready",
                hint=f"chalie install {hold.dist}, then: chalie approve {hold.id}",
            )
        if descriptor is None:
            self._holds.void(hold, f"{hold.dist} has no tool {hold.name} any more")
            return None
        if descriptor.hash != hold.descriptor_hash:
            self._holds.void(hold, f"{hold.name} is described differently now than when it was asked about")
            return None
        flight = Flight(state, state.holds(descriptor.key) or hold.name, None, None)
        flight.id = hold.call_id
        flight.descriptor = descriptor
        flight.deliver = True
        ended = self._begin(flight, hold)
        if flight.hold is None:
            return None
        if ended is None:
            ended = self._run(flight)
        text = self._finish(flight, ended)
        if text is not None and flight.hold_started:
            try:
                self._deliver(hold.conversation, flight.id, text)
            except Exception:  # a listener's mistake costs nobody the call
                pass
        return text

    def _look(self) -> None:
        """Look at the ledger until nothing waits for this process any more."""
        mark = -1
        recovered = time.monotonic()
        while not self._closing.wait(_LOOK_S):
            try:
                if time.monotonic() - recovered > _RECOVER_S:
                    recovered = time.monotonic()
                    self._holds.recover(self.busy)
                now = self._ledger.mark()
                if now == mark:
                    continue
                mark = now
                for hold_id in self._ledger.holds.ready(self._holds.environment):
                    self._submit(hold_id)
                with self._lock:
                    if not self._ledger.holds.any_here(self._holds.environment):
                        self._thread = None
                        return
            except LedgerUnavailable:
                mark = -1  # look again: it may be busy or full only for a while

    def _submit(self, hold_id: str) -> None:
        if self._holds.is_waited_for(hold_id) or hold_id in self.busy:
            return

        def run() -> None:
            try:
                self.run(hold_id)
            except ChalieError:
                pass  # it stays approved, and is listed; whoever approves it again is told why

        try:
            self._pool.submit(run)
        except Busy:
            pass  # the next look finds it again
