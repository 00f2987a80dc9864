"""What a new catalogue holds: kept rows, fresh descriptors and playbooks, and what was set aside."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from attrs import evolve, frozen

from . import footprint, installed
from .changes import Changes, Found, Unsettled
from .describe import SLOW_S, Described
from .descriptor import Descriptor, EntryPoint, Playbook, Problem
from .installed import Scan
from .snapshot import Snapshot
from .tables import Contents, DistributionRow, State, Watched

__all__ = ["Outcome", "assemble", "digest", "has_abilities", "outcome_of"]

_SKILLS: Final = "chalie.skills"
_ABILITIES: Final = "chalie.abilities"
#: problems that belong to a reading of a distribution and stay as long as its files do
_OF_READING: Final = frozenset({"import", "describe", "check", "playbook"})


@frozen
class Outcome:
    """What reading a distribution gave.

    Attributes:
        row: its row; `quarantined` where it was set aside, `in-progress` where it changed meanwhile.
        abilities, playbooks: what it has.
        problems: what to report of it.
    """

    row: DistributionRow
    abilities: tuple[Descriptor, ...] = ()
    playbooks: tuple[Playbook, ...] = ()
    problems: tuple[Problem, ...] = ()


def has_abilities(found: Found) -> bool:
    """Tell whether a distribution has to be described at all."""
    return any(point.group == _ABILITIES for point in found.distribution.entry_points)


def outcome_of(found: Found, result: Described | Problem) -> Outcome:
    """Turn a reading into what the catalogue holds, unless the files changed while they were read."""
    try:
        return _outcome(found, result)
    except Exception as error:  # whatever one distribution's files make go wrong costs that one
        problem = evolve(installed.unusable(found.distribution, error), phase="describe")
        return Outcome(_row(found, "quarantined", problem.reason), problems=(problem,))


def _outcome(found: Found, result: Described | Problem) -> Outcome:
    files_hash = found.footprint.files_hash()
    playbooks: tuple[Playbook, ...] = ()
    problems: tuple[Problem, ...] = ()
    if isinstance(result, Described):
        playbooks, problems = _playbooks(found)
    if found.distribution.footprint().stamp != found.footprint.stamp:
        return Outcome(_row(found, "in-progress", "its files changed while they were read"))
    if isinstance(result, Problem):
        return Outcome(_row(found, "quarantined", result.reason, files_hash), problems=(result,))
    if result.seconds >= SLOW_S:
        problems = (*problems, _slow(found, result.seconds))
    return Outcome(_row(found, "ready", "", files_hash), result.abilities, playbooks, problems)


def _row(found: Found, state: State, reason: str, files_hash: str = "") -> DistributionRow:
    distribution = found.distribution
    return DistributionRow(
        name=distribution.name,
        version=distribution.version,
        path=str(distribution.path),
        stamp=found.footprint.stamp,
        files_hash=files_hash,
        editable=distribution.editable,
        state=state,
        reason=reason,
        roots=found.footprint.roots,
    )


def _slow(found: Found, seconds: float) -> Problem:
    points = [p for p in found.distribution.entry_points if p.group == _ABILITIES]
    return Problem(
        dist=found.name,
        entry_point=_line(points[0]) if points else "",
        phase="import",
        reason=f"takes {seconds:.1f} s to import, so the first call of its tools does too",
        fix=f"ask its author to import heavy modules when first used, or: chalie disable {found.name}",
        quarantined=False,
    )


def _line(point: EntryPoint) -> str:
    return f"{point.group}: {point.name} = {point.value}"


def _playbooks(found: Found) -> tuple[tuple[Playbook, ...], tuple[Problem, ...]]:
    points = [point for point in found.distribution.entry_points if point.group == _SKILLS]
    books: list[Playbook] = []
    problems: list[Problem] = []
    for point in points:
        from . import playbooks

        folder = _folder(installed.module_of(point.value), found.footprint.roots)
        if folder is None:
            reason = f"{point.value} is no folder of {found.distribution.path}"
            fix = f"python -m pip install --force-reinstall {found.name}"
            problems.append(Problem(found.name, _line(point), "playbook", reason, fix, quarantined=False))
            continue
        some, trouble = playbooks.read_folder(folder, dist=found.name, entry_point=point)
        books.extend(some)
        problems.extend(trouble)
    return tuple(books), tuple(problems)


def _folder(module: str, roots: Mapping[str, str]) -> Path | None:
    for root, path in roots.items():
        if module == root or module.startswith(root + "."):
            folder = Path(path, *module[len(root) :].strip(".").split("."))
            return folder if folder.is_dir() else None
    return None


def assemble(
    scan: Scan,
    changes: Changes,
    outcomes: Mapping[str, Outcome],
    previous: Snapshot | None,
    servers: Sequence[Outcome] = (),
) -> Contents:
    """Return what the new catalogue holds.

    Args:
        scan, changes: what is on disk, and how it compares.
        outcomes: of those read so far; the others of `changes.read` are still in progress.
        previous: the catalogue that kept rows, and what was last known of unready ones, are taken from.
        servers: what MCP servers bring.
    """
    made: list[Outcome] = [*servers]
    watched = list(scan.watched)
    reported = tuple(p for p in previous.problems() if p.phase in _OF_READING) if previous is not None else ()
    for found, row in changes.kept:
        problems = tuple(problem for problem in reported if problem.dist == row.name)
        made.append(_last_known(row, previous, problems))
        watched += _watch(found, row.state)
    for found in changes.read:
        outcome = outcomes.get(found.name) or Outcome(_row(found, "in-progress", "it is still being read"))
        made.append(_with_last_known(outcome, previous))
        watched += _watch(found, outcome.row.state)
    for one in changes.unsettled:
        made.append(_unsettled(one, previous))
        if one.found is not None:
            watched += _watch(one.found, "in-progress")
    for row in changes.broken:
        made.append(_last_known(row, previous))
        watched += [
            footprint.watched(f"{row.path}/{name}", "unsettled")
            for name in ("METADATA", "entry_points.txt", "RECORD", "direct_url.json")
        ]
    for row in changes.gone:
        made.append(
            _last_known(evolve(row, state="missing", reason="it is not installed any more"), previous)
        )
    return _contents(scan, changes, made, watched)


def _contents(scan: Scan, changes: Changes, made: Iterable[Outcome], watched: Iterable[Watched]) -> Contents:
    ordered = sorted(made, key=lambda outcome: outcome.row.name)
    entries = {point: None for one in scan.distributions for point in one.entry_points}
    known = {outcome.row.name for outcome in ordered}
    leftovers = [installed.leftover(path, name) for name, path in scan.leaving.items() if name not in known]
    return Contents(
        distributions=tuple(outcome.row for outcome in ordered),
        abilities=tuple(ability for outcome in ordered for ability in outcome.abilities),
        playbooks=tuple(book for outcome in ordered for book in outcome.playbooks),
        entries=tuple(sorted(entries, key=lambda point: (point.dist, point.group, point.name, point.value))),
        problems=(
            *scan.problems,
            *changes.problems,
            *leftovers,
            *(p for outcome in ordered for p in outcome.problems),
        ),
        watched=tuple({row.path: row for row in watched}.values()),
    )


def _watch(found: Found, state: State) -> Iterator[Watched]:
    if state != "ready":
        yield from found.footprint.watched(unsettled=True)
    elif found.distribution.editable:
        yield from found.footprint.watched(unsettled=False)


def _last_known(
    row: DistributionRow, previous: Snapshot | None, problems: tuple[Problem, ...] = ()
) -> Outcome:
    if previous is None:
        return Outcome(row, problems=problems)
    return Outcome(row, previous.of(row.name), previous.playbooks_of(row.name), problems)


def _with_last_known(outcome: Outcome, previous: Snapshot | None) -> Outcome:
    if outcome.row.state == "ready" or outcome.abilities or outcome.playbooks:
        return outcome
    return _last_known(outcome.row, previous, outcome.problems)


def _unsettled(one: Unsettled, previous: Snapshot | None) -> Outcome:
    row = previous.distribution(one.name) if previous is not None else None
    if one.found is not None:
        row = _row(one.found, "in-progress", one.reason)
    elif row is None:
        row = DistributionRow(one.name, "", "", "", "", False, "in-progress", one.reason)
    row = evolve(row, state="in-progress", reason=one.reason, stamp="", files_hash="")
    fix = f"wait for the installer to end, or: python -m pip install --force-reinstall {one.name}"
    waits = Problem(one.name, "", "files", f"{one.reason} ({row.path})", fix, quarantined=False)
    # What only a moment will settle is not a problem to show anybody.
    return _last_known(row, previous, (waits,) if one.due is None else ())


def digest(contents: Contents) -> str:
    """Return a digest that is the same where nothing that a catalogue holds differs."""
    return hashlib.sha256(repr(contents).encode("utf-8", "backslashreplace")).hexdigest()
