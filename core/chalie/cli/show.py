"""`chalie show`: everything about one tool, or about a package and its tools."""

from __future__ import annotations

import getpass
import json
from typing import TYPE_CHECKING, Any

import click

from ..calls import Call, SideEffect
from ..errors import ChalieError
from .opening import opened
from .output import as_json, emit, pairs

if TYPE_CHECKING:
    from ..catalogue.descriptor import Descriptor
    from ..host import Host

__all__ = ["command"]


@click.command("show")
@click.argument("name")
@as_json
@click.pass_context
def command(context: click.Context, name: str, json_: bool) -> int:
    """Show everything about the tool or package NAME: what it does, takes and may do."""
    with opened(context) as host:
        found = host.snapshot.named(name) or host.snapshot.of(name)
        if not found:
            raise ChalieError(
                f"no tool or package named {name!r} is installed",
                code="unknown-tool",
                hint=f"search for one: chalie find {json.dumps(name, ensure_ascii=False)}",
            )
        rows = [facts(host, item) for item in found]
    if json_:
        emit(rows)
        return 0
    for at, row in enumerate(rows):
        if at:
            click.echo()
        _print(row)
    return 0


def facts(host: Host, item: Descriptor) -> dict[str, Any]:
    """Return every fact of a tool, and what the gate would say of it on each policy channel."""
    return {
        "name": host.snapshot.exposed(item),
        "package": item.dist,
        "version": item.dist_version,
        "summary": item.summary,
        "examples": list(item.examples),
        "search_tooltip": item.search_tooltip,
        "parameters": dict(item.parameters),
        "permissions": [
            {
                "permission": permission,
                "effect": effect.value,
                "settings": settings(host, item, permission, effect),
            }
            for permission, effect in item.permissions()
        ],
        "action_required": {action: list(names) for action, names in item.action_required.items()},
        "requires_approval": item.requires_approval,
        "discoverable": item.discoverable,
        "isolate": item.isolate,
        "latency": item.latency,
        "hash": item.hash,
    }


def settings(host: Host, item: Descriptor, permission: str, effect: SideEffect) -> dict[str, str]:
    """Return what the gate says to a permission of a tool on each policy channel, before any arguments."""
    from ..channels import BUILT_IN

    answers: dict[str, str] = {}
    for channel in BUILT_IN.values():
        if channel.delegate:
            continue
        call = Call(
            dist=item.dist,
            name=item.name,
            permission=permission,
            effect=effect,
            arguments=None,
            channel=channel.policy,
            principal=getpass.getuser(),
            conversation=None,
            descriptor_hash=item.hash,
            requires_approval=item.requires_approval,
        )
        answers[channel.name] = host.gate.decide(call, channel).setting.value
    return answers


def _print(row: dict[str, Any]) -> None:
    pairs(
        [
            ("name", row["name"]),
            ("package", f"{row['package']} {row['version']}"),
            ("summary", row["summary"]),
            ("latency", row["latency"]),
            ("discoverable", row["discoverable"]),
            ("isolated", row["isolate"]),
        ]
    )
    click.echo(click.style("permissions", bold=True))
    for permission in row["permissions"]:
        settings = ", ".join(f"{channel}: {setting}" for channel, setting in permission["settings"].items())
        pairs([(f"  {permission['permission']}", f"{permission['effect']}  ({settings})")])
    click.echo(click.style("parameters", bold=True))
    required = row["parameters"].get("required", ())
    for name, schema in row["parameters"].get("properties", {}).items():
        kind = schema.get("type", "any") if isinstance(schema, dict) else "any"
        mark = ", required" if name in required else ""
        said = schema.get("description", "") if isinstance(schema, dict) else ""
        pairs([(f"  {name}", f"{kind}{mark}  {said}".rstrip())])
    click.echo(click.style("examples", bold=True))
    pairs([(" ", example) for example in row["examples"]])
