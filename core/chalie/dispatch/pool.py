"""The threads abilities run on: bounded, daemons, and replaced where one is stuck."""

from __future__ import annotations

import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Generic, Literal, TypeVar

from .state import CancelToken

__all__ = ["Busy", "Cancelled", "Pool", "Ticket", "TimedOut"]

T = TypeVar("T")

#: seconds an idle thread is kept for the next piece of work.
IDLE_S: Final = 30.0


class Busy(Exception):
    """The pool takes no more work: its queue is full, or all the threads it may have are stuck."""


class Cancelled(Exception):
    """The work was given up because its token was cancelled."""


class TimedOut(Exception):
    """The work was given up because its time limit passed."""


class Ticket(Generic[T]):
    """One piece of work in a pool: its state, its result, and the one who waits for it."""

    __slots__ = ("_context", "_pool", "_woken", "_work", "started", "state", "value")

    def __init__(self, pool: Pool, work: Callable[[], T]) -> None:
        self._pool = pool
        self._work = work
        self._context = contextvars.copy_context()
        self._woken: Callable[[], None] | None = None
        self.state: Literal["queued", "running", "done", "given-up"] = "queued"
        self.started: float | None = None
        self.value: T | BaseException | None = None

    def result(self, limit_s: float | None = None, token: CancelToken | None = None) -> T:
        """Wait on this thread until the work is done and return its result.

        Args:
            limit_s: seconds the work may run, counted from when a thread took it up.
            token: gives the work up when it is cancelled.

        Raises:
            TimedOut: the limit passed. The thread stays with the work until it ends by itself.
            Cancelled: the token was cancelled first.
        """
        event = threading.Event()
        self._woken = event.set
        remove = token.listen(event.set) if token is not None else None
        try:
            with self._pool.lent():
                while True:
                    event.clear()
                    remaining = self._remaining(limit_s, token)
                    if remaining == 0.0:
                        return self._taken()
                    event.wait(remaining)
        except KeyboardInterrupt:
            self._pool._give_up(self)
            raise
        finally:
            if remove is not None:
                remove()

    async def aresult(self, limit_s: float | None = None, token: CancelToken | None = None) -> T:
        """Do what `result` does without blocking the running event loop."""
        import asyncio  # here and not above: a program without an event loop need not pay for it

        loop = asyncio.get_running_loop()
        event = asyncio.Event()

        def wake() -> None:
            try:
                loop.call_soon_threadsafe(event.set)
            except RuntimeError:  # the loop is closed: nobody waits any more
                pass

        self._woken = wake
        remove = token.listen(wake) if token is not None else None
        try:
            while True:
                event.clear()
                remaining = self._remaining(limit_s, token)
                if remaining == 0.0:
                    return self._taken()
                try:
                    await asyncio.wait_for(event.wait(), remaining)
                except TimeoutError:
                    pass
        except asyncio.CancelledError:
            self._pool._give_up(self)
            raise
        finally:
            if remove is not None:
                remove()

    def _remaining(self, limit_s: float | None, token: CancelToken | None) -> float | None:
        """Return 0.0 when done, else the seconds to wait (None: until woken)."""
        if token is not None and token.cancelled:
            self._pool._give_up(self)
            raise Cancelled
        if self.state == "done":
            return 0.0
        started = self.started
        if limit_s is None or started is None:
            return None
        remaining = started + limit_s - time.monotonic()
        if remaining > 0:
            return remaining
        if self._pool._give_up(self):
            raise TimedOut
        return 0.0  # it finished while we looked

    def _taken(self) -> T:
        value = self.value
        if isinstance(value, BaseException):
            raise value
        return value  # type: ignore[return-value]

    def _run(self) -> None:
        try:
            self.value = self._context.run(self._work)
        except BaseException as error:  # handed to the waiter; a pool thread must outlive its work
            self.value = error


