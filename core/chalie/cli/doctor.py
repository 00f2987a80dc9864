"""`chalie doctor`: everything that is wrong, each with the line that repairs it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..config import environment_key
from . import exits
from .lookup import disabled
from .opening import opened
from .output import as_json, emit, pairs

if TYPE_CHECKING:
    from ..host import Host

__all__ = ["command", "few_examples", "lapsed", "notes"]


@click.command("doctor")
@as_json
@click.pass_context
def command(context: click.Context, json_: bool) -> int:
    """Name every package that was set aside and everything else to repair, each with the line that does it.

    Exit code 1 if there is anything to repair. What is merely worth knowing is listed apart and is no
    failure.
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
        worth_knowing = notes(host)
        where = {
            "home": str(host.config.home),
            "config": str(host.config.home / "config.toml"),
            "environment": environment_key(),
            "generation": host.generation.id,
        }
    if json_:
        emit({**where, "problems": problems, "notes": worth_knowing})
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
    if not problems:
        click.echo("\nnothing to repair")
    return exits.NOTHING if problems else exits.OK


#: examples below which a tool is hardly found by meaning.
_FEW = 3
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
    found += few_examples(host)
    installed = {row.name for row in host.snapshot.distributions() if row.state != "missing"}
    installed |= set(disabled(host))
    found += [
        _note(dist, "known but not installed: it has settings that count again when it comes back", fix)
        for dist in known(host)
        if dist not in installed
        for fix in [f"chalie install {dist}"]
    ]
    return found


def few_examples(host: Host) -> list[dict[str, Any]]:
    """Return a line for each tool with fewer than three examples: it is hardly found by what people say."""
    return [
        _note(
            item.dist,
            f"{item.name} has {len(item.examples)} example{'s' if len(item.examples) > 1 else ''}, so search "
            "by meaning will often miss it",
            f"its author should give six to eight: examples() of {item.target}",
        )
        for _, item in host.snapshot.abilities()
        if len(item.examples) < _FEW
    ]


def known(host: Host) -> list[str]:
    """Return every package that a person has set or enabled something for, installed or not."""
    settled = {row.package for row in host.ledger.permissions.list()}
    enabled = {row.dist for row in host.ledger.enabled.list(environment_key())}
    return sorted((settled | enabled) - {"chalie"})


def lapsed(host: Host, dist: str) -> bool:
    """Whether a package was enabled here, but with other files than it has now."""
    return any(row.dist == dist for row in host.ledger.enabled.list(environment_key()))


def _why_not_enabled(host: Host, dist: str) -> str:
    if lapsed(host, dist):
        return "its files changed since it was enabled, so enabling lapsed"
    return "installed, not enabled: its policies and plugins are not loaded"


def _note(package: str, reason: str, fix: str) -> dict[str, Any]:
    return {"package": package, "reason": reason, "fix": fix}
