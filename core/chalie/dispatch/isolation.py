"""The host's side of worker processes: one for each package whose abilities are isolated."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from ..envelope import body_text
from .pool import Busy, Cancelled, TimedOut
from .refusals import Ended, worker_died
from .state import CancelToken

if TYPE_CHECKING:
    from ..catalogue.descriptor import Descriptor
    from .context import CallContext

__all__ = ["LoadFailed", "Workers"]

#: bytes of one message from a worker; more is no answer.
MOST_BYTES: Final = 64 * 1024 * 1024
#: bytes of a worker's output that are kept for the record of its death.
OUTPUT_KEPT: Final = 4096
#: seconds a cancelled call gets to end by itself before its worker is ended.
GRACE_S: Final = 1.0
#: calls that may wait for one package's worker.
MOST_WAITING: Final = 64

# `-P` and this line, and not `-m`: the worker sees the host's import path and neither more nor less.
_START: Final = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from chalie.dispatch.worker import main; main(*map(int, sys.argv[2:5]))"
)


class LoadFailed(Exception):
    """The package could not be imported in its worker; the text says why, for the trail."""


class Unclassified(Exception):
    """An ability's `classify` or `destination` raised in its worker; the text is what it raised."""


class Workers:
    """The worker processes of a host, by package.

    Args:
        start_s: seconds a worker may take to start, and to import an ability's module.
    """

    def __init__(self, start_s: float) -> None:
        self._start_s = start_s
        self._slots: dict[str, _Slot] = {}
        self._lock = threading.Lock()
        self._closed = False

    def run(
        self,
        descriptor: Descriptor,
        stamp: str,
        name: str,
        params: Mapping[str, Any],
        context: CallContext,
        limit_s: float | None,
        token: CancelToken,
    ) -> Ended:
        """Run one call in the package's worker, waiting for the calls before it.

        Args:
            descriptor: the ability.
            stamp: the package's stamp; a worker that was started under another one is replaced.
            name: what the model called it by.
            params: JSON values.
            context: answers what the worker asks for.
            limit_s: seconds the call may take; its worker is ended then.
            token: ends the call, and its worker if it does not end by itself.

        Raises:
            TimedOut: the limit passed. Cancelled: the token was cancelled. Busy: the worker's other calls
                do not end, or the host is closed.
        """
        from .run import failed
        from .worker import decoded

        with self._slot(descriptor.dist).taken(token, self._start_s if limit_s is None else limit_s) as slot:
            try:
                worker = slot.worker(stamp, self._start_s)
                worker.load(descriptor.target, self._start_s)
                request = {"op": "run", "name": name, "params": params, "target": descriptor.target}
                answer = worker.ask(request, context, limit_s, token)
            except LoadFailed as error:
                return failed(name, error)
            except _Died as died:
                return worker_died(name, str(died))
            try:
                if "ended" in answer:
                    return decoded(answer["ended"])
                reason = str(answer.get("failed"))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                worker.end()
                reason = f"{type(error).__name__}: {error}"
            return worker_died(name, f"the worker's answer is not one: {reason}")

    def classify(
        self,
        descriptor: Descriptor,
        stamp: str,
        params: Mapping[str, Any],
        context: CallContext,
        limit_s: float,
        what: Literal["classify", "destination"] = "classify",
    ) -> Any:
        """Return what the ability's `classify` or `destination` says, or raise what stands in its way."""
        token = CancelToken()
        with self._slot(descriptor.dist).taken(token, self._start_s) as slot:
            worker = slot.worker(stamp, self._start_s)
            try:
                worker.load(descriptor.target, self._start_s)
                request = {"op": what, "params": params, "target": descriptor.target}
                answer = worker.ask(request, context, limit_s, token)
            except _Died as died:
                raise LoadFailed(str(died)) from died
            if answer.get("why"):
                raise Unclassified(str(answer["why"]))
            return answer.get("said")

    def close(self) -> None:
        """End every worker."""
        with self._lock:
            self._closed = True
            slots = list(self._slots.values())
        for slot in slots:
            slot.close()

    def _slot(self, dist: str) -> _Slot:
        with self._lock:
            if self._closed:
                raise Busy
            return self._slots.setdefault(dist, _Slot())


