"""What changed between a catalogue and the import path: what stays, is read, waits, or is gone."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from attrs import evolve, field, frozen

from .descriptor import Problem
from .footprint import QUIET_S, Footprint
from .installed import Distribution, Scan, unusable
from .snapshot import Snapshot
from .tables import DistributionRow

__all__ = ["Changes", "Found", "Unsettled", "compare"]


@frozen
class Found:
    """A distribution as it is on disk now."""

    distribution: Distribution
    footprint: Footprint = field(repr=False)

    @property
    def name(self) -> str:
        """Its normalised name."""
        return self.distribution.name


@frozen
class Unsettled:
    """A distribution that cannot be read yet.

    Attributes:
        name: its normalised name.
        reason: one line.
        due: when it may have settled (seconds since the epoch); None where only a change on disk can do it.
        found: what there is of it; None where only a leftover of the old version is.
    """

    name: str
    reason: str
    due: float | None
    found: Found | None


@frozen
class Changes:
    """The outcome of a comparison; every distribution is in one of the lists.

    Attributes:
        kept: those whose descriptors stand, with their row (its stamp brought up to date).
        read: those to describe.
        unsettled: those to look at again.
        broken: rows of those whose metadata or files cannot be read.
        gone: rows of those that are there no more since the last build.
        problems: what to report of those that could not be compared.
    """

    kept: tuple[tuple[Found, DistributionRow], ...]
    read: tuple[Found, ...]
    unsettled: tuple[Unsettled, ...]
    broken: tuple[DistributionRow, ...]
    gone: tuple[DistributionRow, ...]
    problems: tuple[Problem, ...] = ()

    def due(self) -> float | None:
        """Return when the first of the unsettled may have settled by time alone."""
        return min((one.due for one in self.unsettled if one.due is not None), default=None)


def compare(
    scan: Scan,
    previous: Snapshot | None,
    *,
    now: float,
    quiet_s: float = QUIET_S,
    full: bool = False,
    rebuild: bool = False,
    disabled: Collection[str] = (),
) -> Changes:
    """Compare the import path with a catalogue. Stats alone, and bytes only where those differ.

    Args:
        scan: the import path as it is.
        previous: the catalogue to compare with; None reads everything.
        now: seconds since the epoch.
        quiet_s: seconds without a change that an installed distribution must show.
        full: compare the bytes of every file, and read again what was set aside.
        rebuild: read everything again.
        disabled: normalised names that do not count as gone: they are left out on purpose.
    """
    rows = {row.name: row for row in previous.distributions()} if previous is not None else {}
    # What could not be imported for want of another package may be importable now.
    moved = previous is None or _paths(previous) != {w.path: w.listing for w in scan.watched}
    kept: list[tuple[Found, DistributionRow]] = []
    read: list[Found] = []
    unsettled: list[Unsettled] = []
    problems: list[Problem] = []
    broken = [_broken(name, path, rows.get(name)) for name, path in sorted(scan.broken.items())]
    for distribution in scan.distributions:
        row = rows.get(distribution.name)
        try:
            found = Found(distribution, distribution.footprint())
            due = found.footprint.settles(now, quiet_s)
            same = _same(row, found, full, moved) if due == 0.0 and row is not None and not rebuild else None
        except Exception as error:
            # Whatever one distribution's files make go wrong costs that one.
            problems.append(unusable(distribution, error))
            broken.append(_broken(distribution.name, distribution.path, row, "its files cannot be read"))
            continue
        if due != 0.0:
            unsettled.append(Unsettled(distribution.name, _waiting(found, due), due, found))
        elif same is not None:
            kept.append((found, same))
        else:
            read.append(found)
    names = {distribution.name for distribution in scan.distributions}
    for name, leftover in scan.leaving.items():
        if name in rows and name not in names:
            names.add(name)
            reason = (
                f"an installer has moved the old version away ({leftover.name}) and not put a new one yet"
            )
            unsettled.append(Unsettled(name, reason, None, None))
    names |= set(scan.broken) | set(disabled)
    gone = [row for row in rows.values() if row.name not in names and row.state != "missing"]
    return Changes(tuple(kept), tuple(read), tuple(unsettled), tuple(broken), tuple(gone), tuple(problems))


def _paths(snapshot: Snapshot) -> dict[str, str]:
    return {w.path: w.listing for w in snapshot.watched() if w.kind == "path"}


def _same(row: DistributionRow, found: Found, full: bool, moved: bool) -> DistributionRow | None:
    """Return the row under today's stamp where the files are those it was made from, else None."""
    distribution, print_ = found.distribution, found.footprint
    if row.version != distribution.version or row.path != str(distribution.path):
        return None
    if row.state != "ready":
        again = full or moved or row.state != "quarantined" or row.stamp != print_.stamp
        return None if again else row
    if row.stamp == print_.stamp and not full:
        return row
    if row.files_hash != print_.files_hash():
        return None
    return evolve(row, stamp=print_.stamp, roots=print_.roots, editable=distribution.editable)


def _waiting(found: Found, due: float | None) -> str:
    if due is None:
        missing = found.footprint.missing
        return f"its RECORD names {missing}, which is missing or of another size"
    if found.footprint.missing:
        return f"it is being written ({found.footprint.missing} is not complete)"
    return "its files changed a moment ago"


def _broken(
    name: str, path: Path, row: DistributionRow | None, reason: str = "its metadata cannot be read"
) -> DistributionRow:
    if row is None:
        return DistributionRow(name, "", str(path), "", "", False, "quarantined", reason)
    return evolve(row, state="quarantined", reason=reason, stamp="")
