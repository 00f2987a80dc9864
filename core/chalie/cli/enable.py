"""`chalie enable`: let a package be loaded, by somebody who may say so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ..errors import ChalieError
from . import exits, lookup
from .completion import packages
from .opening import built, opened
from .output import note
from .proof import proven

if TYPE_CHECKING:
    from ..catalogue.descriptor import Problem
    from ..catalogue.tables import DistributionRow
    from ..host import Host

__all__ = ["command", "powers", "row"]


@click.command("enable")
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=packages)
@click.option("--installed", is_flag=True, hidden=True, help="An installer has just run to its end.")
@click.pass_context
def command(context: click.Context, names: tuple[str, ...], installed: bool) -> int:
    """Enable packages: their tools may be read and called, their policies and plugins loaded.

    Policies and plugins run with the host's own powers, so enabling those, or anything that was disabled,
    needs the owner at a terminal or an approver token. It binds to the package's files and lapses when they
    change. Exit code 6 if one of them cannot be read.
    """
    from packaging.utils import canonicalize_name

    if installed:
        built(context, finished=True)
    with opened(context) as host:
        worst = exits.OK
        for name in names:
            worst = max(worst, _enable(host, str(canonicalize_name(name))))
    return worst


def _enable(host: Host, dist: str) -> int:
    from ..config import environment_key, save_package_option

    disabled = host.config.package(dist).disabled
    if disabled:
        by = proven(host)
        save_package_option(host.config.home, dist, "disabled", None)
        host.ledger.trail.append("package.enabled", dist=dist, detail="no longer disabled", by=by)
        click.echo(f"{dist}: no longer disabled; its tools are read at the next start")
        return exits.OK
    found = row(host, dist)
    power = powers(host, dist)
    environment = environment_key()
    if power and not host.ledger.enabled.is_enabled(dist, found.files_hash):
        try:
            by = proven(host)
        except ChalieError as error:
            raise ChalieError(
                f"{dist} is installed, not enabled: it brings {' and '.join(power)}. {error.message}",
                code="not-authorised",
                hint=f"at a terminal: chalie enable {dist}",
            ) from error
        host.ledger.enabled.set(dist, found.files_hash, environment, by=by)
    return _report(host, found, power)


def _report(host: Host, found: DistributionRow, power: Sequence[str]) -> int:
    """Say what a package brings, or why it brings nothing; return the exit code."""
    dist = found.name
    problems = [problem for problem in host.problems() if problem.dist == dist]
    if found.state == "quarantined":
        note(f"{dist} is installed and set aside: what is wrong has to be mended first")
        _say(problems)
        return exits.INSTALLER
    tools = [host.snapshot.exposed(item) for item in host.snapshot.of(dist)]
    playbooks = host.snapshot.playbooks_of(dist)
    brought = [f"tools: {', '.join(tools)}"] if tools else []
    brought += [f"playbooks: {len(playbooks)}"] if playbooks else []
    brought += [f"enabled: {' and '.join(power)}"] if power else []
    click.echo(f"{dist}: {'; '.join(brought) or 'installed; it brings nothing for Chalie'}")
    _say(problems)
    return exits.OK


def _say(problems: Sequence[Problem]) -> None:
    for problem in problems:
        note(f"{problem.dist}: {problem.phase}: {problem.reason}")
        note(f"  fix: {problem.fix}")


def powers(host: Host, dist: str) -> list[str]:
    """Return which code with the host's own powers a package brings: `policies`, `plugins`, both or none."""
    return [
        group
        for group in ("policies", "plugins")
        if any(entry.dist == dist for entry in host.snapshot.entry_points(f"chalie.{group}"))
    ]


def row(host: Host, dist: str) -> DistributionRow:
    """Return the catalogue's row of a distribution.

    Raises:
        ChalieError: nothing of that name is installed, or it brings nothing for Chalie.
    """
    found = lookup.known_package(host, dist)
    if found is not None:
        return found
    raise lookup.absent_package(host, dist)
