"""Who may answer, set, trust, enable or say yes: the home's owner at a terminal, or an approver token."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ..errors import NotAuthorised
from ..ledger import Ledger

__all__ = ["Authority", "login", "terminal"]

_TERMINAL: Final = "/dev/tty"


class Authority:
    """Proves who decides.

    A terminal deters an agent and does not contain one: a program that runs under the owner's account and
    may do anything there can make a terminal of its own. What a tool starts gets neither terminal nor token,
    and one that a tool in a host's own process inherits from it does not count.

    Args:
        ledger: where the approver tokens are.
        home: the folder whose owner it is about.
    """

    def __init__(self, ledger: Ledger, home: Path) -> None:
        self._ledger = ledger
        self._home = home

    def prove(self, token: str | None) -> str:
        """Return who decides here: `token:<label>`, or `terminal:<login>`.

        Args:
            token: the approver token this process was given, or None.

        Raises:
            NotAuthorised: the token is not known, or there is no token and no owner at a terminal.
        """
        if token:
            label = self._ledger.approvers.check(token)
            if label is None:
                raise NotAuthorised(
                    "the approver token is not known to this home; it may have been removed",
                    hint="see: chalie approvers list",
                )
            return f"token:{label}"
        if not _owns(self._home):
            raise NotAuthorised(
                f"{login()} does not own the home {self._home}",
                hint="run this as its owner, or with an approver token in CHALIE_APPROVER_TOKEN",
            )
        if not os.isatty(0):
            raise _no_terminal("standard input is not a terminal")
        with terminal():
            host = _started_by(self._ledger.others())
            if host is not None:
                raise _no_terminal(f"this was started by a program that runs tools (process {host})")
            return f"terminal:{login()}"


@contextlib.contextmanager
def terminal() -> Iterator[int]:
    """Give a file descriptor of this process's own terminal, whatever its input and output are.

    Raises:
        NotAuthorised: there is none.
    """
    try:
        found = os.open(_TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise _no_terminal(f"{_TERMINAL} cannot be opened: {error.strerror or error}") from error
    try:
        if not os.isatty(found):
            raise _no_terminal(f"{_TERMINAL} is not a terminal")
        yield found
    finally:
        os.close(found)


def login() -> str:
    """Return the name of the account this process runs as; the environment has no say in it."""
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _owns(home: Path) -> bool:
    try:
        return home.stat().st_uid == os.geteuid()
    except OSError:
        return False


def _started_by(hosts: frozenset[int]) -> int | None:
    """Return the process among some that this one was started by at the same terminal, or None.

    One that has lost its parent could be anybody's at that terminal, so any of them there counts.
    """
    session = os.getsid(0)
    here = {host for host in hosts if _session(host) == session}
    if not here:
        return None
    pid = os.getpid()
    while pid != session:
        pid = _parent(pid)
        if pid in here:
            return pid
        if pid <= 1:
            return min(here)
    return None


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:  # it has ended, or means nothing in this container
        return None


def _parent(pid: int) -> int:
    """Return a process's parent, 0 where it cannot be told."""
    try:
        if sys.platform == "linux":
            # the name in parentheses may hold anything, parentheses and blanks too
            text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
            return int(text.rpartition(")")[2].split()[1])
        command = ["/bin/ps", "-o", "ppid=", "-p", str(pid)]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return 0


def _no_terminal(reason: str) -> NotAuthorised:
    return NotAuthorised(
        f"only the home's owner at a terminal, or an approver token, may do that: {reason}",
        hint="run it at a terminal, or set CHALIE_APPROVER_TOKEN (made with: chalie approvers add LABEL)",
    )
