"""Policies: what the enabled packages say of a call, under one deadline, with every failure closing."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

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
_PLAIN: Final = frozenset({str, int, float, bool, type(None)})


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
        self._reviewers = tuple(hooks.deciding("review_call")) if hooks else ()
        self._limiters = tuple(hooks.deciding("limit_call")) if hooks else ()
        deciding = {author for author, _ in (*self._reviewers, *self._limiters)}
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

    def opinions(self, call: Call) -> tuple[Verdict, ...]:
        """Return what the policies think of a call, failures among the limits left out."""
    @property
    def any(self) -> bool:
        """Whether anybody is asked about a call, or has to be and cannot."""
        return bool(self._reviewers or self._limiters or self.missing)

        return self.ask(call).opinions

    def limits(self, call: Call) -> tuple[Verdict, ...]:
        """Return how the policies narrow a call; a failure is a deny."""
        return self.ask(call, reviewed=False).limits

    def ask(self, call: Call, *, reviewed: bool = True) -> Said:
        """Ask every policy about a call; with none enabled nothing is handed to another thread.

        Args:
            call: the policies get a copy of its arguments, so that none can change what will run.
            reviewed: also ask for opinions, which have no effect where a row or the internal table decides.
        """
        if self.missing and self.closed is not None:
            return Said(limits=(self.closed,))
        reviewers = self._reviewers if reviewed else ()
        if not (reviewers or self._limiters):
            return _SILENCE
        if call.arguments is not None:
            call = _with_own_arguments(call)
        asking = _Asking(call, reviewers, self._limiters)
        if self._thread.run(asking, self._deadline_s):
            return self._said(asking)
        return Said(limits=(asking.overrun(self._deadline_s),))

    def _said(self, asking: _Asking) -> Said:
        opinions: list[Verdict] = []
        limits: list[Verdict] = []
        if not asking.answers:
            return _SILENCE
        for hook, author, value in asking.answers:
            if hook == "review_call" and type(value) is Opinion and value.setting in ("allow", "ask"):
                counted = value.setting == "ask" or self._trusted(author)
                reason = _reason(value.reason)
                if not counted:
                    reason += f" (does not count: {author} is not trusted; chalie trust {author})"
                opinions.append(_verdict(author, "opinion", value.setting, reason, hook, counted))
            elif hook == "limit_call" and type(value) is Limit and value.kind in ("deny", "must_ask"):
                limits.append(_verdict(author, "limit", value.kind, _reason(value.reason), hook))
            else:
                limits.append(_failure(author, hook, _wrong(value)))
        return Said(tuple(opinions), tuple(limits))


#: a policy says the same of most calls
_verdict: Final = functools.lru_cache(maxsize=1024)(Verdict)


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
    """One call's round of policies, run on the gate's thread and watched from the caller's."""

    __slots__ = ("_call", "_given_up", "_hook", "_last", "_rounds", "answers")

    def __init__(self, call: Call, reviewers: tuple[Decider, ...], limiters: tuple[Decider, ...]) -> None:
        self._call = call
        self._rounds = (("limit_call", limiters), ("review_call", reviewers))
        self._given_up = False
        self._hook = self._last = ""
        self.answers: list[tuple[str, str, object]] = []

    def __call__(self) -> None:
        call = self._call
        for hook, deciders in self._rounds:
            self._hook = hook
            for author, decide in deciders:
                self._last = author
                try:
                    value = decide(call)
                except BaseException as error:  # a policy that exits is one that fails
                    value = error
                if self._given_up:
                    return  # the call is denied already; the policies left are not run for nothing
                if value is not None:
                    self.answers.append((hook, author, value))

    def overrun(self, deadline_s: float) -> Verdict:
        """Give up on this round and return the verdict that says who kept it."""
        self._given_up = True
        if not self._last:
            return Verdict(
                "host",
                "failure",
                "deny",
                "policies hang and none is asked any more until the host is restarted",
            )
        return _failure(self._last, self._hook, f"did not answer within {deadline_s * 1000:g} ms")


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
            if worker is None or not worker.is_usable():
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
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._serve, name="chalie-gate", daemon=True)
        self._thread.start()

    def is_usable(self) -> bool:
        """Tell whether the thread is there: a forked child has the object and not the thread."""
        return self._pid == os.getpid()

    def is_busy(self) -> bool:
        """Tell whether a task still runs."""
        return self._busy and self._thread.is_alive()

    def do(self, task: Callable[[], None], deadline_s: float) -> bool:
        """Run a task; return False where it is not done within the deadline."""
        self._task = task
        self._busy = True
        os.write(self._writer, b".")
        return self._done.acquire(timeout=deadline_s)

    def retire(self) -> None:
        """Let the thread end, at once or when its task does."""
        self._retired = True
        if not self._busy:
            with contextlib.suppress(OSError):  # it has ended already
                os.write(self._writer, b".")

    def _serve(self) -> None:
        try:
            while True:
                os.read(self._reader, 1)
                task, self._task = self._task, None
                if task is not None:
                    task()
                    task = None  # kept until the next one it would hold the call's arguments
                self._busy = False
                if self._retired:
                    return
                self._done.release()
        finally:
            os.close(self._reader)
            os.close(self._writer)


def _with_own_arguments(call: Call) -> Call:
    """Return a call whose arguments are copies, so that no policy changes what is stored and run."""
    return Call(
        call.dist,
        call.name,
        call.permission,
        call.effect,
        _copied(call.arguments),
        call.channel,
        call.principal,
        call.conversation,
        call.descriptor_hash,
        call.requires_approval,
        call.must_ask,
        call.files_hash,
        call.destination,
        call.trusted,
        call.asked_because,
    )


def _copied(value: Any) -> Any:
    """Return a copy of JSON values, in which only objects and lists can be changed."""
    if isinstance(value, Mapping):
        return {key: item if type(item) in _PLAIN else _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [item if type(item) in _PLAIN else _copied(item) for item in value]
    return value


def _failure(author: str, hook: str, what: str) -> Verdict:
    return Verdict(
        author=author,
        kind="failure",
        value="deny",
        reason=f"the policy {author} {what}, which counts as deny",
        source=hook,
    )


def _wrong(value: object) -> str:
    if isinstance(value, BaseException):
        try:
            text = " ".join(str(value).split())
        except Exception:
            text = ""
        return f"raised {type(value).__name__}{': ' + text[:_REASON] if text else ''}"
    return f"returned a {type(value).__name__}"


def _reason(reason: object) -> str:
    text = " ".join(str(reason).split()) if isinstance(reason, str) else ""
    return text if len(text) <= _REASON else f"{text[: _REASON - 1]}…"
