"""Running a command: a plain environment, no terminal, no way to outlive its call, and bounded output."""

from __future__ import annotations

import contextlib
import os
import pwd
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Final

from attrs import frozen

__all__ = ["PATH", "Ran", "environment", "run"]

#: where commands are taken from: the system's own folders first, so that nothing takes their place.
PATH: Final = "/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin:/usr/local/sbin:/opt/homebrew/bin"
_BASH: Final = "/bin/bash"
#: of output over the bound the beginning and the end are kept, in this proportion.
_HEAD: Final = 0.6
_POLL_S: Final = 0.05
#: seconds in which what is still in the pipe is read after the group was ended.
_DRAIN_S: Final = 1.0


@frozen
class Ran:
    """How a command ended.

    Attributes:
        output: what it wrote to standard output and standard error, in the order it came.
        code: its exit code; negative for the signal that ended it.
        seconds: how long it ran.
        left_out: bytes of output that were left out in the middle.
        stopped: `time-limit` or `cancelled` where it was ended from outside, else None.
    """

    output: str
    code: int
    seconds: float
    left_out: int
    stopped: str | None


def environment() -> dict[str, str]:
    """Return all that a command finds in its environment; nothing of the host's own is passed on."""
    account = pwd.getpwuid(os.geteuid())
    return {
        "PATH": PATH,
        "HOME": account.pw_dir,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "TMPDIR": tempfile.gettempdir(),
    }


def run(
    command: str, folder: int, path: str, limit_s: float, most: int, cancelled: Callable[[], bool]
) -> Ran:
    """Run a command with bash and wait for it.

    It is the leader of a session and a process group of its own, without a terminal and without input.
    Whatever of that group is left when bash ends, when time is up, or when the call is cancelled, is killed.

    Args:
        command: without NUL.
        folder: the open folder to start in.
        path: the same folder's path, for systems where an open one cannot be passed.
        limit_s: seconds it may take.
        most: bytes of output that are kept.
        cancelled: asked now and then.
    """
    began = time.monotonic()
    output = _Output(most)
    process = subprocess.Popen(
        [_BASH, "--noprofile", "--norc", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=f"/proc/self/fd/{folder}" if sys.platform == "linux" else path,
        env=environment(),
        start_new_session=True,
        bufsize=0,
    )
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    stopped = None
    try:
        os.set_blocking(pipe, False)
        opened = True
        while not _has_ended(process):
            if cancelled():
                stopped = "cancelled"
                break
            if time.monotonic() - began >= limit_s:
                stopped = "time-limit"
                break
            opened = _wait(pipe, output) if opened else _pause()
    finally:
        _kill_group(process)
        until = time.monotonic() + _DRAIN_S
        # somebody who left the group may keep the pipe open: it is not waited for
        while time.monotonic() < until and _wait(pipe, output):
            if not output.grew:
                break
        process.stdout.close()
        process.wait()
    return Ran(output.text(), process.returncode, time.monotonic() - began, output.left_out, stopped)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Tell whether bash ended, leaving it a zombie: its number stays its own until the group is killed."""
    if not hasattr(os, "waitid"):  # macOS before Python 3.13
        return process.poll() is not None
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _wait(pipe: int, output: _Output) -> bool:
    """Read what comes within a moment; return whether the pipe is still open."""
    output.grew = False
    if not select.select([pipe], [], [], _POLL_S)[0]:
        return True
    try:
        data = os.read(pipe, 65536)
    except BlockingIOError:
        return True
    output.add(data)
    return bool(data)


def _pause() -> bool:
    time.sleep(_POLL_S)
    return False


class _Output:
    """The beginning and the end of what a command writes; the middle is dropped as it comes."""

    def __init__(self, most: int) -> None:
        self._head_room = int(most * _HEAD)
        self._tail_room = most - self._head_room
        self._head = bytearray()
        self._tail = bytearray()
        self.left_out = 0
        self.grew = False

    def add(self, data: bytes) -> None:
        """Take in what came."""
        self.grew = bool(data)
        room = self._head_room - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        over = len(self._tail) - self._tail_room
        if over > 65536:  # not at every piece: each cut copies the rest
            self._cut(over)

    def _cut(self, over: int) -> None:
        del self._tail[:over]
        self.left_out += over

    def text(self) -> str:
        """Return it as text that can be shown: what is no UTF-8 and every NUL is replaced."""
        over = len(self._tail) - self._tail_room
        if over > 0:
            self._cut(over)
        between = f"\n… {self.left_out} bytes left out …\n".encode() if self.left_out else b""
        return (
            (bytes(self._head) + between + bytes(self._tail))
            .decode("utf-8", "replace")
            .replace("\0", "\ufffd")
        )
