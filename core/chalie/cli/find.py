"""`chalie find`: the search a model gets, with the rung and distance of each hit on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import click

from . import exits, lookup
from .completion import channels
from .opening import opened
from .output import as_json, aside, emit, note, table

if TYPE_CHECKING:
    from ..discovery.found import Found, Hit
    from ..host import Host

__all__ = ["NEXT_STEPS", "command"]

#: how many of the nearest are shown for an entry that nothing is near enough to.
_NEAREST: Final = 3

#: reason of a miss -> what it means and what a person does next.
NEXT_STEPS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "no-match": "nothing is near enough; say it in other words, or see `chalie list`",
        "ambiguous": "several packages own that name; ask for one of",
        "unsupported-language": "no name matches and the model does not know these words; "
        "[discovery] model in config.toml can name another model",
        "unavailable": "its package, or the embedding model, cannot be used now; `chalie doctor` tells why",
        "hidden": "what answers it is denied on this channel; see `chalie permissions list`",
        "index-unreadable": "not everything could be searched; `chalie doctor` tells why",
    }
)


@click.command("find")
@click.argument("entries", nargs=-1, required=True, metavar="ENTRY...")
@click.option("--skills", is_flag=True, help="Search the playbooks instead of the tools.")
@click.option(
    "--explain",
    is_flag=True,
    help="One row per entry and hit, with rung and distance, and how a misspelt entry was read; for a miss "
    "what came nearest.",
)
@click.option(
    "--channel",
    default="chat",
    show_default=True,
    help="Search as seen from this channel.",
    shell_complete=channels,
)
@click.option("--principal", help="Search on behalf of this principal.")
@click.option("--live", is_flag=True, help="Reach every MCP server first, and read its tools again.")
@as_json
@click.pass_context
def command(
    context: click.Context,
    entries: tuple[str, ...],
    skills: bool,
    explain: bool,
    channel: str,
    principal: str | None,
    live: bool,
    json_: bool,
) -> int:
    """Find tools: one name, or one described action, per ENTRY.

    With --json the very body of find_tools (or find_skills) is printed. Exit code 0 if anything was found,
    else 1.
    """
    from ..meta import find_skills, find_tools

    with opened(context) as host:
        channel = lookup.channel(host, channel, policy=True)
        with aside():
            if live:
                from .mcp_servers import ask_servers

                ask_servers(host)
            found = host.find(entries, "playbook" if skills else "ability", channel, principal)
            exposed = host.snapshot.exposed
            body = find_skills.body(found) if skills else find_tools.body(found, exposed, host.servers.reach)
            rows = body["skills" if skills else "injected"]
            switched_off = {entry: lookup.disabled_owner(host, entry) for entry in entries}
            if explain:
                rows[:] = _explained(host, found, rows, entries, channel, principal, skills=skills)
                _explain_misses(host, body["not_found"], skills=skills)
    if json_:
        emit(body)
    else:
        _print(rows, explain=explain, skills=skills)
        _say_misses(body["not_found"], found)
        for entry, dist in switched_off.items():
            if dist is not None and not skills:
                note(f"{entry} belongs to {dist}, which is disabled: chalie enable {dist}")
    return exits.OK if rows else exits.NOTHING


def _explained(
    host: Host,
    found: Found,
    rows: Sequence[dict[str, Any]],
    entries: Sequence[str],
    channel: str,
    principal: str | None,
    *,
    skills: bool,
) -> list[dict[str, Any]]:
    """Return one row per entry and hit; the union that a model gets names each item once."""
    by_key = dict(zip(dict.fromkeys(hit.item.key for hit in found.hits), rows, strict=True))
    kind: Any = "playbook" if skills else "ability"
    explained = []
    for entry in dict.fromkeys(entries):
        for hit in host.find([entry], kind, channel, principal).hits:
            if hit.item.key in by_key:
                explained.append(by_key[hit.item.key] | _how(hit))
    return explained


def _how(hit: Hit) -> dict[str, Any]:
    distance = None if hit.distance is None else round(hit.distance, 4)
    found = {"entry": hit.entry, "rung": hit.rung, "distance": distance, "package": hit.item.dist}
    more = {"ceiling": hit.ceiling, "read_as": hit.read_as}
    return found | {key: value for key, value in more.items() if value is not None}


def _explain_misses(host: Host, missing: Sequence[dict[str, Any]], *, skills: bool) -> None:
    """Add to each entry that nothing was near enough to what came nearest, and what would have been."""
    wanted = [row for row in missing if row["reason"] == "no-match"]
    if not wanted:
        return
    from ..calls import Sight
    from ..discovery.cascade import Cascade
    from ..discovery.embedding import Embedder, model_folder
    from ..errors import ChalieError

    options = host.config.discovery
    try:
        points = host.snapshot.entry_points("chalie.models")
        embedder = Embedder.open(model_folder(options.model, points))
    except ChalieError:
        return  # the search itself has said so
    ceiling = options.ceiling
    without = Cascade(host.generation, lambda: embedder, nearest=_NEAREST, ceiling=ceiling, refuse=False)
    for row in wanted:
        hits = without.find([row["entry"]], "playbook" if skills else "ability", lambda _: Sight()).hits
        row["nearest"] = [
            {"name": hit.item.name, "distance": hit.distance, "ceiling": hit.ceiling}
            for hit in hits
            if hit.distance is not None
        ]
        if hits and hits[0].read_as is not None:
            row["read_as"] = hits[0].read_as


def _print(rows: Sequence[dict[str, Any]], *, explain: bool, skills: bool) -> None:
    columns = ["name", "description" if skills else "summary"]
    columns += [key for key in ("not_allowed", "availability", "reason") if any(key in row for row in rows)]
    if explain:
        columns = ["entry", *columns, "rung", "distance", "ceiling", "package"]
    if rows:
        table(columns, [[row.get(column) for column in columns] for row in rows])
    for entry, read_as in dict.fromkeys((row["entry"], row["read_as"]) for row in rows if "read_as" in row):
        note(f"read as: {read_as} ({entry})")


def _say_misses(missing: Sequence[dict[str, Any]], found: Found) -> None:
    for rung, cause in zip(found.degraded, found.causes, strict=True):
        note(f"searched without the rung {rung}: {cause}")
    for row in missing:
        owners = f" {', '.join(row['owners'])}" if row.get("owners") else ""
        note(f"not found: {row['entry']} ({row['reason']}: {NEXT_STEPS[row['reason']]}{owners})")
        if row.get("read_as"):
            note(f"  read as: {row['read_as']}")
        if row.get("nearest"):
            near = ", ".join(
                f"{each['name']} at {each['distance']:.2f}, where {each['ceiling']:.2f} would do"
                for each in row["nearest"]
            )
            note(f"  nearest: {near}")
