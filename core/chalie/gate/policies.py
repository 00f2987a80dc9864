"""Policies: what the enabled packages say of a call, under one deadline, with every failure closing."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, Protocol

from attrs import frozen

from ..calls import Call, Limit, Opinion, Verdict

if TYPE_CHECKING:
    from ..catalogue.plugins import Plugins
    from ..ledger import Ledger

__all__ = ["Hooks", "Policies", "Said", "note_policies"]

#: how many gate threads may hang in a policy before no further one is started.
_MOST_STUCK: Final = 4
#: longest reason of a policy that is kept, in characters.
_REASON: Final = 500


Decider = tuple[str, Callable[[Call], object]]
_Decider = tuple[str, str, Callable[[Call], object], str]  # the same with its hook, and where it is written


class Hooks(Protocol):
    """What the gate needs of the loaded plugins."""

    @property
    def loaded(self) -> frozenset[str]:
        """The distributions all of whose enabled modules are in."""
        ...

    def authors(self, hook: str) -> tuple[str, ...]:
        """Return the distributions that implement a hook, in the order they are called."""
        ...

    def deciding(self, hook: str) -> Sequence[Decider]:
        """Return the implementations of a hook, each with its distribution, in the order they are called."""
        ...


@frozen
class Said:
    """What the policies said of one call, as verdicts stamped with their authors."""

    opinions: tuple[Verdict, ...] = ()
    limits: tuple[Verdict, ...] = ()


_SILENCE: Final = Said()
#: in place of a policy's word: it failed, or answered something else.
_FLAW: Final = "failure"


def _nobody_is(_: str) -> bool:
    return False


class Policies:
    """The enabled policies.

    Args:
        hooks: the loaded policies, or None for none.
        required: distributions without which nothing may run.
        deadline_ms: milliseconds for all policies of a call together.
        trusted: whether a distribution's `allow` counts, by its name; asked whenever one says allow.
    """

    def __init__(
        self,
        hooks: Hooks | None = None,
        *,
        required: Sequence[str] = (),
        deadline_ms: int = 1000,
        trusted: Callable[[str], bool] = _nobody_is,
    ) -> None:
        self._trusted = trusted
        self._deadline_s = deadline_ms / 1000
        self._limited = _deciding(hooks, "limit_call")
        self._reviewed = (*self._limited, *_deciding(hooks, "review_call"))
        deciding = {author for author, _, _, _ in self._reviewed}
        present = deciding & hooks.loaded if hooks else set()
        self.missing: tuple[str, ...] = tuple(dist for dist in required if dist not in present)
        self._thread = _GateThread()

    @property
    def closed(self) -> Verdict | None:
        """Why the gate is closed to every call, or None: a required policy is missing or broken."""
        if not self.missing:
            return None
        names = ", ".join(self.missing)
        return Verdict(
            author="host",
            kind="failure",
            value="deny",
            reason=f"the gate is closed: the required policy {names} is not loaded (see: chalie doctor)",
            source="config.toml: [gate] required",
        )

    @property
    def any(self) -> bool:
        """Whether anybody is asked about a call, or has to be and cannot."""
        return bool(self._reviewed or self.missing)

    def opinions(self, call: Call) -> tuple[Verdict, ...]:
        """Return what the policies think of a call, failures among the limits left out."""
        return self.ask(call).opinions

    def limits(self, call: Call) -> tuple[Verdict, ...]:
        """Return how the policies narrow a call; a failure is a deny."""
        return self.ask(call, reviewed=False).limits

    def ask(self, call: Call, *, reviewed: bool = True) -> Said:
        """Ask every policy about a call; with none enabled nothing is handed to another thread.

        Args:
            call: what it is asked about.
            reviewed: also ask for opinions, which have no effect where a row or the internal table decides.
        """
        if self.missing and self.closed is not None:
            return Said(limits=(self.closed,))
        if not (self._reviewed if reviewed else self._limited):
            return _SILENCE
        asking = _Asking(call, self._reviewed if reviewed else self._limited)
        if self._thread.run(asking, self._deadline_s):
            return self._said(asking)
        return Said(limits=(asking.overrun(self._deadline_s),))

    def _said(self, asking: _Asking) -> Said:
        if not asking.answers:
            return _SILENCE
        opinions: list[Verdict] = []
        limits: list[Verdict] = []
        for (author, hook, _, source), word, reason in asking.answers:
            if word == _FLAW:
                limits.append(_failure(author, source, reason))
            elif hook == "limit_call":
                limits.append(_limit(author, source, word, reason))
            else:
                counted = word == "ask" or self._trusted(author)
                opinions.append(_opinion(author, source, word, reason, counted))
        return Said(tuple(opinions), tuple(limits))


# a policy says the same of most calls, so what was made of it is kept
@functools.lru_cache(maxsize=1024)
def _opinion(author: str, source: str, setting: str, reason: str, counted: bool) -> Verdict:
    text = _short(reason)
    if not counted:
        text += f" (does not count: {author} is not trusted; chalie trust {author})"
    return Verdict(author, "opinion", setting, text, source, counted)


@functools.lru_cache(maxsize=1024)
def _limit(author: str, source: str, kind: str, reason: str) -> Verdict:
    return Verdict(author, "limit", kind, _short(reason), source)


def note_policies(ledger: Ledger, environment: str, hooks: Plugins, required: Sequence[str]) -> None:
    """Record the policies that govern from now on, where they are others than the last time.

    Args:
        ledger: where that is remembered, per Python environment.
        environment: its key.
        hooks: the loaded policies.
        required: distributions without which nothing may run.
    """
    deciding = sorted({*hooks.authors("review_call"), *hooks.authors("limit_call")})
    facts = {
        "environment": environment,
        "policies": {dist: hooks.files_hashes.get(dist, "") for dist in deciding},
        "required": sorted(required),
    }
    text = json.dumps(facts)
    if deciding or required or ledger.note(f"policies:{environment}") is not None:
        ledger.noted(f"policies:{environment}", text, "policy.changed", text)


class _Asking:
    """One call's round of policies, run on the gate's thread and watched from the caller's.

    Whatever is a policy's own, an answer's methods and an exception's text among it, is touched on that
    thread only: the caller takes plain strings.

    Attributes:
        answers: (who, word, reason) of each policy that said something; the word is that of an `Opinion` or
            a `Limit`, or `_FLAW`.
    """

    __slots__ = ("_call", "_left", "_now", "answers")

    def __init__(self, call: Call, deciders: tuple[_Decider, ...]) -> None:
        self._call = call
        self._left = [*deciders]
        self._now: _Decider | None = None
        self.answers: list[tuple[_Decider, str, str]] = []

    def __call__(self) -> None:
        call = self._call
        for now in self._left:
            self._now = now
            try:
                value = now[2](call)
                if value is not None:
                    self.answers.append((now, *_read(now[1], value)))
            except BaseException as error:  # a policy that exits is one that fails
                self.answers.append((now, _FLAW, _raised(error)))

    def overrun(self, deadline_s: float) -> Verdict:
        """Give up on this round and return the verdict that says who kept it."""
        self._left.clear()  # the call is denied already; the policies left are not run for nothing
        if self._now is None:
            return Verdict(
                "host",
                "failure",
                "deny",
                "policies hang and none is asked any more until the host is restarted",
            )
        author, _, _, source = self._now
        return _failure(author, source, f"did not answer within {deadline_s * 1000:g} ms")


class _GateThread:
    """The one thread that policies run on, replaced when a policy keeps it past the deadline."""

    def __init__(self) -> None:
        self._turn = threading.Lock()  # calls take their turns, so that one round runs at a time
        self._worker: _Worker | None = None
        self._stuck: list[_Worker] = []

    def run(self, task: Callable[[], None], deadline_s: float) -> bool:
        """Run a task on the thread; return False where it is not done within the deadline."""
        with self._turn:
            worker = self._worker
            if worker is None or worker.pid != os.getpid():
                self._stuck = [stuck for stuck in self._stuck if stuck.is_busy()]
                if len(self._stuck) >= _MOST_STUCK:
                    return False  # closed, and no more threads for policies that hang
                worker = self._worker = _Worker()
                weakref.finalize(self, worker.retire).atexit = False
            if worker.do(task, deadline_s):
                return True
            self._stuck.append(worker)
            worker.retire()
            self._worker = None
            return False


class _Worker:
    """A daemon thread with a place for one task.

    A byte in a pipe wakes it and a lock wakes the caller: of all ways to hand a task to a thread and back the
    quickest, since writing to a pipe lets the other thread have the interpreter at that very moment.
    """

    def __init__(self) -> None:
        self._task: Callable[[], None] | None = None
        self._reader, self._writer = os.pipe()
        self._done = threading.Lock()
        self._done.acquire()
        self._retired = False
        self._busy = False
        self.pid = os.getpid()  # a forked child has the object and not the thread
        self._thread = threading.Thread(target=self._serve, name="chalie-gate", daemon=True)
        self._thread.start()

    def is_busy(self) -> bool:
        """Tell whether a task still runs."""
        return self._busy and self._thread.is_alive()

    def do(self, task: Callable[[], None], deadline_s: float) -> bool:
        """Run a task; return False where it is not done within the deadline."""
        self._task = task
        self._busy = True
        os.write(self._writer, b".")
        return self._done.acquire(True, deadline_s)

    def retire(self) -> None:
        """Let the thread end, at once or when its task does."""
        self._retired = True
        if not self._busy:
            with contextlib.suppress(OSError):  # it has ended already
                os.write(self._writer, b".")

    def _serve(self) -> None:
        read, reader, done = os.read, self._reader, self._done.release
        try:
            while True:
                read(reader, 1)
                task, self._task = self._task, None
                if task is not None:
                    task()
                    task = None  # kept until the next one it would hold the call's arguments
                self._busy = False
                if self._retired:
                    return
                done()
        finally:
            os.close(self._reader)
            os.close(self._writer)


def _deciding(hooks: Hooks | None, hook: str) -> tuple[_Decider, ...]:
    if hooks is None:
        return ()
    return tuple((author, hook, decide, _source(hook, decide)) for author, decide in hooks.deciding(hook))


def _source(hook: str, decide: Callable[[Call], object]) -> str:
    """Return the hook and the file of an implementation, from where its package is imported."""
    code, module = getattr(decide, "__code__", None), getattr(decide, "__module__", None)
    if code is None or not isinstance(module, str):
        return hook
    path = PurePath(code.co_filename)
    names = len(module.split(".")) + (path.stem == "__init__")
    return f"{hook} in {'/'.join(path.parts[-names:])}"


def _read(hook: str, value: object) -> tuple[str, str]:
    """Return the word and the reason of a policy's answer, as plain strings."""
    if hook == "review_call" and type(value) is Opinion:
        word, reason = _plain(value.setting), _plain(value.reason)
        if word in ("allow", "ask"):
            return word, reason
    elif hook == "limit_call" and type(value) is Limit:
        word, reason = _plain(value.kind), _plain(value.reason)
        if word in ("deny", "must_ask"):
            return word, reason
    return _FLAW, f"returned a {_plain(type(value).__name__)}"


def _failure(author: str, source: str, what: str) -> Verdict:
    return Verdict(
        author=author,
        kind="failure",
        value="deny",
        reason=f"the policy {author} {what}, which counts as deny",
        source=source,
    )


def _raised(error: BaseException) -> str:
    try:
        text = _short(_plain(str(error)))
        return f"raised {_plain(type(error).__name__)}{': ' + text if text else ''}"
    except BaseException:  # its text fails as well
        return "raised what cannot be shown"


def _plain(text: object) -> str:
    """Return text as a `str` and nothing of a policy's own; empty for anything else."""
    if type(text) is str:
        return text
    return str.__str__(text) if issubclass(type(text), str) else ""


def _short(reason: str) -> str:
    text = " ".join(reason.split())
    return text if len(text) <= _REASON else f"{text[: _REASON - 1]}…"
