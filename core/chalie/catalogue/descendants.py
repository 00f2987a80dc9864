"""Ending what an import started, as far as the operating system can tell.

A process group ends by one signal, but a process can leave its group (`setsid`) and outlive its parent. Linux
gives such an orphan to the nearest ancestor that asked for them (prctl(2), PR_SET_CHILD_SUBREAPER), which can
then end it. Elsewhere one that has left both stays, as any program's would.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

__all__ = ["adopt_orphans", "end_children", "end_with_parent"]

#: numbers of <linux/prctl.h>
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
#: seconds after which a process that does not end at once is left to itself
_PATIENCE_S: Final = 1.0


@functools.cache
def _prctl() -> Callable[[int, int], None] | None:
    """Return prctl(2) where there is one; made once, since a forked process should not have to load it."""
    if sys.platform != "linux":
        return None
    try:
        import ctypes

        function = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return None
    long = ctypes.c_ulong

    def call(option: int, value: int) -> None:
        function(ctypes.c_int(option), long(value), long(0), long(0), long(0))

    return call


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends; each process asks for itself."""
    prctl = _prctl()
    if prctl is not None:
        prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent() -> None:
    """Have this process killed when the one that forked it ends."""
    prctl = _prctl()
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def end_children(but: Collection[int] = ()) -> None:
    """Kill every child of this process, and whoever becomes one by that, until there are none.

    Args:
        but: ids of children that go on.
    """
    beyond = set(but)
    deadline = time.monotonic() + _PATIENCE_S
    while (found := _children() - beyond) and time.monotonic() < deadline:
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            except PermissionError:  # it has become another user's
                beyond.add(pid)
        for pid in found - beyond:
            _reap(pid, deadline)


def _reap(pid: int, deadline: float) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(pid, os.WNOHANG)[0] == 0 and time.monotonic() < deadline:
            time.sleep(0.001)


def _children() -> set[int]:
    """Return the ids of this process's children, ended ones included; none where the system does not tell."""
    try:
        tasks = [Path(task.path, "children") for task in os.scandir("/proc/self/task")]
        return {int(pid) for task in tasks for pid in task.read_text("ascii").split()}
    except FileNotFoundError:
        return _children_by_stat()
    except OSError:
        return set()


def _children_by_stat() -> set[int]:
    """Find them among all processes: not every kernel keeps a list of children (CONFIG_PROC_CHILDREN)."""
    own, found = str(os.getpid()), set()
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):  # noqa: PTH208
            if name.isdecimal():
                with contextlib.suppress(OSError, IndexError):
                    # The command stands in brackets and may hold anything; state and parent follow it.
                    stat = Path("/proc", name, "stat").read_text("utf-8", "replace")
                    if stat.rpartition(")")[2].split()[1] == own:
                        found.add(int(name))
    return found
