"""The worker process of one package: runs its isolated abilities, one call at a time.

Two processes stand behind one worker. The first is a *guard*: it imports nothing of the package, holds
the read end of a pipe whose write end only the host has, and ends the second process with everything
that one started as soon as either the host or the second process is gone, however it went. The second
process imports the package and runs its abilities.

Neither has a controlling terminal, a standard input or an approver token. What package code prints goes
to the host as text for its records and never to the host's own output. Messages are lines of JSON on
two pipes of their own.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import json
import os
import queue
import select
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..ability import Ability
from ..envelope import body_text
from ..errors import ChalieError
from ..result import ToolResult
from .classify import said
from .refusals import Ended, described
from .run import failed, judged

__all__ = ["decoded", "encoded", "main"]


def main(requests: int, answers: int, lifeline: int) -> None:
    """Become the guard and the worker. Returns in neither.

    Args:
        requests: file descriptor the host writes to.
        answers: file descriptor the host reads.
        lifeline: file descriptor that reads as closed once the host is gone.
    """
    for descriptor in (requests, answers, lifeline):
        os.set_inheritable(descriptor, False)
    # Set up before the fork: a child that dies at once must not be missed.
    wake_read, wake_write = os.pipe()
    for descriptor in (wake_read, wake_write):
        os.set_blocking(descriptor, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_write)
    child = os.fork()
    if child:
        os.close(requests)
        os.close(answers)
        _guard(child, lifeline, wake_read)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for descriptor in (wake_read, wake_write, lifeline):
        os.close(descriptor)
    os.setpgid(0, 0)  # a group of its own, so that the guard can end it with all it started
    _Worker(requests, answers).serve()
    os._exit(0)


def _guard(child: int, lifeline: int, wake: int) -> None:
    """Wait for the end of the host or of the worker, end what is left, and exit as the worker did."""
    with contextlib.suppress(OSError):  # the child does it too; whoever comes first
        os.setpgid(child, child)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # the host sees the end of the worker's output when the worker is gone
        os.dup2(nothing, stream)
    status = 0
    poll = select.poll()
    poll.register(lifeline, select.POLLIN | select.POLLHUP)
    poll.register(wake, select.POLLIN)
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        ready = {descriptor for descriptor, _ in poll.poll()}
        if wake in ready:
            os.read(wake, 512)
        if lifeline in ready:
            os.kill(child, signal.SIGKILL)  # not yet waited for, so the number is still its own
            _, status = os.waitpid(child, 0)
            break
    # What it started is in its group, and the group keeps its number while any of them lives.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


class _Worker:
    """The package's process: reads requests on one thread, runs them on the main one."""

    def __init__(self, requests: int, answers: int) -> None:
        self._requests = requests
        self._answers = answers
        self._writing = threading.Lock()
        self._asking = threading.Lock()
        self._work: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._given: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._classes: dict[str, type[Ability]] = {}
        self.call: _RemoteContext | None = None

    def serve(self) -> None:
        """Answer requests until the host is gone."""
        import faulthandler

        faulthandler.enable()
        threading.Thread(target=self._read, name="chalie-requests", daemon=True).start()
        self.send({"ready": os.getpid()})
        while True:
            request = self._work.get()
            try:
                answer = self._answer(request)
            except BaseException as error:  # whatever package code raises, the worker goes on
                answer = {"failed": described(error)}
            try:
                self.send({"id": request["id"], **answer})
            except (TypeError, ValueError, RecursionError) as error:
                self.send({"id": request["id"], "failed": described(error)})

    def send(self, message: Mapping[str, Any]) -> None:
        """Write one message; ASCII, so that no text can break the encoding or the line."""
        data = memoryview(json.dumps(message).encode("ascii") + b"\n")
        with self._writing:
            while data:
                data = data[os.write(self._answers, data) :]

    def ask(self, call_id: int, wants: str, **more: Any) -> Any:
        """Ask the host for something a context offers, and wait for it."""
        with self._asking:
            self.send({"id": call_id, "wants": wants, **more})
            answer = self._given.get()
        if "refused" in answer:
            raise ChalieError(answer["refused"])
        return answer["value"]

    def _read(self) -> None:
        try:
            with os.fdopen(self._requests, "rb", closefd=False) as lines:
                for line in lines:
                    message = json.loads(line)
                    if message["op"] == "cancel":
                        if self.call is not None and self.call.id == message["id"]:
                            self.call.cancel()
                    elif message["op"] == "given":
                        self._given.put(message)
                    else:
                        self._work.put(message)
        finally:
            os._exit(0)  # the host is gone; the guard ends what this process started

    def _answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        target = request["target"]
        if request["op"] == "load":
            self._classes[target] = _imported(target)
            return {"loaded": True}
        cls = self._classes[target]
        context = _RemoteContext(self, request)
        self.call = context
        try:
            if request["op"] in ("classify", "destination"):
                ability = cls().bind(context)
                asked = ability.classify if request["op"] == "classify" else ability.destination
                try:
                    return {"said": asked(ability.arguments_for(request["params"]))}
                except Exception as error:
                    return {"failed": described(error), "why": said(error)}
            return {"ended": encoded(self._run(request["name"], cls, request["params"], context))}
        finally:
            self.call = None

    def _run(self, name: str, cls: type[Ability], params: dict[str, Any], context: _RemoteContext) -> Ended:
        try:
            ability = cls().bind(context)
            arguments = ability.arguments_for(params)
            if inspect.iscoroutinefunction(cls.run):
                value = asyncio.run(context.awaited(ability.run(arguments)))
            else:
                value = ability.run(arguments)
        except BaseException as error:  # SystemExit and the like cost this call alone
            return failed(name, error)
        return judged(name, value)


