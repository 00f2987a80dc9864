"""`chalie approvers`: tokens that may say yes where no terminal is."""

from __future__ import annotations

import click

from . import exits
from .opening import opened
from .output import as_json, emit, note, table
from .proof import proven

__all__ = ["command"]


@click.group("approvers", invoke_without_command=True)
@as_json
@click.pass_context
def command(context: click.Context, json_: bool) -> None:
    """List, add and remove approver tokens.

    Whoever holds a token may approve calls, set permissions and enable packages, by CHALIE_APPROVER_TOKEN in
    the environment. Never give one to an agent.
    """
    if context.invoked_subcommand is None:
        context.invoke(list_, json_=json_)


@command.command("list")
@as_json
@click.pass_context
def list_(context: click.Context, json_: bool = False) -> int:
    """List the approvers; their tokens are not kept and cannot be shown."""
    with opened(context, settle=False) as host:
        rows = [{"label": row.label, "by": row.by, "at": row.at} for row in host.ledger.approvers.list()]
    if json_:
        emit(rows)
    elif rows:
        table(("label", "added by", "at"), [list(row.values()) for row in rows])
    else:
        note("there are no approver tokens; at a terminal: chalie approvers add LABEL")
    return exits.OK


@command.command("add")
@click.argument("label")
@click.pass_context
def add(context: click.Context, label: str) -> int:
    """Make a token under LABEL and print it, this once."""
    with opened(context, settle=False) as host:
        by = proven(host)
        try:
            token = host.ledger.approvers.add(label, by=by)
        except ValueError as error:
            raise click.UsageError(str(error)) from error
    click.echo(token)
    note("keep it where no agent can read it; it cannot be shown again")
    return exits.OK


@command.command("remove")
@click.argument("label")
@click.pass_context
def remove(context: click.Context, label: str) -> int:
    """Take back the token under LABEL. Exit code 1 if there is none."""
    with opened(context, settle=False) as host:
        found = host.ledger.approvers.remove(label, by=proven(host))
    if not found:
        note(f"there is no approver {label!r}")
        return exits.NOTHING
    click.echo(f"{label}: its token is no longer good")
    return exits.OK
