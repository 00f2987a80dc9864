"""Noticing that something was installed, removed or edited, by stats alone."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import Final

from attrs import evolve

from . import installed
from .tables import Watched

__all__ = ["MANY_EDITABLES", "Watch"]

#: above this many editable distributions they are looked at every `EVERY_S` only
MANY_EDITABLES: Final = 200
EVERY_S: Final = 2.0


class Watch:
    """The paths a catalogue depends on, as they were when it was built.

    Args:
        watched: rows of the catalogue.
        editables: how many editable distributions there are.
        due: when something unsettled may have settled, in seconds since the epoch; None for never.
        clock: seconds since the epoch.
    """

    def __init__(
        self,
        watched: Iterable[Watched],
        editables: int = 0,
        due: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        rows = tuple(watched)
        self._paths = [row for row in rows if row.kind == "path"]
        self._editables = [row for row in rows if row.kind == "editable"]
        self._unsettled = [row for row in rows if row.kind in ("unsettled", "server")]
        self._many = editables > MANY_EDITABLES
        self._due = due
        self._clock = clock
        self._looked = float("-inf")

    def changed(self) -> bool:
        """Tell whether anything may have changed."""
        now = self._clock()
        if self._due is not None and now >= self._due:
            return True
        if self._entries_changed() or any(map(_differs, self._unsettled)):
            return True
        if self._many and 0 <= now - self._looked < EVERY_S:
            return False
        self._looked = now
        return any(map(_differs, self._editables))

    def _entries_changed(self) -> bool:
        for number, row in enumerate(self._paths):
            if not _differs(row):
                continue
            # Compiled files come and go in a folder of modules; only metadata beside them says that
            # something was installed. A folder that is gone has an empty listing.
            if installed.listing(row.path) != row.listing:
                return True
            self._paths[number] = _again(row)
        return False


def _again(row: Watched) -> Watched:
    try:
        found = os.stat(row.path)  # noqa: PTH116
    except OSError:
        return row
    return evolve(row, inode=found.st_ino, mtime_ns=found.st_mtime_ns, size=found.st_size)


def _differs(row: Watched) -> bool:
    try:
        found = os.stat(row.path)  # noqa: PTH116
    except OSError:
        return row.size != -1
    return found.st_mtime_ns != row.mtime_ns or found.st_size != row.size or found.st_ino != row.inode
