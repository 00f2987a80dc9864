"""Where async abilities run: on the caller's event loop, or on one loop of the host's own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from .pool import Busy, Cancelled, TimedOut
from .state import CancelToken

__all__ = ["LoopThread", "supervise"]

T = TypeVar("T")

#: seconds a loop gets to answer before it counts as stuck in an ability that blocks it.
GRACE_S: Final = 1.0


async def supervise(
    start: Callable[[], Coroutine[Any, Any, T]],
    limit_s: float | None,
    token: CancelToken,
    strays: set[asyncio.Task[Any]],
) -> T:
    """Run a coroutine as a task of its own and stop waiting for it on cancellation or at its limit.

    Args:
        start: makes the coroutine; the coroutine raises nothing of the ability's.
        limit_s: seconds it may take, or None.
        token: gives it up when cancelled.
        strays: keeps tasks that were given up until they end.

    Raises:
        TimedOut: the limit passed.
        Cancelled: the token was cancelled, even where the result was ready in the same moment.
    """
    loop = asyncio.get_running_loop()
    task = loop.create_task(start())
    ended: asyncio.Future[None] = loop.create_future()

    def end(_: object = None) -> None:
        if not ended.done():
            ended.set_result(None)

    def cancelled_elsewhere() -> None:
        try:
            loop.call_soon_threadsafe(end)
        except RuntimeError:  # the loop is closed: nobody waits any more
            pass

    task.add_done_callback(end)
    timer = loop.call_later(limit_s, end) if limit_s is not None else None
    remove = token.listen(cancelled_elsewhere)
    try:
        await ended
    finally:
        remove()
        if timer is not None:
            timer.cancel()
        if not task.done():
            strays.add(task)
            task.add_done_callback(lambda stray: _forget(stray, strays))
            task.cancel()
    if token.cancelled:
        raise Cancelled
    if not task.done():
        raise TimedOut
    return task.result()


def _forget(task: asyncio.Task[Any], strays: set[asyncio.Task[Any]]) -> None:
    strays.discard(task)
    if not task.cancelled():
        task.exception()  # looked at, so that the loop does not report what nobody waits for


class LoopThread:
    """One daemon thread with an event loop, started on first use, replaced where an ability blocks it.

    Args:
        most_lost: blocked loops that are replaced; with more, work is refused as `Busy`.
    """

    def __init__(self, most_lost: int = 8) -> None:
        self._most_lost = most_lost
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self._strays: set[asyncio.Task[Any]] = set()
        self.lost = 0

    def run(
        self, start: Callable[[], Coroutine[Any, Any, T]], limit_s: float | None, token: CancelToken
    ) -> T:
        """Run a coroutine on the loop and wait on this thread for its result.

        Raises:
            TimedOut: the limit passed.
            Cancelled: the token was cancelled.
            Busy: too many loops are blocked, or the host is closed.
        """
        loop = self._running()
        woken = threading.Event()
        future = asyncio.run_coroutine_threadsafe(supervise(start, limit_s, token, self._strays), loop)
        future.add_done_callback(lambda _: woken.set())
        remove = token.listen(woken.set)
        try:
            # `supervise` keeps the limit; this wait is longer, for a loop too blocked to keep it.
            answered = woken.wait(None if limit_s is None else limit_s + GRACE_S)
            if not future.done():
                answered = _answers(future, loop)
            if not answered:
                self._replace(loop)
                raise Cancelled if token.cancelled else TimedOut
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise
        finally:
            remove()

    def close(self) -> None:
        """Stop the loop; what still runs on it is abandoned."""
        with self._lock:
            self._closed = True
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._closed or self.lost > self._most_lost:
                raise Busy
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=self._serve, args=(self._loop,), name="chalie-loop", daemon=True
                ).start()
            return self._loop

    def _replace(self, loop: asyncio.AbstractEventLoop) -> None:
        """Leave a blocked loop to itself; it ends when the ability that blocks it does."""
        with self._lock:
            if self._loop is not loop:
                return
            self._loop = None
            self.lost += 1
        loop.call_soon_threadsafe(self._came_back, loop)

    def _came_back(self, loop: asyncio.AbstractEventLoop) -> None:
        # Others may have been waiting on this loop: it stops only when none of its tasks is left.
        if asyncio.all_tasks(loop):
            loop.call_later(0.1, self._came_back, loop)
            return
        with self._lock:
            self.lost -= 1
        loop.stop()

    @staticmethod
    def _serve(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            loop.close()


def _answers(future: Any, loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether the future is done, or the loop gets to it, within the grace."""
    done = threading.Event()
    future.add_done_callback(lambda _: done.set())
    return done.wait(GRACE_S)