class Pool:
    """A bounded number of daemon threads that run work for whoever waits.

    A thread whose waiter gave up (time limit, cancellation) is *lost*: counted, and replaced so that the
    others keep their strength, until `most_lost` are; from then on each further one weakens the pool, and
    with no thread left it refuses work as `Busy`. A lost thread that ends after all is counted back.

    Args:
        name: of the threads, for a debugger.
        workers: threads that work at once.
        most_lost: lost threads that are replaced.
        most_queued: pieces of work that may wait.
    """

    def __init__(self, name: str, workers: int, *, most_lost: int | None = None, most_queued: int = 1000):
        self._name = name
        self._workers = workers
        self.most_lost = 4 * workers if most_lost is None else most_lost
        self._most = workers + self.most_lost
        self._most_queued = most_queued
        self._queue: deque[Ticket[Any]] = deque()
        self._changed = threading.Condition()
        self._threads = 0  # every live thread, lost ones included
        self._lost = 0
        self._lent = 0
        self._idle = 0
        self._closed = False
        self._numbers = 0
        self._here = threading.local()

    @property
    def lost(self) -> int:
        """Threads that are stuck in work nobody waits for any more."""
        return self._lost

    def submit(self, work: Callable[[], T]) -> Ticket[T]:
        """Queue a piece of work.

        Raises:
            Busy: the queue is full, or no thread is left that is not stuck.
        """
        ticket = Ticket(self, work)
        with self._changed:
            if self._closed or self._room() <= 0 or len(self._queue) >= self._most_queued:
                raise Busy
            self._queue.append(ticket)
            self._staff()
        return ticket

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let another thread work in this one's place while it waits for work of the same pool.

        Without it, workers that each wait for a further piece of work would wait for ever.
        """
        lends = self.lend()
        try:
            yield
        finally:
            if lends:
                self.take_back()

    def lend(self) -> bool:
        """Let another thread work in this one's place from now on, until `take_back`.

        Returns:
            Whether this is a thread of the pool at all; where it is not, nothing is to be taken back.
        """
        if getattr(self._here, "ticket", None) is None:
            return False
        with self._changed:
            self._lent += 1
            self._staff()
        return True

    def take_back(self) -> None:
        """Work on in this thread's own place."""
        with self._changed:
            self._lent -= 1

    def close(self) -> None:
        """Refuse new work and let idle threads end. Running work goes on; daemons never hold up exit."""
        with self._changed:
            self._closed = True
            waiting = list(self._queue)
            self._queue.clear()
            for ticket in waiting:
                ticket.value, ticket.state = Cancelled(), "done"
            self._changed.notify_all()
        for ticket in waiting:
            if ticket._woken is not None:
                ticket._woken()

    def _room(self) -> int:
        """Return how many threads may work at once, given those that are stuck or wait."""
        return min(self._workers, self._most - self._lost - self._lent)

    def _staff(self) -> None:
        """Wake or start a thread for queued work; the lock is held."""
        if not self._queue:
            return
        if self._idle:
            self._changed.notify()
        # An idle thread may have been woken for earlier work already, so idle ones are compared by number.
        if self._idle < len(self._queue) and self._threads - self._lost - self._lent < self._room():
            self._threads += 1
            self._numbers += 1
            thread = threading.Thread(target=self._serve, name=f"{self._name}-{self._numbers}", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # the system gives no more threads
                self._threads -= 1
                if self._threads - self._lost <= 0:
                    self._queue.pop()
                    raise Busy from error

    def _serve(self) -> None:
        while True:
            ticket = self._next()
            if ticket is None:
                return
            self._here.ticket = ticket
            ticket._run()
            self._here.ticket = None
            with self._changed:
                lost = ticket.state == "given-up"
                if lost:
                    self._lost -= 1
                    self._threads -= 1
                else:
                    ticket.state = "done"
            if lost:
                return  # it was replaced
            if ticket._woken is not None:
                ticket._woken()
            del ticket  # an idle thread must not keep the last call's arguments alive

    def _next(self) -> Ticket[Any] | None:
        with self._changed:
            while True:
                if self._queue:
                    ticket = self._queue.popleft()
                    ticket.state = "running"
                    ticket.started = time.monotonic()
                    break
                if self._closed:
                    self._threads -= 1
                    return None
                self._idle += 1
                woken = self._changed.wait(IDLE_S)
                self._idle -= 1
                if not woken and not self._queue:
                    self._threads -= 1
                    return None
        if ticket._woken is not None:
            ticket._woken()
        return ticket

    def _give_up(self, ticket: Ticket[Any]) -> bool:
        """Stop waiting for work; return False where it was done already."""
        with self._changed:
            if ticket.state == "queued":
                ticket.state = "given-up"
                try:
                    self._queue.remove(ticket)
                except ValueError:  # the pool was closed
                    pass
            elif ticket.state == "running":
                ticket.state = "given-up"
                self._lost += 1
                self._staff()
            return ticket.state != "done"