class _Slot:
    """The place of one package's worker: who uses it, and who waits."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._used = False
        self._waiting = 0
        self._worker: _Process | None = None

    @contextlib.contextmanager
    def taken(self, token: CancelToken, most_s: float) -> Any:
        """Hold the slot alone. A call that hangs must not make the others wait for ever: they are `Busy`."""
        deadline = time.monotonic() + max(most_s, GRACE_S)
        remove = token.listen(self._wake)
        try:
            with self._changed:
                if self._used and self._waiting >= MOST_WAITING:
                    raise Busy
                self._waiting += 1
                try:
                    while self._used:
                        if token.cancelled:
                            raise Cancelled
                        if not self._changed.wait(max(0.0, deadline - time.monotonic())):
                            raise Busy
                    self._used = True
                finally:
                    self._waiting -= 1
        finally:
            remove()
        try:
            yield self
        finally:
            with self._changed:
                self._used = False
                self._changed.notify_all()

    def worker(self, stamp: str, start_s: float) -> _Process:
        """Return a live worker for that stamp, starting one where there is none."""
        worker = self._worker
        if worker is not None and (worker.stamp != stamp or worker.ended):
            worker.end()
            worker = None
        if worker is None:
            self._worker = worker = _Process(stamp, start_s)
        return worker

    def close(self) -> None:
        """End the worker, whoever uses it."""
        if self._worker is not None:
            self._worker.end()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


class _Died(Exception):
    """The worker ended before it answered; the text says how, for the trail."""


class _Process:
    """One worker process, used by one call at a time."""

    def __init__(self, stamp: str, start_s: float) -> None:
        self.stamp = stamp
        self.ended = False
        self._messages: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._loaded: set[str] = set()
        self._number = 0
        self._output = b""
        self._ending = threading.Lock()
        request_read, self._requests = os.pipe()
        self._answers, answer_write = os.pipe()
        lifeline, self._lifeline = os.pipe()
        theirs = (request_read, answer_write, lifeline)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _START, json.dumps(sys.path), *map(str, theirs)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=theirs,
                env={key: value for key, value in os.environ.items() if key != "CHALIE_APPROVER_TOKEN"},
                start_new_session=True,  # no controlling terminal: nothing it starts can answer for a person
            )
        except OSError as error:
            for descriptor in (self._requests, self._answers, self._lifeline):
                os.close(descriptor)
            raise LoadFailed(f"no worker process can be started: {error}") from error
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        os.set_blocking(self._requests, False)
        self._group: int | None = None
        self._reader = threading.Thread(target=self._read, name="chalie-worker", daemon=True)
        self._reader.start()
        try:
            self._group = int(self._next(time.monotonic() + start_s)["ready"])
        except TimedOut:
            self.end()
            raise LoadFailed(f"its worker process did not start within {start_s:g} s") from None
        except _Died as died:
            raise LoadFailed(f"its worker process did not start: {died}") from None

    def load(self, target: str, limit_s: float) -> None:
        """Import an ability in the worker, once. Not counted into a call's time limit.

        Raises:
            LoadFailed: it raised or took too long.
        """
        if target in self._loaded:
            return
        try:
            answer = self.ask({"op": "load", "target": target}, None, limit_s, CancelToken())
        except TimedOut:
            raise LoadFailed(f"{target} was not imported within {limit_s:g} s") from None
        if "loaded" not in answer:
            raise LoadFailed(str(answer.get("failed")))
        self._loaded.add(target)

    def ask(
        self, request: dict[str, Any], context: CallContext | None, limit_s: float | None, token: CancelToken
    ) -> dict[str, Any]:
        """Send a request and return its answer, serving what the worker asks for in between.

        Raises:
            _Died: the worker ended. TimedOut, Cancelled: it was ended here.
        """
        self._number += 1
        number = request["id"] = self._number
        if context is not None:
            request["context"] = _facts(context)
        deadline = None if limit_s is None else time.monotonic() + limit_s
        remove = token.listen(lambda: self._messages.put({"id": number, "cancelled": True}))
        try:
            self._send(request, deadline)
            while True:
                message = self._next(deadline)
                if message.get("id") != number:
                    continue  # of a call that was given up
                if "cancelled" in message:
                    self._cancel(number)
                    raise Cancelled
                if "progress" in message and context is not None:
                    context.progress(*message["progress"])
                elif "wants" in message and context is not None:
                    self._send({"op": "given", **_given(context, message)}, deadline)
                else:
                    return message
        except TimedOut:
            self.end()
            raise
        except (KeyboardInterrupt, TypeError, KeyError) as error:
            self.end()
            if isinstance(error, KeyboardInterrupt):
                raise
            raise _Died(f"it sent a message that is not one: {error}") from error
        finally:
            remove()

    def end(self) -> None:
        """End the worker and everything it started; wait until it is gone."""
        with self._ending:
            if self.ended:
                return
            self.ended = True
            os.close(self._lifeline)  # the guard does the rest
            try:
                self._process.wait(2.0)
            except subprocess.TimeoutExpired:  # the guard itself is stopped or stuck
                if self._group is not None:
                    with contextlib.suppress(OSError):
                        os.killpg(self._group, signal.SIGKILL)
                self._process.kill()
                self._process.wait()
            os.close(self._requests)

    def _cancel(self, number: int) -> None:
        """Ask the worker to stop the call; end the worker where the call goes on regardless."""
        deadline = time.monotonic() + GRACE_S
        try:
            self._send({"op": "cancel", "id": number}, deadline)
            while True:
                message = self._next(deadline)
                if message.get("id") == number and ("ended" in message or "failed" in message):
                    return
        except (TimedOut, _Died):
            self.end()

    def _send(self, message: Mapping[str, Any], deadline: float | None) -> None:
        data = memoryview(json.dumps(message, default=body_text).encode("ascii") + b"\n")
        poll = select.poll()
        poll.register(self._requests, select.POLLOUT)
        while data:
            if self.ended:
                raise _Died("it was ended")
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise TimedOut
            poll.poll(1000 if left is None else min(1000, left * 1000))
            try:
                data = data[os.write(self._requests, data) :]
            except BlockingIOError:
                continue
            except OSError:
                raise _Died(self._how()) from None

    def _next(self, deadline: float | None) -> dict[str, Any]:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        try:
            message = self._messages.get(timeout=left)
        except queue.Empty:
            raise TimedOut from None
        if message is None:
            self._messages.put(None)
            raise _Died(self._how())
        return message

    def _how(self) -> str:
        """Return how the worker ended, with the last it printed."""
        try:
            code = self._process.wait(2.0)
        except subprocess.TimeoutExpired:
            code = None
        self.end()
        how = "it ended" if code is None else f"it exited with code {code}"
        if code is not None and code > 128:
            with contextlib.suppress(ValueError):
                how = f"it was ended by {signal.Signals(code - 128).name}"
        printed = self._output.decode("utf-8", "replace").strip()
        return f"{how}; its last output: {printed}" if printed else how

    def _read(self) -> None:
        """Collect answers and output until the worker's ends of both pipes are closed."""
        assert self._process.stdout is not None
        printed = self._process.stdout.fileno()
        poll = select.poll()
        poll.register(self._answers, select.POLLIN | select.POLLHUP)
        poll.register(printed, select.POLLIN | select.POLLHUP)
        open_ends = {self._answers, printed}
        pending: list[bytes] = []
        while self._answers in open_ends:
            for descriptor, _ in poll.poll():
                data = os.read(descriptor, 65536)
                if not data:
                    open_ends.discard(descriptor)
                    poll.unregister(descriptor)
                elif descriptor == printed:
                    self._output = (self._output + data)[-OUTPUT_KEPT:]
                else:
                    pending.append(data)
                    if b"\n" in data:
                        pending = [self._parted(b"".join(pending))]
                    elif len(pending) * len(data) > MOST_BYTES and sum(map(len, pending)) > MOST_BYTES:
                        open_ends.discard(self._answers)
        if printed in open_ends:  # the last words of a crash are worth a moment
            self._drain(printed)
        self._messages.put(None)
        os.close(self._answers)
        self._process.stdout.close()

    def _drain(self, printed: int) -> None:
        os.set_blocking(printed, False)
        poll = select.poll()
        poll.register(printed, select.POLLIN | select.POLLHUP)
        until = time.monotonic() + 0.5
        while (left := until - time.monotonic()) > 0 and poll.poll(left * 1000):
            with contextlib.suppress(BlockingIOError):
                data = os.read(printed, 65536)
                if not data:
                    return
                self._output = (self._output + data)[-OUTPUT_KEPT:]

    def _parted(self, data: bytes) -> bytes:
        *lines, rest = data.split(b"\n")
        for line in lines:
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                continue  # package code found the pipe and wrote to it; its call will not be answered
            if isinstance(message, dict):
                self._messages.put(message)
        return rest


def _facts(context: CallContext) -> dict[str, Any]:
    return {
        "principal": context.principal,
        "conversation": context.conversation,
        "channel": context.channel,
        "client": dict(context.client),
    }


def _given(context: CallContext, message: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the ability asked its context for, or why it cannot have it."""
    try:
        if message["wants"] == "folder":
            return {"value": str(context.data_folder)}
        return {"value": [[float(x) for x in vector] for vector in context.embed(message["texts"])]}
    except Exception as error:
        return {"refused": f"the host could not give {message['wants']}: {error}"}
