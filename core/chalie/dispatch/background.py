"""Calls that go on after they were acknowledged: their workers, their delivery, their end with the host."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..envelope import render
from ..errors import LedgerUnavailable
from ..result import ToolResult
from .pool import Pool
from .refusals import Ended

if TYPE_CHECKING:
    from ..ledger import Ledger
    from .flight import Flight

__all__ = ["Background"]


class Background:
    """The background calls of one host.

    Args:
        ledger: its jobs and inbox.
        workers: calls that run at once; others wait their turn.
        finish: records how a call ended and returns its envelope; None where that was done before.
        deliver: told of each delivered envelope as (conversation, call id, envelope).
    """

    def __init__(
        self,
        ledger: Ledger,
        workers: int,
        finish: Callable[[Flight, Ended], str | None],
        deliver: Callable[[str | None, str, str], None],
    ) -> None:
        self._ledger = ledger
        self._pool = Pool("chalie-background", workers, most_lost=0)
        self._finish = finish
        self._deliver = deliver
        self._running: dict[str, Flight] = {}
        self._changed = threading.Condition()

    def start(self, flight: Flight, run: Callable[[], Ended]) -> None:
        """Begin a call on a worker.

        Raises:
            Busy: too many wait already.
            LedgerUnavailable: the call cannot be recorded as a job.
        """
        self._ledger.jobs.open(
            flight.id,
            dist=flight.dist,
            name=flight.name,
            principal=flight.state.principal,
            conversation=flight.state.conversation,
        )
        with self._changed:
            self._running[flight.id] = flight
        try:
            self._pool.submit(lambda: self._end(flight, run()))
        except BaseException:
            with self._changed:
                self._running.pop(flight.id, None)
            self._ledger.jobs.finish(flight.id, "failed", code="busy")
            raise

    def close(self, drain_s: float) -> None:
        """Wait for the calls that run, up to `drain_s` seconds; then cancel, mark and deliver the rest."""
        deadline = time.monotonic() + drain_s
        with self._changed:
            while self._running and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            rest = list(self._running.values())
        for flight in rest:
            flight.token.cancel()
            result = ToolResult.error(
                f"{flight.name} was still running when the host closed",
                code="cancelled",
                hint="whether it took effect is not known; check before you call it again.",
            )
            self._end(flight, Ended(result, "the host closed before it ended"))
        self._pool.close()

    def recover(self) -> int:
        """Mark and deliver the calls of processes that ended without doing so; return how many.

        Raises:
            LedgerUnavailable: the ledger cannot be written.
        """
        lost = self._ledger.jobs.mark_interrupted()
        for job in lost:
            result = ToolResult.error(
                f"{job.name} was running in the background when its host ended",
                code="cancelled",
                hint="whether it took effect is not known; check before you call it again.",
            )
            self._ledger.trail.outcome(
                job.call_id,
                status="error",
                code="cancelled",
                duration_us=0,
                dist=job.dist,
                name=job.name,
                principal=job.principal,
                conversation=job.conversation,
                detail="its process ended before the call did",
            )
            self._hand_over(job.principal, job.conversation, job.call_id, render(job.name, result))
        return len(lost)

    def _end(self, flight: Flight, ended: Ended) -> None:
        try:
            text = self._finish(flight, ended)
            if text is None:
                return  # it was marked as the host closed; what it gives now comes too late
            code = ended.result.code
            state = "done" if code is None else "cancelled" if code == "cancelled" else "failed"
            # First what somebody waits for, then the note that it is done: a crash between loses nothing.
            self._hand_over(flight.state.principal, flight.state.conversation, flight.id, text)
            try:
                self._ledger.jobs.finish(flight.id, state, code=code)
            except LedgerUnavailable:
                pass  # the next host that opens the ledger finds it unfinished and says so
        finally:
            with self._changed:
                self._running.pop(flight.id, None)
                self._changed.notify_all()

    def _hand_over(self, principal: str | None, conversation: str | None, call_id: str, text: str) -> None:
        try:
            self._ledger.inbox.deliver(principal, conversation, call_id, text)
        except LedgerUnavailable:
            pass  # the listener below may still have it
        try:
            self._deliver(conversation, call_id, text)
        except Exception:  # a listener's mistake costs nobody the call
            pass
