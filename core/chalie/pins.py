"""Pinned tools: the host's own three, and the ones a channel names."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from .calls import Channel
from .catalogue.descriptor import Descriptor, Problem
from .names import OWN_DIST

if TYPE_CHECKING:
    from .ability import Ability
    from .catalogue.snapshot import Snapshot

__all__ = ["missing_pins", "own_descriptors", "pinned"]


@functools.cache
def own_descriptors() -> Mapping[str, Descriptor]:
    """Return the descriptors of the host's own abilities by name."""
    from .meta.find_skills import FindSkills
    from .meta.find_tools import FindTools
    from .meta.read_result import ReadResult

    return {own.name(): _described(own) for own in (FindTools(), FindSkills(), ReadResult())}


def _described(own: Ability) -> Descriptor:
    """Return what `ability.facts` says of an ability of the host's, without the checks a stranger's needs.

    Those would load the schema validator before anything is called; a test holds the two to be equal.
    """
    from . import __version__

    return Descriptor(
        dist=OWN_DIST,
        dist_version=__version__,
        target="",
        name=own.name(),
        summary=own.summary(),
        examples=tuple(own.examples()),
        search_tooltip=own.search_tooltip(),
        parameters=own.parameter_schema(),
        namespace=own.name().partition("_")[0],
        version=own.version,
        side_effect=own.side_effect,
        aliases=dict(own.aliases),
    ).sealed()


def pinned(channel: Channel, snapshot: Snapshot) -> dict[str, Descriptor]:
    """Return name -> descriptor of a channel's pins, in their order; what is not installed is left out.

    A pinned tool keeps its bare name whoever else claims it later.
    """
    found: dict[str, Descriptor] = {}
    for pin in channel.pins:
        descriptor = _pin(pin, snapshot)
        if descriptor is not None:
            name = descriptor.name if descriptor.name not in found else snapshot.exposed(descriptor)
            found.setdefault(name, descriptor)
    return found


def missing_pins(channels: Iterable[Channel], snapshot: Snapshot) -> tuple[Problem, ...]:
    """Return one line for each pinned tool that is not there."""
    missing: dict[str, list[str]] = {}
    for channel in channels:
        for pin in channel.pins:
            if _pin(pin, snapshot) is None:
                missing.setdefault(pin, []).append(channel.name)
    return tuple(_missing(pin, where) for pin, where in missing.items())


def _pin(pin: str, snapshot: Snapshot) -> Descriptor | None:
    package, _, name = pin.rpartition(":")
    if package in ("", OWN_DIST) and name in own_descriptors():
        return own_descriptors()[name]
    if package:
        # what was last known of an uninstalled package is kept, and is no tool
        return None if snapshot.state(package) == "missing" else snapshot.get(package, name)
    owners = snapshot.resolve(name)
    return owners[0] if len(owners) == 1 else None


def _missing(pin: str, where: list[str]) -> Problem:
    package = pin.rpartition(":")[0]
    if package:
        reason, fix = "is not installed", f"chalie install {package}"
    else:
        reason, fix = "is not installed, or has several owners", "install it, or pin it as package:name"
    return Problem(
        dist=package or pin,
        entry_point="",
        phase="pin",
        reason=f"{pin}, pinned on {', '.join(where)}, {reason}",
        fix=fix,
        quarantined=False,
    )
