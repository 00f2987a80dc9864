"""A pseudo-terminal: programs run as a person runs them, and are answered as a person answers."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from attrs import frozen

_PATIENCE_S = 60


@frozen
class Said:
    """How a program ended.

    Attributes:
        code: its exit code.
        screen: everything it wrote to its terminal.
        out: what it wrote to standard output, where that was asked for apart.
    """

    code: int
    screen: str
    out: str = ""


def at_terminal(
    command: Sequence[str],
    *,
    answers: Sequence[tuple[str, str | Callable[[], object]]] = (),
    env: Mapping[str, str],
    cwd: Path | None = None,
) -> Said:
    """Run a program on a terminal of its own.

    Args:
        answers: pairs of a text to wait for on the screen and what is then typed, or done.
        env: its environment.
        cwd: its working folder.
    """
    ours, theirs = pty.openpty()

    def take_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=dict(env),
        cwd=cwd,
        start_new_session=True,
        preexec_fn=take_terminal,
    )
    os.close(theirs)
    try:
        screen = _converse(ours, list(answers), time.monotonic() + _PATIENCE_S)
        return Said(process.wait(_PATIENCE_S), screen)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _converse(terminal: int, answers: list[tuple[str, str | Callable[[], object]]], deadline: float) -> str:
    screen, read_until = "", 0
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([terminal], [], [], left)[0]:
            raise AssertionError(f"nothing happened for {_PATIENCE_S} s; the screen:\n{screen}")
        try:
            data = os.read(terminal, 65_536)
        except OSError:  # how Linux says that the other side is closed
            data = b""
        if not data:
            assert not answers, f"never asked: {answers[0][0]!r}; the screen:\n{screen}"
            return screen
        screen += data.decode("utf-8", "replace").replace("\r\n", "\n")
        while answers and answers[0][0] in screen[read_until:]:
            waited, answer = answers.pop(0)
            read_until = screen.index(waited, read_until) + len(waited)
            if isinstance(answer, str):
                os.write(terminal, answer.encode())
            else:
                answer()
