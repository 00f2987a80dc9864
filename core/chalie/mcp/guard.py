"""The parent of a server's program, which ends it and whatever it started when the host is gone.

Run as `python -I -S guard.py LIFE -- COMMAND ARGS...`; `LIFE` is the number of a pipe's reading end, of which
the host alone holds the other. That end closes when the host closes it, and when the host ends in any way,
kill -9 included; a host that forked, so that another process holds the end too, is missed as a parent. Then
the program gets `GRACE_S` to end by itself (its standard input is closed by then), its process group a
SIGTERM and `TERM_S`, and what is left a SIGKILL: its group, and on Linux every descendant, those that left
the group included. Should this process itself be killed, the kernel of Linux kills the program.

Nothing passes through here: the program has the host's pipes as its own. It stands by itself, imports nothing
of the host but `catalogue/descendants.py`, and starts in some 20 ms.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

__all__ = ["GONE_S", "GRACE_S", "TERM_S"]

GRACE_S = 1.0
TERM_S = 0.5
#: seconds after which nothing of a server is left: both waits, what `end_children` takes at most, and a look.
GONE_S = 3.0
_LOOK_S = 1.0


def main(words: list[str]) -> int:
    """Start the program, watch it and the host, and return the program's exit status."""
    life, command = int(words[0]), words[2:]
    descendants = _descendants()
    descendants.adopt_orphans()
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    parent, own = os.getppid(), os.getpid()
    child = os.fork()
    if child == 0:
        _become(command, own, descendants)
    quiet = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):  # the program's pipes are its own: their other ends must close when it ends
        os.dup2(quiet, number)
    status = _watched(child, life, woken, parent)
    if status is None:
        status = _ended(child)
    _signal(child, signal.SIGKILL)
    descendants.end_children()
    return status


def _descendants() -> Any:
    path = Path(__file__).parents[1] / "catalogue" / "descendants.py"
    spec = spec_from_file_location("descendants", path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _become(command: list[str], parent: int, descendants: Any) -> None:
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        descendants.end_with_parent()
        if os.getppid() == parent:
            os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    except BaseException:
        pass
    os._exit(127)


def _watched(child: int, life: int, woken: int, parent: int) -> int | None:
    """Wait until the program ends, and return its status; None where the host is gone first."""
    while True:
        status = _status(child)
        if status is not None:
            return status
        ready, _, _ = select.select([life, woken], [], [], _LOOK_S)
        if life in ready or os.getppid() != parent:
            return None
        if woken in ready:
            os.read(woken, 512)


def _ended(child: int) -> int:
    """End the program: wait, ask, kill."""
    for wait, number in ((GRACE_S, signal.SIGTERM), (TERM_S, signal.SIGKILL), (TERM_S, None)):
        deadline = time.monotonic() + wait
        while time.monotonic() < deadline:
            status = _status(child)
            if status is not None:
                return status
            time.sleep(0.01)
        if number is not None:
            _signal(child, number)
    return 137


def _signal(child: int, number: int) -> None:
    try:
        os.killpg(child, number)
    except (ProcessLookupError, PermissionError):
        pass


def _status(child: int) -> int | None:
    try:
        pid, status = os.waitpid(child, os.WNOHANG)
    except ChildProcessError:
        return 0
    if pid == 0:
        return None
    return os.waitstatus_to_exitcode(status) & 0xFF if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
