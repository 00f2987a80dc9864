"""The process that imports packages to read their abilities' facts: `python -m chalie.catalogue.reading`.

It imports the host's part once and forks for each distribution, so that whatever a package does at import
(raise, exit, crash, hang, print without end) costs that package alone. Frames are a length (4 bytes, big
endian) and JSON; one with the whole task comes in on standard input, one per distribution goes out on what
was standard output when it started.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import selectors
import signal
import struct
import sys
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import IO, Any, Final

from .descendants import adopt_orphans, end_children, end_with_parent

__all__ = ["OUTPUT_LIMIT", "read_frame", "write_frame"]

#: bytes that the facts of one distribution may take
OUTPUT_LIMIT: Final = 16 * 1024 * 1024
_HEAD: Final = struct.Struct(">I")
#: distributions read at a time, so that one that hangs does not hold up the rest
_AT_ONCE: Final = 3
_LOOK_S: Final = 0.05
_REASON_LIMIT: Final = 300


def write_frame(file: IO[bytes], value: Any) -> None:
    """Write one frame."""
    data = json.dumps(value).encode()
    file.write(_HEAD.pack(len(data)) + data)
    file.flush()


def read_frame(file: IO[bytes]) -> Any:
    """Read one frame; raises `EOFError` where the other side has closed."""
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        raise EOFError
    (length,) = _HEAD.unpack(head)
    data = file.read(length)
    if len(data) < length:
        raise EOFError
    return json.loads(data)


class _Child:
    """A forked process that reads one distribution."""

    def __init__(self, task: Mapping[str, Any], limit_s: float) -> None:
        self.dist: str = task["dist"]
        self.answer: dict[str, Any] | None = None
        self._data = bytearray()
        self._at: dict[str, Any] = {"phase": "import", "entry_point": ""}
        self._limit_s = limit_s
        self._deadline = time.monotonic() + limit_s
        self.pipe, end = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.pipe)
            _become_reader(task, end)
        os.close(end)

    def receive(self) -> None:
        """Take what has arrived; sets `answer` when the distribution is done."""
        data = os.read(self.pipe, 1 << 18)
        if not data:
            self._ended()
            return
        self._data += data
        if len(self._data) > OUTPUT_LIMIT:
            self._fail(f"gave out more than {OUTPUT_LIMIT >> 20} MiB")
        while self.answer is None and len(self._data) >= _HEAD.size:
            (length,) = _HEAD.unpack(self._data[: _HEAD.size])
            if len(self._data) < _HEAD.size + length:
                return
            self._frame(bytes(self._data[_HEAD.size : _HEAD.size + length]))
            del self._data[: _HEAD.size + length]

    def _frame(self, data: bytes) -> None:
        try:
            frame = json.loads(data)
            at, answer = frame.get("at"), frame.get("answer")
            known = all(part is None or isinstance(part, dict) for part in (at, answer))
            if not known or (at is not None and not {"phase", "entry_point"} <= at.keys()):
                raise ValueError
        except (ValueError, AttributeError, RecursionError):
            self._fail("wrote into the pipe its facts are sent by")
            return
        self._at = at or self._at
        self.answer = answer

    def look(self) -> None:
        """End it where its time is up, and notice an end that left the pipe open in a grandchild."""
        if time.monotonic() > self._deadline:
            doing = "the import" if self._at["phase"] == "import" else "reading its facts"
            self._fail(f"{doing} did not finish within {self._limit_s:g} s")
        elif os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            os.set_blocking(self.pipe, False)
            with contextlib.suppress(BlockingIOError):
                while self.answer is None:
                    self.receive()
            if self.answer is None:
                self._ended()

    def _ended(self) -> None:
        status = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        doing = "while it was imported" if self._at["phase"] == "import" else "while its facts were read"
        if status is not None and status.si_code == os.CLD_EXITED:
            self._fail(f"ended the process with exit status {status.si_status} {doing}")
        else:
            number = status.si_status if status is not None else 0
            known = {member.value: member.name for member in signal.Signals}
            self._fail(f"crashed the process ({known.get(number, number)}) {doing}")

    def _fail(self, reason: str) -> None:
        self.answer = {"failed": {**self._at, "reason": reason}}

    def finish(self) -> None:
        """End the process and all it started."""
        os.close(self.pipe)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def _become_reader(task: Mapping[str, Any], end: int) -> None:
    """Read one distribution in the forked process, and end it without any clean-up of the package's."""
    try:
        os.setsid()
        adopt_orphans()
        end_with_parent()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        # What its parent reads and writes, and the other forks' pipes, are none of a package's business.
        os.closerange(3, end)
        os.closerange(end + 1, os.sysconf("SC_OPEN_MAX"))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        file = os.fdopen(end, "wb")
        answer = _read(task, file)
        write_frame(file, {"answer": answer})
    finally:
        os._exit(0)


def _read(task: Mapping[str, Any], file: IO[bytes]) -> dict[str, Any]:
    facts: list[dict[str, Any]] = []
    seen: set[int] = set()
    seconds = 0.0
    reading: type | None = None
    at = {"phase": "import", "entry_point": ""}
    try:
        sys.path.extend(folder for folder in task["folders"] if folder not in sys.path)
        for name, value in task["entries"]:
            at = {"phase": "import", "entry_point": f"chalie.abilities: {name} = {value}"}
            write_frame(file, {"at": at})
            started = time.monotonic()
            targets = _targets(value)
            seconds = max(seconds, time.monotonic() - started)
            at = {**at, "phase": "describe"}
            write_frame(file, {"at": at})
            for target, ability in targets:
                if id(ability) not in seen:
                    seen.add(id(ability))
                    reading = ability
                    facts.append(_facts(task, target, ability))
        _check_names(facts)
    except BaseException as error:
        phase = "check" if _is_refusal(error) else at["phase"]
        told = {"reason": _one_line(error), "missing": _missing(error), "hint": _hint(error)}
        where = _place(error, task, reading)
        return {"failed": {**at, "phase": phase, **told, "where": where}}
    return {"facts": facts, "seconds": seconds}


