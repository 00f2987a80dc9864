"""The process that imports a package to see what that costs and does: `python -m chalie.testing.importing`.

A task in JSON comes in on standard input, its answer goes out on what was standard output. Watched are the
events that Python itself raises (sys.audit): what C code does behind its back is not seen.
"""

from __future__ import annotations

import errno
import importlib
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

__all__ = ["main"]

_NETWORK: Final = frozenset(
    {
        "socket.bind",
        "socket.connect",
        "socket.getaddrinfo",
        "socket.gethostbyaddr",
        "socket.gethostbyname",
        "socket.sendmsg",
        "socket.sendto",
    }
)
_FILES: Final = frozenset(
    {
        "os.chmod",
        "os.chown",
        "os.link",
        "os.mkdir",
        "os.remove",
        "os.rename",
        "os.rmdir",
        "os.symlink",
        "os.truncate",
        "os.utime",
        "sqlite3.connect",
    }
)
_PROCESSES: Final = frozenset({"os.exec", "os.fork", "os.posix_spawn", "os.system", "subprocess.Popen"})
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
_MOST: Final = 20


class _Watch:
    """Notes what happens while it is on, and lets nothing out to the network."""

    def __init__(self, roots: Sequence[str]) -> None:
        self.on = False
        self.seen: list[dict[str, str]] = []
        self._roots = tuple(roots)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on:
            return
        kind = _kind(event, arguments)
        if kind is None:
            return
        self.on = False  # what follows is this hook's own doing
        try:
            if len(self.seen) < _MOST:
                self.seen.append({"kind": kind, "what": _said(event, arguments), "where": self._where()})
        finally:
            self.on = True
        if kind == "network":
            raise OSError(errno.ENETUNREACH, "the network is off while the contract is checked")

    def _where(self) -> str:
        """Return `file:line` of the innermost code of the package, or an empty text."""
        for name, line in _frames():
            if name.startswith(self._roots):
                return f"{name}:{line}"
        return ""


def _frames() -> Iterator[tuple[str, int]]:
    frame = sys._getframe(3)
    while frame is not None:
        yield frame.f_code.co_filename, frame.f_lineno
        if frame.f_back is None:
            return
        frame = frame.f_back


def _kind(event: str, arguments: tuple[Any, ...]) -> str | None:
    if event in _NETWORK:
        return "network"
    if event in _FILES:
        return "files"
    if event in _PROCESSES:
        return "processes"
    if event == "open" and len(arguments) == 3:
        path, mode, flags = arguments
        writes = (isinstance(mode, str) and any(letter in mode for letter in "wax+")) or (
            isinstance(flags, int) and flags & _WRITING
        )
        return "files" if writes and not isinstance(path, int) and path != os.devnull else None
    return None


def _said(event: str, arguments: tuple[Any, ...]) -> str:
    shown = arguments[:1] if event == "open" else arguments
    text = ", ".join(ascii(value)[:80] for value in shown if not hasattr(value, "fileno"))
    return f"{event}({text[:200]})"


def main() -> None:
    """Import the modules of one package, watched or timed."""
    task = json.loads(sys.stdin.buffer.read())
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.path[:] = task["paths"]
    # What the host has imported by the time it imports a package is not the package's cost.
    from .. import ability, calls, errors, hookspecs, host, result, turn  # noqa: F401
    from ..gate import approvers  # noqa: F401

    watch = _Watch(task["roots"])
    if task["watched"]:
        sys.addaudithook(watch)
    failed = ""
    begun = time.process_time()
    try:
        watch.on = True
        for module in task["modules"]:
            importlib.import_module(module)
    except BaseException as error:  # a package may exit at import, which is for the caller to tell
        failed = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    finally:
        watch.on = False
    spent = time.process_time() - begun
    out.write(json.dumps({"seconds": spent, "seen": watch.seen, "failed": failed}).encode())
    out.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
