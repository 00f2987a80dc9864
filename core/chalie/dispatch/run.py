"""Runs one ability and turns whatever comes of it into a result."""

from __future__ import annotations

import dis
import functools
import inspect
import signal
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ..errors import ArgumentRefused
from ..result import ToolResult
from .pool import Busy, Cancelled, Pool, TimedOut
from .refusals import Ended, busy, cancelled, described, timed_out
from .state import CancelToken

if TYPE_CHECKING:
    import asyncio

    from ..ability import Ability
    from .context import CallContext
    from .loop import LoopThread

__all__ = ["Runner", "Work", "failed", "judged", "run_here", "was_pressed"]


class Work:
    """One run of an ability.

    Args:
        name: what the model called it by, for messages.
        cls: the ability's class; made anew for the call, on the thread that runs it.
        made: the instance instead, for the host's own abilities.
        params: healed and validated arguments, handles expanded.
        context: what the ability is bound to.
        remote: runs it in a worker process instead, given the limit and the token.
    """

    __slots__ = ("cls", "context", "made", "name", "params", "remote")

    def __init__(
        self,
        name: str,
        cls: type[Ability] | None,
        params: dict[str, Any],
        context: CallContext,
        *,
        made: Ability | None = None,
        remote: Callable[[float | None, CancelToken], Ended] | None = None,
    ) -> None:
        self.name = name
        self.cls = cls
        self.params = params
        self.context = context
        self.made = made
        self.remote = remote

    def start(self) -> Any:
        """Make the ability, bind it to its context and return what its `run` returns."""
        ability = self.made
        if ability is None:
            assert self.cls is not None
            ability = self.cls()
        ability.bind(self.context)
        return ability.run(ability.arguments_for(self.params))

    @property
    def is_async(self) -> bool:
        """Whether `run` is declared `async def`."""
        cls = self.cls if self.made is None else type(self.made)
        return _is_async(getattr(cls, "run", None))


#: asked once for each function: it looks through wrappers and marks, and a call should not.
_is_async = functools.lru_cache(maxsize=1024)(inspect.iscoroutinefunction)


class Runner:
    """Runs abilities where they belong: here, on a pool thread, on a loop, or in a worker process.

    Args:
        pool: for sync abilities that must not hold up the caller.
    """

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self._loops: LoopThread | None = None
        self._making = threading.Lock()
        self._closed = False
        self._strays: set[asyncio.Task[Any]] = set()

    @property
    def lost(self) -> int:
        """Threads and loops that are stuck in calls nobody waits for any more."""
        return self.pool.lost + (self._loops.lost if self._loops is not None else 0)

    def run(self, work: Work, limit_s: float | None, token: CancelToken) -> Ended:
        """Run on behalf of a caller that may wait on its thread.

        A sync ability without a time limit runs on this very thread: nothing is faster, and a hang is
        then the caller's to interrupt.
        """
        try:
            if work.remote is not None:
                ended = work.remote(limit_s, token)
            elif work.is_async:
                ended = self._loop_thread().run(lambda: _run_async(work), limit_s, token)
            elif limit_s is None:
                ended = run_here(work)
            else:
                ended = self.pool.submit(lambda: run_here(work)).result(limit_s, token)
        except (TimedOut, Cancelled, Busy) as error:
            return _stopped(error, work.name, limit_s, token)
        except Exception as error:  # of the machinery around the ability, which catches the ability's own
            return failed(work.name, error)
        return cancelled(work.name) if token.cancelled else ended

    async def arun(self, work: Work, limit_s: float | None, token: CancelToken) -> Ended:
        """Run on behalf of a coroutine, without ever blocking its loop."""
        try:
            if work.remote is not None:
                remote = work.remote
                ended = await self.pool.submit(lambda: remote(limit_s, token)).aresult(None, token)
            elif work.is_async:
                if len(self._strays) >= self.pool.most_lost:
                    raise Busy
                from .loop import supervise

                ended = await supervise(lambda: _run_async(work), limit_s, token, self._strays)
            else:
                ended = await self.pool.submit(lambda: run_here(work)).aresult(limit_s, token)
        except (TimedOut, Cancelled, Busy) as error:
            return _stopped(error, work.name, limit_s, token)
        except Exception as error:  # of the machinery around the ability, which catches the ability's own
            return failed(work.name, error)
        return cancelled(work.name) if token.cancelled else ended

    def close(self) -> None:
        """Take no more work. What is stuck is left to its daemon threads."""
        self.pool.close()
        with self._making:
            self._closed = True
            if self._loops is not None:
                self._loops.close()

    def _loop_thread(self) -> LoopThread:
        with self._making:
            if self._loops is None:
                from .loop import (
                    LoopThread,
                )  # brings asyncio, which a program without async tools never needs

                self._loops = LoopThread()
                if self._closed:
                    self._loops.close()
            return self._loops


