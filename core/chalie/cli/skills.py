"""`chalie skills`: the installed playbooks."""

from __future__ import annotations

import click

from ..errors import ChalieError
from .completion import playbooks
from .lookup import nearest
from .opening import opened
from .output import as_json, emit, note, table

__all__ = ["command"]


@click.command("skills")
@click.argument("name", required=False, shell_complete=playbooks)
@as_json
@click.pass_context
def command(context: click.Context, name: str | None, json_: bool) -> int:
    """List the installed playbooks, or print the one called NAME."""
    with opened(context) as host:
        if name is None:
            found = [item for _, item in host.snapshot.playbooks()]
        else:
            found = list(host.snapshot.playbooks_named(name))
            if not found:
                near = nearest(name, [item.name for _, item in host.snapshot.playbooks()])
                raise ChalieError(
                    f"no playbook named {name!r} is installed",
                    code="unknown-playbook",
                    hint=f"did you mean {near!r}?" if near else "list them: chalie skills",
                )
    if json_:
        full = [
            {
                "name": item.name,
                "package": item.dist,
                "description": item.description,
                "allowed_tools": None if item.allowed_tools is None else list(item.allowed_tools),
                "path": item.path,
            }
            | ({"playbook": item.body} if name is not None else {})
            for item in found
        ]
        emit(full)
    elif name is not None:
        for item in found:
            click.echo(f"{item.name} ({item.dist})\n{item.description}\n\n{item.body}")
    elif found:
        table(
            ("name", "package", "description"), [[item.name, item.dist, item.description] for item in found]
        )
    else:
        note("no playbooks are installed; the package chalie-skills brings a dozen")
    return 0
