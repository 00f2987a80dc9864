"""Runs one ability and turns whatever comes of it into a result."""

from __future__ import annotations

import dis
import functools
import inspect
import signal
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ..envelope import body_text
from ..errors import ArgumentRefused
from ..result import ToolResult, check
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
                begun = time.monotonic()
                ended = self._loop_thread().run(lambda: _run_async(work), limit_s, token)
                if not _is_text(ended.result.body):
                    ended = self._told(work, ended, limit_s, begun, token)
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

                begun = time.monotonic()
                ended = await supervise(lambda: _run_async(work), limit_s, token, self._strays)
                if not _is_plain(ended.result.body):  # objects of the ability must not hold up the loop
                    told = self.pool.submit(lambda: told_here(work, ended))
                    ended = await told.aresult(_left(limit_s, begun), token)
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

    def _told(
        self, work: Work, ended: Ended, limit_s: float | None, begun: float, token: CancelToken
    ) -> Ended:
        """Make text of a body within what is left of the time limit."""
        if limit_s is None:
            return told_here(work, ended)
        return self.pool.submit(lambda: told_here(work, ended)).result(_left(limit_s, begun), token)

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
        ended = judged(work.name, work.start())
    except BaseException as error:  # SystemExit and the like must not end the host
        if isinstance(error, KeyboardInterrupt) and was_pressed(error):
            raise
        return failed(work.name, error)
    return ended if _is_text(ended.result.body) else told_here(work, ended)


def told_here(work: Work, ended: Ended) -> Ended:
    """Return an end with its body as the text that will be shown.

    The objects in a body are the ability's own and may take as long, or raise what they like, when they are
    made text; so that belongs to the run.

    Raises:
        KeyboardInterrupt: a person pressed Ctrl-C.
    """
    try:
        result = ended.result
        body = body_text(result.body)
        return Ended(ToolResult("success", body, result.rich, result.meta), ended.detail)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and was_pressed(error):
            raise
        return failed(work.name, error)


def _is_text(body: Any) -> bool:
    return body is None or type(body) is str


#: values of a body that are looked at to see whether it is plain.
_MOST_PLAIN: Final = 1000
_ATOMS: Final = frozenset({str, int, float, bool, type(None)})


def _is_plain(body: Any) -> bool:
    """Return whether a body is small and plain JSON: no code of the ability's runs when it is made text."""
    pending, looked = [body], 0
    while pending:
        value = pending.pop()
        looked += 1
        if looked > _MOST_PLAIN:
            return False
        if type(value) is list or type(value) is tuple:
            pending.extend(value[:_MOST_PLAIN])
        elif type(value) is dict:
            if len(value) > _MOST_PLAIN or any(type(key) is not str for key in value):
                return False
            pending.extend(value.values())
        elif type(value) not in _ATOMS:
            return False
    return True


def _left(limit_s: float | None, begun: float) -> float | None:
    """Return the seconds that are left of a limit, never none at all."""
    return None if limit_s is None else max(0.001, begun + limit_s - time.monotonic())


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
    if type(value) is ToolResult:
        try:
            check(value)
        except Exception as error:
            return _not_canonical(name, "a result that says what it may not", str(error), described(error))
        return Ended(value)
    kind = "nothing" if value is None else f"a value of type {type(value).__name__}"
    advice = "the package's author must return a ToolResult from run()."
    if inspect.iscoroutine(value):
        value.close()  # it will never be awaited; closing it keeps Python from complaining later
        kind, advice = "a coroutine", "the package's author must declare run() as `async def`."
    elif isinstance(value, type) and issubclass(value, BaseException):
        kind = f"the exception class {value.__name__}"
    return _not_canonical(name, f"{kind} instead of a result", advice, f"run() returned {kind}")


def _not_canonical(name: str, what: str, advice: str, detail: str) -> Ended:
    result = ToolResult.error(
        f"{name} returned {what}", code="non-canonical-result", hint=f"do not retry; {advice}"
    )
    return Ended(result, detail)


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
