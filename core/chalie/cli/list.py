"""`chalie list`: the installed tools, and the packages that bring anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..config import environment_key
from .opening import opened
from .output import as_json, emit, note, table

if TYPE_CHECKING:
    from ..catalogue.descriptor import Descriptor
    from ..host import Host

__all__ = ["command"]


@click.command("list")
@click.argument("package", required=False)
@as_json
@click.pass_context
def command(context: click.Context, package: str | None, json_: bool) -> int:
    """List the installed tools and packages, or those of one PACKAGE."""
    with opened(context) as host:
        found = host.snapshot.of(package) if package else [item for _, item in host.snapshot.abilities()]
        tools = [tool(host, item) for item in found]
        packages = [row for row in package_rows(host) if package in (None, row["package"])]
        problems = sum(problem.phase != "pin" for problem in host.problems())
    if json_:
        emit({"tools": tools, "packages": packages, "problems": problems})
        return 0
    if tools:
        columns = ("name", "package", "version", "effect", "summary")
        table(columns, [[row[column] for column in columns] for row in tools])
    others = [row for row in packages if row["state"] != "ready" or row["brings"] != ["abilities"]]
    if others:
        click.echo()
        table(
            ("package", "version", "brings", "state"),
            [[row["package"], row["version"], row["brings"], row["state"]] for row in others],
        )
    if not tools and not others:
        note("no tools are installed; `chalie install NAME` adds some")
    if problems:
        note(f"{problems} problem{'s' if problems > 1 else ''}; `chalie doctor` names them")
    return 0


def tool(host: Host, item: Descriptor) -> dict[str, Any]:
    """Return one tool's row."""
    effects = [effect for _, effect in item.permissions()]
    return {
        "name": host.snapshot.exposed(item),
        "package": item.dist,
        "version": item.dist_version,
        "effect": max(effects, key=lambda effect: effect.severity).value,
        "summary": item.summary,
        "discoverable": item.discoverable,
    }


def package_rows(host: Host) -> list[dict[str, Any]]:
    """Return one row per installed distribution that brings something, with its state."""
    brings: dict[str, set[str]] = {}
    for group in ("abilities", "policies", "plugins", "skills", "models"):
        for entry in host.snapshot.entry_points(f"chalie.{group}"):
            brings.setdefault(entry.dist, set()).add(group)
    enabled = {found.dist for found in host.ledger.enabled.list(environment_key())}
    rows = []
    for found in host.snapshot.distributions():
        kinds = sorted(brings.get(found.name, ()))
        if not kinds or found.state == "missing":
            continue
        state: str = found.state
        if host.config.package(found.name).disabled:
            state = "disabled"
        elif {"policies", "plugins"} & set(kinds) and found.name not in enabled:
            state = f"installed, not enabled: chalie enable {found.name}"
        rows.append({"package": found.name, "version": found.version, "brings": kinds, "state": state})
    return rows
