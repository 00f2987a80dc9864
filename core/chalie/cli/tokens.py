"""`chalie tokens`: what lets a client in at the HTTP door of `chalie mcp serve`."""

from __future__ import annotations

import getpass

import click

from ..channels import channel_named
from . import exits
from .completion import channels, permissions
from .opening import opened
from .output import as_json, emit, note, table
from .proof import proven

__all__ = ["command"]


@click.group("tokens", invoke_without_command=True)
@as_json
@click.pass_context
def command(context: click.Context, json_: bool) -> None:
    """List, add and revoke the tokens of `chalie mcp serve --http`.

    Whoever holds one may call tools there: on the token's channel, as its principal, within its permissions
    and as the gate decides. It approves nothing; that takes an approver token, which is another thing.
    """
    if context.invoked_subcommand is None:
        context.invoke(list_, json_=json_)


@command.command("list")
@as_json
@click.pass_context
def list_(context: click.Context, json_: bool = False) -> int:
    """List the tokens and what each is for; the tokens themselves are not kept and cannot be shown."""
    with opened(context, settle=False) as host:
        rows = [
            {
                "label": row.label,
                "channel": row.channel,
                "principal": row.principal,
                "permissions": row.permissions,
                "by": row.by,
                "at": row.at,
            }
            for row in host.ledger.tokens.list()
        ]
    if json_:
        emit(rows)
    elif rows:
        shown = [{**row, "permissions": row["permissions"] or "any"} for row in rows]
        heads = ("label", "channel", "principal", "permissions", "added by", "at")
        table(heads, [list(row.values()) for row in shown])
    else:
        note("there are no tokens; at a terminal: chalie tokens add LABEL")
    return exits.OK


@command.command("add")
@click.argument("label")
@click.option(
    "--channel",
    default="external_agent",
    show_default=True,
    help="Where its calls happen.",
    shell_complete=channels,
)
@click.option("--principal", help="On whose behalf. Default: the account.")
@click.option(
    "--permission",
    "permissions_",
    multiple=True,
    help="The only permission it may ask for; may be given again. Default: any, as the gate decides.",
    shell_complete=permissions,
)
@click.pass_context
def add(
    context: click.Context, label: str, channel: str, principal: str | None, permissions_: tuple[str, ...]
) -> int:
    """Make a token under LABEL and print it, this once."""
    with opened(context, settle=False) as host:
        where = channel_named(host.channels, channel)
        if where.delegate:
            raise click.UsageError(f"{channel} is a delegate channel, which only another turn can open")
        by = proven(host)
        try:
            token = host.ledger.tokens.add(
                label,
                channel=channel,
                principal=principal or getpass.getuser(),
                permissions=permissions_ or None,
                by=by,
            )
        except ValueError as error:
            raise click.UsageError(str(error)) from error
    click.echo(token)
    note("give it to that one client; it cannot be shown again")
    return exits.OK


@command.command("revoke")
@click.argument("label")
@click.pass_context
def revoke(context: click.Context, label: str) -> int:
    """Take back the token under LABEL, at once. Exit code 1 if there is none."""
    with opened(context, settle=False) as host:
        found = host.ledger.tokens.revoke(label, by=proven(host))
    if not found:
        note(f"there is no token {label!r}")
        return exits.NOTHING
    click.echo(f"{label}: its token is no longer good")
    return exits.OK