def _place(error: BaseException, task: Mapping[str, Any], reading: type | None) -> str:
    from .installed import module_of
    from .mistakes import place

    try:
        return place(error, [module_of(value) for _, value in task["entries"]], reading)
    except Exception:  # whatever a package made of its module and its class
        return ""


def _targets(value: str) -> list[tuple[str, Any]]:
    from ..errors import DescribeFailed
    from .loading import ability_classes
    from .mistakes import no_ability

    try:
        return ability_classes(value)
    except DescribeFailed as error:
        raise no_ability(value) or error from None


def _facts(task: Mapping[str, Any], target: str, ability: Any) -> dict[str, Any]:
    from ..ability import facts
    from ..errors import NameRefused, SchemaRefused
    from .mistakes import check_methods

    check_methods(ability)
    try:
        found = facts(ability(), dist=task["dist"], dist_version=task["version"], target=target)
    except NameRefused as error:
        raise NameRefused(f"name() of {target}: {error.message}", hint=error.hint) from error
    except SchemaRefused as error:
        said = f"parameters() of {ability().name()} ({target}): {error.message}"
        raise SchemaRefused(said, hint=error.hint) from error
    return json.loads(json.dumps(found, default=list))  # type: ignore[no-any-return]


def _check_names(facts: Sequence[Mapping[str, Any]]) -> None:
    from ..errors import DescribeFailed

    owners: dict[str, str] = {}
    for one in facts:
        other = owners.setdefault(one["name"], one["target"])
        if other != one["target"]:
            raise DescribeFailed(
                f"two of its abilities are called {one['name']}: {other} and {one['target']}"
            )


def _is_refusal(error: BaseException) -> bool:
    from ..errors import ChalieError

    return isinstance(error, ChalieError)


def _missing(error: BaseException) -> str:
    """Return the module that an import did not find, for the line that fixes it."""
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    return name if isinstance(name, str) else ""


def _hint(error: BaseException) -> str:
    """Return the edit that an author of the host's own refusals is told."""
    from ..errors import ChalieError

    return _printable(error.hint or "") if isinstance(error, ChalieError) else ""


def _one_line(error: BaseException) -> str:
    try:
        text = " ".join(str(error).split())
    except BaseException:
        text = "(its message cannot be read)"
    if not _is_refusal(error):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return _printable(text)


def _printable(text: str) -> str:
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return text[:_REASON_LIMIT]


def _answers(
    tasks: Sequence[Mapping[str, Any]], limit_s: float
) -> Generator[tuple[str, dict[str, Any]], None, None]:
    """Yield (distribution, answer) as they come, a few at a time."""
    waiting = list(reversed(tasks))
    running: dict[int, _Child] = {}
    with selectors.DefaultSelector() as selector, _ended_after(running):
        while waiting or running:
            while waiting and len(running) < _AT_ONCE:
                child = _Child(waiting.pop(), limit_s)
                running[child.pipe] = child
                selector.register(child.pipe, selectors.EVENT_READ)
            for key, _ in selector.select(_LOOK_S):
                running[key.fd].receive()
            for fd, child in list(running.items()):
                if child.answer is None:
                    child.look()
                if child.answer is not None:
                    selector.unregister(fd)
                    del running[fd]
                    child.finish()
                    # Who left its group and lost its parent has become a child of this process by now. The
                    # orphans of those that are still read are theirs.
                    end_children({other.pid for other in running.values()})
                    yield child.dist, child.answer


@contextlib.contextmanager
def _ended_after(running: Mapping[int, _Child]) -> Iterator[None]:
    try:
        yield
    finally:
        for child in running.values():
            child.finish()
        end_children()


def _prepare() -> None:
    """Import once, here, what every fork needs: by reading an ability, whatever that takes is there."""
    import gc

    from ..ability import Ability, facts
    from . import loading  # noqa: F401

    def text(self: Ability) -> str:
        return "rehearsal"

    answers = {"name": text, "summary": text, "search_tooltip": text, "run": text}
    answers["examples"] = lambda self: ["rehearse"] * 6  # type: ignore[assignment, return-value]
    answers["parameters"] = lambda self: {"type": "object", "properties": {}}  # type: ignore[assignment, return-value]
    facts(type("Rehearsal", (Ability,), answers)(), dist="chalie", dist_version="0", target="")
    gc.freeze()  # so that a fork does not copy every page to count what it never uses


def main() -> None:
    """Read the task from standard input, answer on standard output."""
    _prepare()
    out = os.fdopen(os.dup(1), "wb")
    task = read_frame(sys.stdin.buffer)
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    os.environ.pop("PYTHONPATH", None)
    adopt_orphans()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # ends what it has started before it ends itself
    with contextlib.closing(_answers(task["tasks"], task["limit_s"])) as answers:
        for dist, answer in answers:
            write_frame(out, {**answer, "dist": dist})


if __name__ == "__main__":
    main()
