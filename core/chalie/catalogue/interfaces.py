"""Versions of the interfaces between host and packages: they stand in the names of entry-point groups.

`chalie.abilities` is version 1, `chalie.abilities.v2` would be the next. A breaking change of an interface
takes a new group, so a host never loads code written for another one, and a package with both groups works
with both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from attrs import frozen

from .. import __version__
from ..errors import Leaving
from .descriptor import EntryPoint, Problem

__all__ = ["GROUPS", "LEAVING", "Interface", "foreign", "leaving", "unspoken", "wanted"]

#: the groups that this host knows, by the interface they are for.
_SPOKEN: Final[Mapping[str, int]] = MappingProxyType(
    {"abilities": 1, "policies": 1, "plugins": 1, "skills": 1, "models": 1}
)
_GROUP: Final = re.compile(r"chalie\.([a-z]+)(?:\.v([1-9][0-9]{0,3}))?")


@frozen
class Interface:
    """What a group stands for.

    Attributes:
        kind: `abilities`, `policies`, `plugins`, `skills` or `models`.
        version: of the interface, from 1.
    """

    kind: str
    version: int

    @property
    def group(self) -> str:
        """The entry-point group's name."""
        return f"chalie.{self.kind}" if self.version == 1 else f"chalie.{self.kind}.v{self.version}"


#: entry-point groups that make a distribution one of ours
GROUPS: Final = tuple(Interface(kind, version).group for kind, version in _SPOKEN.items())
#: groups that a later host will not speak; each stays for at least one release after it is named here.
LEAVING: Final[Mapping[str, Leaving]] = MappingProxyType({})


def wanted(group: str) -> Interface | None:
    """Return the interface that a group of ours stands for; None for any other group."""
    found = _GROUP.fullmatch(group)
    if found is None or found[1] not in _SPOKEN or found[2] == "1":
        return None
    return Interface(found[1], int(found[2] or 1))


def foreign(group: str) -> bool:
    """Tell whether a group is one of ours in a version that this host does not speak."""
    return group not in GROUPS and wanted(group) is not None


def unspoken(dist: str, points: Iterable[EntryPoint]) -> Iterator[Problem]:
    """Yield a problem for each interface that a package has in other versions alone."""
    lines = list(points)
    spoken = {found.kind for point in lines if point.group in GROUPS and (found := wanted(point.group))}
    told: set[str] = set()
    for point in lines:
        found = wanted(point.group)
        if found is None or found.kind in spoken or found.kind in told:
            continue
        told.add(found.kind)
        versions = sorted(
            other.version for line in lines if (other := wanted(line.group)) and other.kind == found.kind
        )
        listed = " or ".join(map(str, versions))
        newer = versions[0] > _SPOKEN[found.kind]
        yield Problem(
            dist=dist,
            entry_point=f"{point.group}: {point.name} = {point.value}",
            phase="metadata",
            reason=(
                f"it wants version {listed} of the interface for {found.kind}, and chalie {__version__} has "
                f"version {_SPOKEN[found.kind]}"
            ),
            fix=f"python -m pip install --upgrade {'chalie' if newer else dist}",
            quarantined=False,
        )


def leaving(points: Iterable[EntryPoint]) -> Iterator[tuple[EntryPoint, Leaving]]:
    """Yield the lines of a package whose interface a later host will not speak."""
    for point in points:
        gone = LEAVING.get(point.group)
        if gone is not None:
            yield point, gone