def run_here(work: Work) -> Ended:
    """Run a sync ability on this thread.

    Raises:
        KeyboardInterrupt: a person pressed Ctrl-C; one that the ability raised itself is its failure.
    """
    try:
        value = work.start()
    except BaseException as error:  # SystemExit and the like must not end the host
        if isinstance(error, KeyboardInterrupt) and was_pressed(error):
            raise
        return failed(work.name, error)
    return judged(work.name, value)


async def _run_async(work: Work) -> Ended:
    import asyncio

    try:
        value = await work.start()
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return failed(work.name, error)
    except BaseException as error:  # a SystemExit would go through the task and end the loop
        if isinstance(error, KeyboardInterrupt) and was_pressed(error):
            raise
        return failed(work.name, error)
    return judged(work.name, value)


def judged(name: str, value: Any) -> Ended:
    """Return an ability's own result, or the refusal of anything else."""
    if isinstance(value, ToolResult):
        return Ended(value)
    kind = "nothing" if value is None else f"a value of type {type(value).__name__}"
    advice = "the package's author must return a ToolResult from run()."
    if inspect.iscoroutine(value):
        value.close()  # it will never be awaited; closing it keeps Python from complaining later
        kind, advice = "a coroutine", "the package's author must declare run() as `async def`."
    elif isinstance(value, type) and issubclass(value, BaseException):
        kind = f"the exception class {value.__name__}"
    result = ToolResult.error(
        f"{name} returned {kind} instead of a result",
        code="non-canonical-result",
        hint=f"do not retry; {advice}",
    )
    return Ended(result, f"run() returned {kind}")


def failed(name: str, error: BaseException) -> Ended:
    """Return what the model is told of an exception, and what the trail is."""
    if isinstance(error, ArgumentRefused):
        message = error.message or f"{name} refused an argument"
        return Ended(ToolResult.error(message, code=error.code, hint=error.hint, valid=error.valid))
    result = ToolResult.error(
        f"{name} failed with an error of its own",
        code="unhandled-exception",
        hint="the details are on the trail, for the person; a retry with the same arguments may fail again.",
    )
    return Ended(result, described(error))


def _stopped(error: Exception, name: str, limit_s: float | None, token: CancelToken) -> Ended:
    if isinstance(error, Busy):
        return busy(name)
    if isinstance(error, Cancelled):
        return cancelled(name)
    token.cancel()  # an ability that looks at `context.cancelled` ends now
    return timed_out(name, limit_s)


_RAISES: Final = frozenset(dis.opmap[name] for name in ("RAISE_VARARGS", "RERAISE") if name in dis.opmap)


def was_pressed(error: KeyboardInterrupt) -> bool:
    """Return whether a KeyboardInterrupt came from the signal and not from a `raise` in the ability.

    The signal's handler is C code that raises between two instructions of whatever ran; a `raise`
    statement stands at the innermost frame of its traceback.
    """
    if threading.current_thread() is not threading.main_thread():
        return False
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return False
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return True
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] not in _RAISES
