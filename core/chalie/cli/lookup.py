"""What a person's word may mean here (a tool, a package, a channel), and what to say where it means none."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from ..catalogue.installed import GROUPS
from ..config import import_paths, normal_dist
from ..errors import ChalieError
from ..names import SERVER, is_server

if TYPE_CHECKING:
    from ..catalogue.descriptor import Descriptor
    from ..catalogue.tables import DistributionRow
    from ..host import Host

__all__ = [
    "absent_package",
    "absent_tool",
    "channel",
    "disabled",
    "disabled_owner",
    "foreign_groups",
    "installed_version",
    "known_package",
    "nearest",
    "tools",
]

_ABILITIES = "chalie.abilities"


def tools(host: Host, word: str) -> tuple[Descriptor, ...]:
    """Return the tools a word names: as they are called, else with case and joins folded; the host's too."""
    from ..names import normal
    from ..pins import own_descriptors

    own = tuple(item for name, item in own_descriptors().items() if normal(name) == normal(word))
    return own or host.snapshot.resolve(word) or host.snapshot.named(word)


def known_package(host: Host, word: str) -> DistributionRow | None:
    """Return the catalogue's row of an installed package, in whatever spelling; None for any other."""
    row = host.snapshot.distribution(normal_dist(word))
    return row if row is not None and row.state != "missing" else None


def disabled(host: Host) -> dict[str, str]:
    """Return name -> version of the packages that are installed and switched off. Nothing of them is read."""
    off = {name for name, options in host.config.packages.items() if options.disabled}
    versions = {name: installed_version(name) for name in sorted(off)}
    return {name: version for name, version in versions.items() if version is not None}


def installed_version(dist: str) -> str | None:
    """Return the version of a distribution on the import path, told by its metadata folder's name alone."""
    import os

    for path in import_paths():
        try:
            names = sorted(os.listdir(path))  # noqa: PTH208  (names are all that is wanted)
        except OSError:
            continue
        for name in names:
            stem, _, kind = name.rpartition(".")
            if kind in ("dist-info", "egg-info") and normal_dist(stem.partition("-")[0]) == dist:
                return stem.partition("-")[2].partition("-")[0]
    return None


def foreign_groups(dist: str) -> list[str]:
    """Return a distribution's entry-point groups that look like ours and are not."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        points = distribution(dist).entry_points
    except (PackageNotFoundError, ValueError, OSError):
        return []
    groups = sorted({point.group for point in points} - set(GROUPS))
    return [
        group for group in groups if "chalie" in group.casefold() or difflib.get_close_matches(group, GROUPS)
    ]


def absent_package(host: Host, word: str) -> ChalieError:
    """Return what to say of a package that the catalogue does not hold: why, and the next step."""
    dist = normal_dist(word)
    if is_server(dist):
        slug = dist.removeprefix(SERVER)
        return ChalieError(f"no server {slug} is configured", code="unknown-server", hint="chalie mcp list")
    if dist in disabled(host):
        return ChalieError(
            f"{dist} is disabled, so nothing of it is read",
            code="unknown-package",
            hint=f"chalie enable {dist}",
        )
    if installed_version(dist) is not None:
        groups = foreign_groups(dist)
        said = f"; it has the group{'s' if len(groups) > 1 else ''} {', '.join(groups)}" if groups else ""
        return ChalieError(
            f"{dist} is installed but brings nothing for Chalie: it has no entry point in {_ABILITIES}{said}",
            code="unknown-package",
            hint=f'its pyproject.toml needs [project.entry-points."{_ABILITIES}"]; then install it again',
        )
    near = nearest(dist, [row.name for row in host.snapshot.distributions() if row.state != "missing"])
    return ChalieError(
        f"no package {dist} is installed in this Python",
        code="unknown-package",
        hint=f"did you mean {near}? Otherwise: chalie install {dist}" if near else f"chalie install {dist}",
    )


def disabled_owner(host: Host, word: str) -> str | None:
    """Return the package, installed and switched off, that is called by that word; None where none is."""
    from ..names import normal, short

    known = ((dist, (normal(dist), normal(short(dist)))) for dist in disabled(host))
    return next((dist for dist, called in known if normal(word) in called), None)


def absent_tool(host: Host, word: str, *, what: str = "tool") -> ChalieError:
    """Return what to say of a name that no ready tool has: why, and what a person does next."""
    dist = disabled_owner(host, word)
    if dist is not None:
        return ChalieError(
            f"{word} belongs to {dist}, which is disabled", code="unknown-tool", hint=f"chalie enable {dist}"
        )
    for row in host.snapshot.unready(word):
        state = row.reason if row.state == "missing" else f"{row.state}: {row.reason}"
        hint = f"chalie install {row.name}" if row.state == "missing" else "chalie doctor tells the fix"
        return ChalieError(f"{word} belongs to {row.name}: {state}", code="unknown-tool", hint=hint)
    if what != "tool" and installed_version(normal_dist(word)) is not None:
        return absent_package(host, word)
    hints = []
    near = nearest(word, [host.snapshot.exposed(item) for _, item in host.snapshot.abilities()])
    if near:
        hints.append(f"did you mean {near}?")
    hints.append(f"search for one: chalie find {json.dumps(word, ensure_ascii=False)}")
    if off := disabled(host):
        hints.append(f"({', '.join(off)} disabled: chalie enable NAME)")
    return ChalieError(f"no {what} named {word!r} is installed", code="unknown-tool", hint=" ".join(hints))


def channel(host: Host, name: str, *, policy: bool = False) -> str:
    """Return a channel's name, where there is one that a command can work on.

    Args:
        host: whose channels.
        name: as it was typed.
        policy: whether a delegate, which has no permissions of its own, is refused too.

    Raises:
        click.UsageError: there is no such channel; a mistyped word like any other.
    """
    found = host.channels.get(name)
    if found is not None and not (policy and found.delegate):
        return name
    takes = [each.name for each in host.channels.values() if not (policy and each.delegate)]
    if found is not None:
        said = f"{name} is a delegate: it takes the permissions of the turn that opens it"
        raise click.UsageError(f"{said}; use one of {', '.join(takes)}")
    near = nearest(name, takes)
    advice = f"did you mean {near}?" if near else f"use one of {', '.join(takes)}"
    raise click.UsageError(f"there is no channel {name!r}; {advice}")


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word nearest to one that was probably mistyped, or None."""
    folded = {each.casefold(): each for each in known}
    near = difflib.get_close_matches(word.casefold(), list(folded), n=1, cutoff=0.7)
    return folded[near[0]] if near else None
