"""`chalie doctor`: everything that is wrong, each with the line that repairs it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..config import environment_key
from ..names import OWN_DIST, is_server
from . import exits
from .lookup import disabled
from .opening import opened
from .output import as_json, emit, pairs, table
from .wants import rows, troubles

if TYPE_CHECKING:
    from ..host import Host

__all__ = ["command", "examples_advice", "lapsed", "notes"]


@click.command("doctor")
@as_json
@click.pass_context
def command(context: click.Context, json_: bool) -> int:
    """Name every package that was set aside and everything else to repair, each with the line that does it.

    Exit code 1 if there is anything to repair. What is merely worth knowing is listed apart and is no
    failure. At the end: which version of which interface each installed package wants, and which chalie.
    """
    with opened(context) as host:
        problems = [
            {
                "package": problem.dist,
                "entry_point": problem.entry_point,
                "phase": problem.phase,
                "reason": problem.reason,
                "fix": problem.fix,
                "quarantined": problem.quarantined,
            }
            for problem in host.problems()
            if problem.phase != "pin"
        ]
        wants = rows(host)
        worth_knowing = notes(host) + troubles(wants)
        where = {
            "home": str(host.config.home),
            "config": str(host.config.home / "config.toml"),
            "environment": environment_key(),
            "generation": host.generation.id,
        }
    if json_:
        emit({**where, "problems": problems, "notes": worth_knowing, "wants": wants})
        return exits.NOTHING if problems else exits.OK
    absent = "" if Path(where["config"]).exists() else " (not there yet; everything has a default)"
    pairs((where | {"config": where["config"] + absent}).items())
    for problem in problems:
        click.echo()
        head = "quarantined" if problem["quarantined"] else "problem"
        pairs([(head, problem["package"]), *((key, problem[key]) for key in _SHOWN)])
    for row in worth_knowing:
        click.echo()
        pairs([("note", row["package"]), ("reason", row["reason"]), ("fix", row["fix"])])
    if wants:
        click.echo()
        lines = [[row["package"], row["version"], row["interfaces"], _required(row)] for row in wants]
        table(("package", "version", "wants", "of chalie"), lines)
    if not problems:
        click.echo("\nnothing to repair")
    return exits.NOTHING if problems else exits.OK


def _required(row: dict[str, Any]) -> str:
    return f"{row['chalie'] or 'any version'}{'' if row['met'] else ' (not this one)'}"


#: how many examples a tool should have: fewer are missed by meaning, more drown its name and summary.
_FEWEST, _MOST = 6, 8
_SHOWN = ("entry_point", "phase", "reason", "fix")


def notes(host: Host) -> list[dict[str, Any]]:
    """Return what a person may want to know: packages off, gone or being read, and pins without a tool."""
    from .list import package_rows

    found: list[dict[str, Any]] = []
    for row in package_rows(host):
        if row["state"].startswith("disabled"):
            found.append(_note(row["package"], "disabled: it is not read", f"chalie enable {row['package']}"))
        elif row["state"].startswith("installed, not enabled"):
            fix = f"chalie enable {row['package']}"
            found.append(_note(row["package"], _why_not_enabled(host, row["package"]), fix))
    found += [
        _note(problem.dist, problem.reason, problem.fix)
        for problem in host.problems()
        if problem.phase == "pin"
    ]
    for dist in host.upkeep.pending:
        found.append(_note(dist, "its files are still being written or read", "chalie index"))
    found += examples_advice(host)
    installed = {row.name for row in host.snapshot.distributions() if row.state != "missing"}
    installed |= set(disabled(host))
    found += [
        _note(dist, f"known but not installed; kept until it comes back: {', '.join(kept)}", fix)
        for dist, kept in known(host).items()
        if dist not in installed
        for fix in [f"chalie {f'mcp add {dist[4:]} …' if is_server(dist) else f'install {dist}'}"]
    ]
    return found


def examples_advice(host: Host) -> list[dict[str, Any]]:
    """Return a line for each tool with fewer than six or more than eight examples."""
    return [
        _note(item.dist, reason, f"its author should give six to eight: examples() of {item.target}")
        for _, item in host.snapshot.abilities()
        if not item.bare  # servers give none
        if (reason := _examples(item.name, len(item.examples)))
    ]


def _examples(name: str, count: int) -> str:
    has = f"{name} has {count} example{'s' if count != 1 else ''}"
    if count < _FEWEST:
        return f"{has}, so search by meaning will often miss it"
    return f"{has}, so its name and summary count for little in search by meaning" if count > _MOST else ""


def known(host: Host) -> dict[str, list[str]]:
    """Return package -> what is kept of it, for each that a person has decided on or has yet to."""
    ledger, environment = host.ledger, environment_key()
    waiting = (hold for hold in host.holds.list() if hold.environment == environment)
    kinds = {
        "settings": (row.package for row in ledger.permissions.list()),
        "enabled files": (row.dist for row in ledger.enabled.list()),
        "pins of what was allowed": (row.pin.dist for row in ledger.pins.list()),
        "calls that wait for a person": (hold.dist for hold in waiting),
    }
    kept: dict[str, list[str]] = {}
    for kind, dists in kinds.items():
        for dist in sorted(set(dists) - {OWN_DIST}):
            kept.setdefault(dist, []).append(kind)
    return dict(sorted(kept.items()))


def lapsed(host: Host, dist: str) -> bool:
    """Whether a package was enabled, but with other files than it has now."""
    return any(row.dist == dist for row in host.ledger.enabled.list())


def _why_not_enabled(host: Host, dist: str) -> str:
    if lapsed(host, dist):
        return "its files changed since it was enabled, so enabling lapsed"
    return "installed, not enabled: its policies and plugins are not loaded"


def _note(package: str, reason: str, fix: str) -> dict[str, Any]:
    return {"package": package, "reason": reason, "fix": fix}
