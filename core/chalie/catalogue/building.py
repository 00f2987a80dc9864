"""One build of a catalogue: look, compare, read what changed, publish."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from attrs import evolve

from ..config import Config
from ..errors import IndexUnreadable
from ..names import is_server
from . import assembly, servers
from .changes import Changes, Found, compare
from .describe import Described, describe
from .descriptor import EntryPoint, Problem
from .generations import Generation, Generations, IndexBuilder
from .installed import Scan, scan
from .publishing import publish
from .snapshot import Snapshot
from .tables import FILE, DistributionRow

__all__ = ["Building", "IndexBuilders", "Progress"]

#: told (how many distributions are done, of how many, the names of those still being read)
Progress = Callable[[int, int, Sequence[str]], None]
#: makes the index builders for the models installed, with what there is to report of them
IndexBuilders = Callable[[Sequence[EntryPoint]], tuple[Sequence[IndexBuilder], Sequence[Problem]]]

#: seconds that a build waits for files that were just written to come to rest
SETTLE_S: Final = 3.0
#: seconds of reading after which what is done is published, and the rest goes on
FIRST_S: Final = 1.0
_MODELS: Final = "chalie.models"


class Building:
    """One build. The caller holds the build lock.

    Args:
        config: home, limits and options.
        generations: where to publish.
        paths: the import path to look at.
        builders: makes the index builders.
        options: what the catalogue depends on besides what is installed, as text.
        progress: told what is done and what is still to do.
    """

    def __init__(
        self,
        config: Config,
        generations: Generations,
        paths: tuple[str, ...],
        builders: IndexBuilders,
        *,
        options: str,
        progress: Progress,
    ) -> None:
        self._config = config
        self._generations = generations
        self._paths = paths
        self._index_builders = builders
        self._options = options
        self._progress = progress
        self._disabled = frozenset(name for name, given in config.packages.items() if given.disabled)
        self._anew = False
        self._previous: Generation | None = None
        self._known: Snapshot | None = None
        self._servers = servers.Servers()

    def run(self, full: bool, rebuild: bool, quiet_s: float) -> Generation:
        """Do it, and return the newest generation; see `chalie.build.build`."""
        self._previous = self._open_previous()
        self._known = None if self._previous is None else self._previous.snapshot
        if self._known is not None:
            before, now = (json.loads(text or "{}") for text in (self._known.meta("options"), self._options))
            # Another version of the host may check and keep facts differently.
            rebuild = rebuild or before.get("chalie") != now.get("chalie")
        self._anew = rebuild
        self._servers = servers.read(self._config.home, self._known, rebuild=rebuild)
        seen, changes = self._settled(full, rebuild, quiet_s)
        outcomes: dict[str, assembly.Outcome] = {}
        self._read(seen, changes, outcomes)
        return self._publish(seen, changes, outcomes)

    def _open_previous(self) -> Generation | None:
        """Open the last generation; one whose catalogue is damaged counts as none."""
        try:
            previous = self._generations.current()
            if previous is not None:
                previous.verified(FILE)
        except IndexUnreadable as error:
            # Of a child process this is in its log, of `chalie index` on the terminal.
            sys.stderr.write(f"chalie: {error.message}; everything is read again\n")
            return None
        return previous

    def _settled(self, full: bool, rebuild: bool, quiet_s: float) -> tuple[Scan, Changes]:
        """Compare what is installed, waiting a little for files that were just written."""
        patience = time.monotonic() + SETTLE_S
        # a server is on no import path: that a scan does not find it says nothing
        apart = self._disabled | {row.name for row in self._distributions() if is_server(row.name)}
        while True:
            seen = scan(self._paths, self._disabled)
            changes = compare(
                seen,
                self._known,
                now=time.time(),
                quiet_s=quiet_s,
                full=full,
                rebuild=rebuild,
                disabled=apart,
            )
            due = changes.due()
            if due is None or time.monotonic() + (due - time.time()) > patience:
                return seen, changes
            self._progress(0, 0, [one.name for one in changes.unsettled])
            time.sleep(max(0.01, due - time.time()))

    def _distributions(self) -> tuple[DistributionRow, ...]:
        return () if self._known is None else self._known.distributions()

    def _read(self, seen: Scan, changes: Changes, outcomes: dict[str, assembly.Outcome]) -> None:
        """Describe what has to be; publish once in between where that takes long."""
        waiting: dict[str, Found] = {}
        for found in changes.read:
            if assembly.has_abilities(found):
                waiting[found.name] = found
            else:
                outcomes[found.name] = assembly.outcome_of(found, Described(found.name, ()))
        total = len(waiting)
        first: float | None = time.monotonic() + FIRST_S
        self._progress(0, total, list(waiting))
        for result in self._described(list(waiting.values())):
            if result is not None:
                found = waiting.pop(result.dist)
                outcomes[found.name] = assembly.outcome_of(found, result)
                self._progress(total - len(waiting), total, list(waiting))
            if (
                waiting
                and first is not None
                and time.monotonic() > first
                and (outcomes or self._known is None)
            ):
                first = None
                self._publish(seen, changes, outcomes)

    def _described(self, todo: Sequence[Found]) -> Iterable[Described | Problem | None]:
        if not todo:
            return ()
        folders = {
            one.name: [str(Path(root).parent) for root in one.footprint.roots.values()]
            for one in todo
            if one.distribution.editable
        }
        limit_s = self._config.limits.describe_s
        return describe(
            [one.distribution for one in todo], limit_s=limit_s, paths=self._paths, folders=folders
        )

    def _publish(self, seen: Scan, changes: Changes, outcomes: dict[str, assembly.Outcome]) -> Generation:
        contents = assembly.assemble(seen, changes, outcomes, self._known, self._servers.outcomes)
        points = [point for point in contents.entries if point.group == _MODELS]
        builders, problems = self._index_builders(points)
        contents = evolve(
            contents,
            problems=(*contents.problems, *self._servers.problems, *problems),
            watched=(*contents.watched, *self._servers.watched),
        )
        due = changes.due()
        meta = {
            "options": self._options,
            "due": "" if due is None else repr(due),
            "contents": assembly.digest(contents),
        }
        previous = self._previous
        if previous is not None and not self._anew and self._unchanged(previous, builders, meta):
            return previous
        borrow = () if previous is not None else tuple(self._neighbours())
        self._previous = publish(
            self._generations,
            contents,
            builders,
            meta=meta,
            previous=previous,
            borrow=borrow,
            anew=self._anew,
        )
        return self._previous

    def _unchanged(
        self, previous: Generation, builders: Sequence[IndexBuilder], meta: dict[str, str]
    ) -> bool:
        if any(previous.snapshot.meta(key) != value for key, value in meta.items()):
            return False
        if dict(previous.manifest.builders) != {builder.name: builder.fingerprint() for builder in builders}:
            return False
        try:
            previous.check()
        except IndexUnreadable:
            return False
        return True

    def _neighbours(self) -> list[Path]:
        """Return the catalogues of the home's other environments, whose vectors can be borrowed."""
        found = []
        for root in sorted(self._generations.root.parent.iterdir()):
            if root != self._generations.root and root.is_dir():
                try:
                    generation = Generations(root).current()
                    if generation is not None:
                        found.append(generation.verified(FILE))
                except IndexUnreadable:
                    continue
        return found[:4]
