"""Noticing that something was installed, removed or edited, by stats alone."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from attrs import evolve

from . import installed
from .tables import Watched

__all__ = ["MANY_EDITABLES", "Watch"]

#: above this many editable distributions they are looked at every `EVERY_S` only
MANY_EDITABLES: Final = 200
EVERY_S: Final = 2.0
#: a folder written to more recently may be written to once more without its time showing that
_AT_REST_S: Final = 2.0


class Watch:
    """The paths a catalogue depends on, as they were when it was built.

    Args:
        watched: rows of the catalogue.
        editables: how many editable distributions there are.
        due: when something unsettled may have settled, in seconds since the epoch; None for never.
        clock: seconds since the epoch.
        memory: a file that says of folders how they were when their listing was last found to be the same,
            so that not every process has to list what compiled modules were written into; None for none.
    """

    def __init__(
        self,
        watched: Iterable[Watched],
        editables: int = 0,
        due: float | None = None,
        clock: Callable[[], float] = time.time,
        memory: Path | None = None,
    ) -> None:
        rows = tuple(watched)
        self._memory = memory
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
            now = self._remembered(row)
            if _differs(now):
                now = _again(row)  # before its listing: what is written meanwhile then shows at the next look
                if installed.listing(row.path) != row.listing:
                    return True
                self._remember(now)
            self._paths[number] = now
        return False

    def _remembered(self, row: Watched) -> Watched:
        """Return a folder as it was when its listing was last found to be that of `row`, or `row` itself."""
        inode, mtime_ns, size, listing = self._memories().get(row.path, (0, 0, 0, None))
        if listing != row.listing:
            return row
        return evolve(row, inode=inode, mtime_ns=mtime_ns, size=size)

    def _remember(self, row: Watched) -> None:
        if self._memory is None or self._clock() - row.mtime_ns / 1e9 < _AT_REST_S:
            return
        memories = {**self._memories(), row.path: (row.inode, row.mtime_ns, row.size, row.listing)}
        aside = self._memory.with_name(f"{self._memory.name}.{os.getpid()}.new")
        with contextlib.suppress(OSError):  # then the next process looks again
            aside.write_text(json.dumps(memories), encoding="utf-8")
            aside.replace(self._memory)

    def _memories(self) -> dict[str, Any]:
        if self._memory is None:
            return {}
        try:
            found = json.loads(self._memory.read_bytes())
        except (OSError, ValueError):
            return {}  # it only saves time
        if not isinstance(found, dict):
            return {}
        return {path: row for path, row in found.items() if isinstance(row, list) and len(row) == 4}


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
