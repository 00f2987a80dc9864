"""The first import of a policy or plugin, in a process whose loss costs nothing.

One process tries the modules in turn and says before and after each how it went. Where it hangs or
dies, the module it was in is the one to blame, and a new process goes on with the next.
"""

from __future__ import annotations

import hashlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from attrs import asdict

from .. import __version__
from .descriptor import EntryPoint

__all__ = ["Memory", "rehearse"]

#: seconds the process itself may take to begin; generous, since a loaded machine is no module's fault.
_START_LIMIT_S = 30.0
_BOOTSTRAP = (
    "import sys, json; request = json.loads(sys.stdin.readline()); sys.path[:] = request['paths']; "
    "from chalie.catalogue.rehearsal import perform; perform(request)"
)


def rehearse(
    entries: Sequence[EntryPoint], paths: Sequence[str], limit_s: float
) -> dict[EntryPoint, str | None]:
    """Import and check each module apart from the host.

    Args:
        entries: the modules, in the order the host will import them.
        paths: the import path to use.
        limit_s: seconds one module may take.

    Returns:
        for each module None, or one line that says what went wrong.
    """
    outcomes: dict[EntryPoint, str | None] = {}
    rest = list(entries)
    while rest:
        known = len(outcomes)
        for index, reason in _one_process(rest, paths, limit_s):
            outcomes[rest[index]] = reason
        if len(outcomes) == known:  # not even the first was begun: nothing can be said for any
            outcomes.update((entry, "the process that tries plugins could not start") for entry in rest)
        rest = [entry for entry in rest if entry not in outcomes]
    return outcomes


def _one_process(
    entries: Sequence[EntryPoint], paths: Sequence[str], limit_s: float
) -> Iterator[tuple[int, str | None]]:
    """Yield (index, outcome) until every module was tried or one took the process with it."""
    reading, writing = os.pipe()
    request = {
        # Relative entries would mean another folder there, and none is where a package is installed.
        "paths": [path for path in paths if path],
        "entries": [asdict(entry) for entry in entries],
        "report": writing,
    }
    environment = {key: value for key, value in os.environ.items() if key != "CHALIE_APPROVER_TOKEN"}
    with os.fdopen(reading, "rb") as report, tempfile.TemporaryFile() as complaints:
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-c", _BOOTSTRAP],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=complaints,
                env=environment,
                pass_fds=(writing,),
                start_new_session=True,  # no controlling terminal, and one group to end at once
            )
        except OSError:
            return  # no interpreter to start; the caller says so for every module
        finally:
            os.close(writing)
        try:
            _send(process, request)
            yield from _followed(process, report, complaints, limit_s)
        finally:
            _end(process)


def _send(process: subprocess.Popen[bytes], request: Mapping[str, Any]) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.close()
    except BrokenPipeError:
        pass  # it died at once; what it said while dying is reported by the reader


def _followed(
    process: subprocess.Popen[bytes], report: IO[bytes], complaints: IO[bytes], limit_s: float
) -> Iterator[tuple[int, str | None]]:
    trying: int | None = None
    for message in _messages(report, limit_s):
        if message is None:
            if trying is not None:
                yield trying, f"its import took more than {limit_s:g} s"
            return
        if "done" in message:
            yield int(message["done"]), message["reason"]
            trying = None
        elif "start" in message:
            trying = int(message["start"])
        else:
            return
    if trying is not None:
        _end(process)
        yield trying, _death(process.returncode, complaints)


def _messages(report: IO[bytes], limit_s: float) -> Iterator[dict[str, Any] | None]:
    """Yield each line said, None where nothing more was said for `limit_s`; ends where the pipe ends."""
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(report, selectors.EVENT_READ)
        deadline = time.monotonic() + max(limit_s, _START_LIMIT_S)
        while True:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                yield None
                return
            data = os.read(report.fileno(), 65536)
            if not data:
                return
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                yield json.loads(line)
                deadline = time.monotonic() + limit_s


def _death(returncode: int | None, complaints: IO[bytes]) -> str:
    complaints.seek(0, os.SEEK_END)
    complaints.seek(max(0, complaints.tell() - 2000))
    said = complaints.read().decode("utf-8", "replace").strip().splitlines()
    last = f" ({said[-1][:200]})" if said else ""
    if returncode is not None and returncode < 0:
        try:
            name = signal.Signals(-returncode).name
        except ValueError:
            name = f"signal {-returncode}"
        return f"its import crashed the process: {name}{last}"
    return f"its import ended the process with exit status {returncode}{last}"


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and whatever it started; wait shortly first where it is ending by itself."""
    try:
        process.wait(0.5)
    except subprocess.TimeoutExpired:
        pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    process.wait()


def perform(request: Mapping[str, Any]) -> None:
    """Try the modules of a request, in the separate process; never returns."""
    from .admission import attempt

    report = int(request["report"])
    os.set_inheritable(report, False)  # what a module starts must not keep the pipe open

    def say(**message: Any) -> None:
        os.write(report, json.dumps(message).encode() + b"\n")

    for index, fields in enumerate(request["entries"]):
        say(start=index)
        try:
            reason, _ = attempt(EntryPoint(**fields))
        except KeyboardInterrupt:
            reason = "its import raised KeyboardInterrupt"
        say(done=index, reason=reason)
    os._exit(0)  # threads and exit handlers of the modules are not waited for


class Memory:
    """Which modules passed, bound to their files, this host and this interpreter.

    Args:
        file: where it is kept; None remembers nothing.
        files_hashes: distribution -> hash over its files. One without a hash is never remembered.
    """

    def __init__(self, file: Path | None, files_hashes: Mapping[str, str]) -> None:
        self._file = file
        self._files_hashes = files_hashes
        self._passed = frozenset(self._read())

    def __contains__(self, entry: EntryPoint) -> bool:
        key = self._key(entry)
        return key is not None and key in self._passed

    def keep(self, passed: Iterable[EntryPoint]) -> None:
        """Remember exactly these. Failing to is no error: they are only tried again next time."""
        keys = sorted(key for key in map(self._key, passed) if key is not None)
        if self._file is None or frozenset(keys) == self._passed:
            return
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            aside = self._file.with_name(f"{self._file.name}.{os.getpid()}")
            aside.write_text(json.dumps({"passed": keys}), encoding="utf-8")
            aside.replace(self._file)
        except OSError:
            pass

    def _read(self) -> list[str]:
        if self._file is None:
            return []
        try:
            kept = json.loads(self._file.read_text(encoding="utf-8"))
            return [key for key in kept["passed"] if isinstance(key, str)]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return []

    def _key(self, entry: EntryPoint) -> str | None:
        files_hash = self._files_hashes.get(entry.dist)
        if self._file is None or not files_hash:
            return None
        parts = [
            files_hash,
            *asdict(entry).values(),
            __version__,
            sys.implementation.cache_tag,
            sys.executable,
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
