"""`chalie find`: the search a model gets, with the rung and distance of each hit on request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from . import exits
from .opening import opened
from .output import as_json, emit, note, table

if TYPE_CHECKING:
    from ..discovery.found import Found

__all__ = ["command"]


@click.command("find")
@click.argument("entries", nargs=-1, required=True, metavar="ENTRY...")
@click.option("--skills", is_flag=True, help="Search the playbooks instead of the tools.")
@click.option("--explain", is_flag=True, help="Add the rung that found each hit, and its distance.")
@click.option("--channel", default="chat", show_default=True, help="Search as seen from this channel.")
@click.option("--principal", help="Search on behalf of this principal.")
@as_json
@click.pass_context
def command(
    context: click.Context,
    entries: tuple[str, ...],
    skills: bool,
    explain: bool,
    channel: str,
    principal: str | None,
    json_: bool,
) -> int:
    """Find tools: one name, or one described action, per ENTRY.

    With --json the very body of find_tools (or find_skills) is printed. Exit code 0 if anything was found,
    else 1.
    """
    from ..meta import find_skills, find_tools

    with opened(context) as host:
        found = host.find(entries, "playbook" if skills else "ability", channel, principal)
        body = find_skills.body(found) if skills else find_tools.body(found, host.snapshot.exposed)
    rows = body["skills" if skills else "injected"]
    if explain:
        _explain(found, rows)
    if json_:
        emit(body)
    else:
        _print(rows, body["not_found"], explain=explain, skills=skills)
        for rung in found.degraded:
            note(f"searched without {rung}")
    return exits.OK if rows else exits.NOTHING


def _explain(found: Found, rows: list[dict[str, Any]]) -> None:
    """Add to each row how it was found; the rows are the hits in order, each item once."""
    firsts = {hit.item.key: hit for hit in reversed(found.hits)}
    ordered = dict.fromkeys(hit.item.key for hit in found.hits)
    for key, row in zip(ordered, rows, strict=True):
        hit = firsts[key]
        distance = None if hit.distance is None else round(hit.distance, 4)
        row |= {"entry": hit.entry, "rung": hit.rung, "distance": distance, "package": hit.item.dist}


def _print(rows: list[dict[str, Any]], missing: list[dict[str, Any]], *, explain: bool, skills: bool) -> None:
    columns = ["name", "description" if skills else "summary"]
    if any("not_allowed" in row for row in rows):
        columns.append("not_allowed")
    if explain:
        columns += ["rung", "distance", "entry", "package"]
    if rows:
        table(columns, [[row.get(column) for column in columns] for row in rows])
    for row in missing:
        owners = f": {', '.join(row['owners'])}" if row.get("owners") else ""
        note(f"not found: {row['entry']} ({row['reason']}{owners})")
