"""`chalie show`: everything about one tool, or about a package and what it brings."""

from __future__ import annotations

import getpass
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from ..calls import Call, SideEffect
from . import lookup
from .completion import tools_and_packages
from .opening import opened
from .output import as_json, aside, emit, pairs

if TYPE_CHECKING:
    from ..catalogue.descriptor import Descriptor
    from ..host import Host

__all__ = ["command", "facts", "package_facts", "settings"]

#: what a schema may say of a value besides its type -> how it is printed.
_BOUNDS = {
    "enum": "one of",
    "const": "only",
    "minimum": "from",
    "exclusiveMinimum": "above",
    "maximum": "to",
    "exclusiveMaximum": "below",
    "minLength": "characters from",
    "maxLength": "characters to",
    "minItems": "items from",
    "maxItems": "items to",
    "pattern": "like",
    "default": "default",
}


@click.command("show")
@click.argument("name", shell_complete=tools_and_packages)
@as_json
@click.pass_context
def command(context: click.Context, name: str, json_: bool) -> int:
    """Show everything about the tool or package NAME: what it does, takes and may do.

    With --json a tool, or a package with its tools, is one object; tools of several packages that share the
    name are a list of them.
    """
    with opened(context) as host, aside():
        found = lookup.tools(host, name)
        rows = [facts(host, item) for item in found]
        package = None if rows else package_facts(host, name)
        if not rows and package is None:
            raise lookup.absent_tool(host, name, what="tool or package")
    if json_:
        emit(package or (rows[0] if len(rows) == 1 else rows))
        return 0
    if package is not None:
        _print_package(package)
        rows = package["tools"]
    for at, row in enumerate(rows):
        if at or package is not None:
            click.echo()
        _print(row)
    return 0


def package_facts(host: Host, name: str) -> dict[str, Any] | None:
    """Return what a package brings: its tools with all their facts, and the names of its playbooks."""
    from .list import package_rows

    row = lookup.known_package(host, name)
    if row is None:
        return None
    of_list = next((each for each in package_rows(host) if each["package"] == row.name), None)
    if of_list is None or str(of_list["state"]).startswith("disabled"):
        return None
    return {
        **of_list,
        "editable": row.editable,
        "path": row.path,
        "tools": [facts(host, item) for item in host.snapshot.of(row.name)] if of_list["usable"] else [],
        "playbooks": [book.name for book in host.snapshot.playbooks_of(row.name)],
        "problems": [
            {"reason": problem.reason, "fix": problem.fix}
            for problem in host.problems()
            if problem.dist == row.name
        ],
    }


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
                "effect": host.approvals.effect(item, effect).value,
                "settings": settings(host, item, permission, host.approvals.effect(item, effect)),
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


def _print_package(row: Mapping[str, Any]) -> None:
    version = f"{row['version']}{', editable' if row['editable'] else ''}"
    pairs(
        [
            ("package", f"{row['package']} {version}".strip()),
            ("state", row["state"]),
            ("brings", row["brings"]),
            ("playbooks", row["playbooks"]),
            ("path", row["path"]),
        ]
    )
    for problem in row["problems"]:
        pairs([("problem", problem["reason"]), ("fix", problem["fix"])])


def _print(row: Mapping[str, Any]) -> None:
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
    pairs(
        (
            f"  {permission['permission']}",
            f"{permission['effect']}  "
            f"({', '.join(f'{channel}: {setting}' for channel, setting in permission['settings'].items())})",
        )
        for permission in row["permissions"]
    )
    click.echo(click.style("parameters", bold=True))
    required = row["parameters"].get("required", ())
    properties = row["parameters"].get("properties", {})
    pairs((f"  {name}", _parameter(schema, name in required)) for name, schema in properties.items())
    if not properties:
        click.echo("  none")
    click.echo(click.style("examples", bold=True))
    pairs([(" ", example) for example in row["examples"]])


def _parameter(schema: Any, required: bool) -> str:
    """Return what a parameter takes in one line: type, bounds, default and description."""
    if not isinstance(schema, Mapping):
        return "any"
    kinds = schema.get("type", "any")
    words = [" or ".join(kinds) if isinstance(kinds, list) else str(kinds)]
    if isinstance(items := schema.get("items"), Mapping) and isinstance(items.get("type"), str):
        words[0] = f"{words[0]} of {items['type']}"
    if required:
        words.append("required")
    for key, said in _BOUNDS.items():
        if key in schema:
            value = schema[key]
            many = value if isinstance(value, list) and key == "enum" else [value]
            shown = " | ".join(json.dumps(each, ensure_ascii=False) for each in many)
            words.append(f"{said} {shown}")
    return f"{', '.join(words)}  {schema.get('description', '')}".rstrip()
