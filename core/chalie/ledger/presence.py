"""Which processes of this home are alive, told by locks that the system drops when a process ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from pathlib import Path
from typing import Final

from ..errors import LedgerUnavailable

__all__ = ["Presence"]

#: marks of this process. A record lock is the process's, so looking at an own file would drop the lock.
_own: Final[dict[str, int]] = {}


class Presence:
    """This process's mark, and whether those of others still stand.

    A process id alone would not do: it is used again after a while, and means nothing in another container
    that shares the home. A lock on a file is dropped by the system however its process ends, and is not
    handed on to a forked child.

    Args:
        folder: where the marks are.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._mark: str | None = None
        self._file = -1
        self._pid = -1

    def mark(self) -> str:
        """Return this process's mark, making it when first asked.

        Raises:
            LedgerUnavailable: the folder cannot be written.
        """
        with self._lock:
            if self._mark is None or self._pid != os.getpid():
                mark = f"{os.getpid()}-{os.urandom(8).hex()}"
                try:
                    self._folder.mkdir(mode=0o700, exist_ok=True)
                    self._file = os.open(self._folder / mark, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
                    fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError as error:
                    raise LedgerUnavailable(
                        f"{self._folder} cannot be written: {error.strerror or error}",
                        hint=f"make {self._folder.parent} writable for this account, or set CHALIE_HOME",
                    ) from error
                self._mark, self._pid = mark, os.getpid()
                _own[mark] = self._pid
            return self._mark

    def is_alive(self, mark: str) -> bool:
        """Tell whether the process of a mark still runs; a mark that was dropped is gone for good."""
        if _own.get(mark) == os.getpid():
            return True
        try:
            file = os.open(self._folder / mark, os.O_RDWR)
        except OSError:
            return False
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        else:
            with contextlib.suppress(OSError):
                (self._folder / mark).unlink()
            return False
        finally:
            os.close(file)

    def others(self) -> frozenset[int]:
        """Return the ids of the other living processes that have a mark here."""
        try:
            marks = os.listdir(self._folder)  # noqa: PTH208  (names are all that is wanted)
        except OSError:
            return frozenset()
        given = {mark: mark.partition("-")[0] for mark in marks}
        return frozenset(
            int(pid)
            for mark, pid in given.items()
            if pid.isdecimal() and int(pid) != os.getpid() and self.is_alive(mark)
        )

    def close(self) -> None:
        """Drop this process's mark."""
        with self._lock:
            if self._mark is not None and self._pid == os.getpid():
                _own.pop(self._mark, None)
                with contextlib.suppress(OSError):
                    (self._folder / self._mark).unlink()
                os.close(self._file)
            self._mark = None
