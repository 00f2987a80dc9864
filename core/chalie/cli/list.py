"""`chalie list`: the installed tools, and the packages that bring anything else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ..config import normal_dist
from ..names import is_server
from . import lookup
from .completion import packages
from .opening import opened
from .output import as_json, emit, note, table

if TYPE_CHECKING:
    from ..catalogue.descriptor import Descriptor
    from ..host import Host

__all__ = ["command", "package_rows", "tool"]


@click.command("list")
@click.argument("package", required=False, shell_complete=packages)
@as_json
@click.pass_context
def command(context: click.Context, package: str | None, json_: bool) -> int:
    """List the installed tools and packages, or those of one PACKAGE. Exit code 1 if it is not there."""
    with opened(context) as host:
        rows = package_rows(host)
        if package is not None:
            package = normal_dist(package)
            rows = [row for row in rows if row["package"] == package]
            if not rows:
                raise lookup.absent_package(host, package)
        found = host.snapshot.of(package) if package else [item for _, item in host.snapshot.abilities()]
        off = {row["package"] for row in rows if not row["usable"]}
        tools = [tool(host, item) for item in found if item.dist not in off]
        problems = sum(problem.phase != "pin" for problem in host.problems())
    if json_:
        emit({"tools": tools, "packages": rows, "problems": problems})
        return 0
    if tools:
        columns = ("name", "package", "version", "effect", "summary")
        table(columns, [[row[column] for column in columns] for row in tools])
    others = [row for row in rows if row["state"] != "ready" or row["brings"] != ["abilities"]]
    if others:
        if tools:
            click.echo()
        table(
            ("package", "version", "brings", "state"),
            [[row["package"], row["version"], row["brings"], row["state"]] for row in others],
        )
    if not tools and not package and not any("abilities" in row["brings"] for row in rows):
        note("no tools are installed; `chalie install NAME` adds some")
    if problems:
        note(f"{problems} problem{'s' if problems > 1 else ''}; `chalie doctor` names them")
    return 0


def tool(host: Host, item: Descriptor) -> dict[str, Any]:
    """Return one tool's row."""
    effects = [host.approvals.effect(item, effect) for _, effect in item.permissions()]
    return {
        "name": host.snapshot.exposed(item),
        "package": item.dist,
        "version": item.dist_version,
        "effect": max(effects, key=lambda effect: effect.severity).value,
        "summary": item.summary,
        "discoverable": item.discoverable,
    }


def package_rows(host: Host) -> list[dict[str, Any]]:
    """Return one row per installed distribution that brings something or is disabled, with its state.

    `state` is `ready`, or says what is the matter and, where a command changes it, that command; `usable`
    tells whether its tools can be called.
    """
    brings: dict[str, set[str]] = {}
    for group in ("abilities", "policies", "plugins", "skills", "models"):
        for entry in host.snapshot.entry_points(f"chalie.{group}"):
            brings.setdefault(entry.dist, set()).add(group)
    off = lookup.disabled(host)
    rows = [_row(dist, version, (), f"disabled: chalie enable {dist}") for dist, version in off.items()]
    for found in host.snapshot.distributions():
        if found.state == "missing" or found.name in off:
            continue
        kinds = ["abilities"] if is_server(found.name) else sorted(brings.get(found.name, ()))
        state: str = found.state
        if found.state == "quarantined":
            state = "quarantined: chalie doctor"
        elif {"policies", "plugins"} & set(kinds) and not host.ledger.enabled.is_enabled(
            found.name, found.files_hash
        ):
            state = f"installed, not enabled: chalie enable {found.name}"
        rows.append(_row(found.name, found.version, kinds, state, usable=found.state == "ready"))
    return sorted(rows, key=lambda row: str(row["package"]))


def _row(
    package: str, version: str, brings: Sequence[str], state: str, *, usable: bool = False
) -> dict[str, Any]:
    return {
        "package": package,
        "version": version,
        "brings": list(brings),
        "state": state,
        "usable": usable,
    }
