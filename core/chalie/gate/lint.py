"""Rows that do not do what they seem to: each with the reason and the line that repairs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from attrs import frozen

from ..calls import Setting
from ..catalogue.descriptor import Descriptor
from ..ledger.permissions import PermissionRow
from ..ledger.pins import Pin, PinRow
from .drift import changes

__all__ = ["Finding", "findings"]


class Installed(Protocol):
    """What the check needs of the catalogue."""

    def state(self, dist: str) -> str | None:
        """Return the state of a distribution, None where it is not known."""
        ...

    def of(self, dist: str) -> Sequence[Descriptor]:
        """Return a distribution's abilities."""
        ...

    def owners(self, name: str) -> Sequence[Descriptor]:
        """Return every ability of a bare name."""
        ...


@frozen
class Finding:
    """A row that needs a look.

    Attributes:
        row: which one.
        reason: what is wrong with it.
        fix: a command, or an empty string.
    """

    row: PermissionRow
    reason: str
    fix: str


def findings(
    rows: Iterable[PermissionRow],
    installed: Installed,
    pins: Callable[[str, str], tuple[PinRow, ...]],
    now: Callable[[str, str], Pin | None],
) -> tuple[Finding, ...]:
    """Return what is wrong with a person's rows.

    Args:
        rows: all that are in force.
        installed: the catalogue.
        pins: (package, name) -> what its allow was given to, newest first.
        now: (package, name) -> the ability as it is now; None where it is not there.
    """
    known = {(row.channel, row.package, row.permission): row for row in rows}
    found: list[Finding] = []
    for row in known.values():
        found += (Finding(row, reason, fix) for reason, fix in _flaws(row, known, installed, pins, now))
    return tuple(found)


def _flaws(
    row: PermissionRow,
    known: dict[tuple[str, str, str], PermissionRow],
    installed: Installed,
    pins: Callable[[str, str], tuple[PinRow, ...]],
    now: Callable[[str, str], Pin | None],
) -> Iterator[tuple[str, str]]:
    remove = f"chalie permissions remove {row.channel} '{row.permission}' --package {row.package}"
    if row.permission.endswith("*"):
        names = [item.name for item in installed.of(row.package) if item.name.startswith(row.permission[:-1])]
        if not names:
            yield f"no tool of {row.package} has a name that begins with {row.permission[:-1]}", remove
        for name in names if row.setting is Setting.ALLOW else ():
            if (row.channel, row.package, name) not in known:  # else its own row counts, and is looked at
                yield from _drifted(row, name, pins(row.package, name), now(row.package, name))
        return
    name, dot, action = row.permission.partition(".")
    tool = next((item for item in installed.of(row.package) if item.name == name), None)
    if tool is None:
        yield _missing(row, name, installed), remove
        return
    if dot and action not in tool.actions:
        actions = ", ".join(sorted(tool.actions)) or "none"
        yield f"{name} has no action {action!r} (it has: {actions}), so the row matches no call", remove
    if dot and row.setting is not Setting.DENY:
        bare = known.get((row.channel, row.package, name))
        if bare is not None and bare.setting is Setting.DENY:
            yield f"it has no effect: {name} as a whole is denied on {row.channel}", remove
    if row.setting is Setting.ALLOW:
        yield from _drifted(row, name, pins(row.package, name), now(row.package, name))


def _missing(row: PermissionRow, name: str, installed: Installed) -> str:
    others = sorted({item.dist for item in installed.owners(name)} - {row.package})
    if others:
        return f"{name} is {' and '.join(others)}'s now, and the row is about {row.package}"
    if installed.state(row.package) in (None, "missing"):
        return f"{row.package} is not installed"
    return f"{row.package} has no tool named {name}, so the row matches no call"


def _drifted(
    row: PermissionRow, name: str, pinned: tuple[PinRow, ...], now: Pin | None
) -> Iterator[tuple[str, str]]:
    what = f"'{row.permission}'" if row.permission.endswith("*") else row.permission
    allow = f"chalie permissions set {row.channel} {what} allow --package {row.package}"
    if not pinned or now is None:
        return
    if not any(
        (each.pin.descriptor_hash, each.pin.files_hash) == (now.descriptor_hash, now.files_hash)
        for each in pinned
    ):
        how = "; ".join(changes(pinned, now))
        yield f"{name} has changed since it was allowed, so it is asked about again: {how}", allow