class _RemoteContext:
    """The context of a call in the worker; what it cannot know it asks the host for."""

    def __init__(self, worker: _Worker, request: Mapping[str, Any]) -> None:
        given = request["context"]
        self.id: int = request["id"]
        self.principal: str = given["principal"]
        self.conversation: str | None = given["conversation"]
        self.channel: str = given["channel"]
        self.client: Mapping[str, Any] = given["client"]
        self.cancelled = False
        self._worker = worker
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None

    @property
    def data_folder(self) -> Path:
        """The package's private folder, made on first use."""
        return Path(self._worker.ask(self.id, "folder"))

    def progress(self, fraction: float | None, message: str = "") -> None:
        """Report how far the call is."""
        if not self.cancelled:
            self._worker.send({"id": self.id, "progress": [fraction, str(message)]})

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one unit vector for each text."""
        vectors: list[list[float]] = self._worker.ask(self.id, "vectors", texts=[str(text) for text in texts])
        return vectors

    def cancel(self) -> None:
        """Raise the flag a sync ability looks at, and cancel an async one."""
        self.cancelled = True
        loop, task = self._loop, self._task
        if loop is not None and task is not None:
            with contextlib.suppress(RuntimeError):  # it has just ended
                loop.call_soon_threadsafe(task.cancel)

    async def awaited(self, running: Any) -> Any:
        """Await an async ability as the task that `cancel` reaches."""
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        return await running


def encoded(ended: Ended) -> dict[str, Any]:
    """Return JSON values that stand for how a run ended."""
    result = ended.result
    try:
        rich = json.loads(json.dumps(result.rich, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        refusal: dict[str, Any] = {
            "status": "error",
            "code": "non-canonical-result",
            "message": _RICH,
            "hint": None,
            "valid": [],
        }
        return {"result": refusal, "detail": described(error)}
    return {
        "result": {
            "status": result.status,
            # The text that will be shown: bytes, sets and cycles cross as what they would be shown as.
            "body": None if result.body is None else body_text(result.body),
            "rich": rich,
            "meta": dict(result.meta),
            "message": result.message,
            "code": result.code,
            "hint": result.hint,
            "valid": list(result.valid),
        },
        "detail": ended.detail,
    }


_RICH = "the ability's rich payload is not made of plain JSON values, as that of an isolated ability must be"


def decoded(values: Mapping[str, Any]) -> Ended:
    """Return how a run ended, from what `encoded` made.

    Raises:
        KeyError, TypeError, ValueError: it is not what `encoded` makes.
    """
    given = values["result"]
    if given["status"] == "success":
        result = ToolResult.ok(given["body"], given["rich"], **given["meta"])
    else:
        result = ToolResult.error(
            given["message"],
            code=given["code"],
            hint=given["hint"],
            valid=tuple(given["valid"]),
            **given.get("meta", {}),
        )
    return Ended(result, values["detail"])


def _imported(target: str) -> type[Ability]:
    module, _, path = target.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    if not (isinstance(found, type) and issubclass(found, Ability)):
        raise TypeError(f"{target} is not an Ability class")
    return found


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:4]))
