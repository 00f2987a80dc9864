"""`chalie permissions`: the rows a person sets, the first thing the gate looks at."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from ..errors import ChalieError
from ..gate.display import escaped
from . import exits
from .opening import opened
from .output import as_json, emit, note, table
from .proof import proven

if TYPE_CHECKING:
    from ..host import Host
    from ..ledger.permissions import PermissionRow

__all__ = ["command"]


@click.group("permissions", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """List, set and remove what tools may do.

    A row says allow, ask or deny for one channel, package and permission (`email`, or `email.send`). Where
    there is no row the gate asks, and on a channel without a person it refuses. Of several rows the most
    specific counts, but a deny that covers the call goes before everything.
    """
    if context.invoked_subcommand is None:
        context.invoke(list_)


@command.command("list")
@click.option("--channel", help="Only rows of this channel.")
@click.option("--package", help="Only rows of this package.")
@as_json
@click.pass_context
def list_(
    context: click.Context, channel: str | None = None, package: str | None = None, json_: bool = False
) -> int:
    """List the rows in force, and what was asked for without one."""
    with opened(context, settle=False) as host:
        rows = [
            (row, host.snapshot.state(row.package) not in (None, "missing"))
            for row in host.ledger.permissions.list(asked=True)
            if channel in (None, row.channel) and package in (None, row.package)
        ]
    if json_:
        emit([_facts(row, installed) for row, installed in rows])
    elif rows:
        columns = ("channel", "package", "permission", "setting", "until", "by", "installed")
        facts = [_facts(row, installed) for row, installed in rows]
        table(columns, [[fact[column] for column in columns] for fact in facts])
    else:
        note("no permission has been set or asked for yet")
    return exits.OK


def _facts(row: PermissionRow, installed: bool) -> dict[str, object]:
    return {
        "channel": row.channel,
        "package": row.package,
        "permission": row.permission,
        "setting": row.setting.value,
        "until": row.until.isoformat() if row.until else None,
        "by": row.by or "nobody yet",
        "installed": installed,
    }


@command.command("set")
@click.argument("channel")
@click.argument("permission")
@click.argument("setting", type=click.Choice(["allow", "ask", "deny"]))
@click.option("--package", help="The package that owns the tool; needed where several do.")
@click.option("--for", "minutes", type=click.IntRange(min=1), metavar="MINUTES", help="Only for so long.")
@click.pass_context
def set_(
    context: click.Context,
    channel: str,
    permission: str,
    setting: str,
    package: str | None,
    minutes: int | None,
) -> int:
    """Set PERMISSION on CHANNEL to allow, ask or deny.

    PERMISSION is a tool's name, which covers all its actions, or name.action; of a server's tools also a
    pattern with a star at its end ('_mcp_files_*'), which needs --package. What is allowed is pinned as it is
    now: where the tool or its package changes, it is asked about again. Needs the home's owner at a terminal
    or an approver token.
    """
    with opened(context, settle=False) as host:
        by = proven(host)
        owner = package or owner_of(host, permission)
        until = datetime.now(UTC) + timedelta(minutes=minutes) if minutes else None
        pin = host.approvals.pin(owner, permission.partition(".")[0]) if setting == "allow" else None
        pins = () if pin is None else (pin,)
        try:
            host.ledger.permissions.set(
                _policy(host, channel), owner, permission, setting, by=by, until=until, pins=pins
            )
        except ValueError as error:
            raise click.UsageError(str(error)) from error
    click.echo(
        f"{channel}: {owner}:{permission} is now {setting}" + (f" for {minutes} min" if minutes else "")
    )
    return exits.OK


@command.command("remove")
@click.argument("channel")
@click.argument("permission")
@click.option("--package", help="The package that owns the tool; needed where several do.")
@click.pass_context
def remove(context: click.Context, channel: str, permission: str, package: str | None) -> int:
    """Remove the row of PERMISSION on CHANNEL; the gate asks again. Exit code 1 if there was none."""
    with opened(context, settle=False) as host:
        by = proven(host)
        channel = _policy(host, channel)
        owners = [package] if package else _owners_with_a_row(host, channel, permission)
        if len(owners) > 1:
            raise click.UsageError(f"several packages have that row; add --package: {', '.join(owners)}")
        found = bool(owners) and host.ledger.permissions.remove(channel, owners[0], permission, by=by)
    if not found:
        note(f"there is no row for {permission} on {channel}")
        return exits.NOTHING
    click.echo(f"{channel}: {owners[0]}:{permission} is removed")
    return exits.OK


@command.command("lint")
@as_json
@click.pass_context
def lint(context: click.Context, json_: bool) -> int:
    """Name the rows that do not do what they seem to. Exit code 1 if there are any.

    Said are a row that can match no call, a tool whose name is another package's now, a row that a deny makes
    void, and an allow that was given to something else than what is installed now.
    """
    from ..gate.lint import findings

    with opened(context) as host:
        found = findings(
            host.ledger.permissions.list(), host.snapshot, host.ledger.pins.of, host.approvals.pin
        )
    if json_:
        emit([{**_facts(each.row, True), "reason": each.reason, "fix": each.fix} for each in found])
    for each in () if json_ else found:
        row = each.row
        click.echo(
            escaped(f"{row.channel} {row.package}:{row.permission} {row.setting.value}: {each.reason}")
        )
        click.echo(escaped(f"  {each.fix}"))
    if not found and not json_:
        note("every row does what it says")
    return exits.NOTHING if found else exits.OK


def owner_of(host: Host, permission: str) -> str:
    """Return the one package that owns the tool a permission names.

    Raises:
        ChalieError: none does, or several do; naming the option that says which.
    """
    name = permission.partition(".")[0]
    owners = sorted({found.dist for found in host.snapshot.owners(name)})
    if len(owners) == 1:
        return owners[0]
    if not owners:
        raise ChalieError(
            f"no installed package has a tool named {name!r}",
            code="unknown-tool",
            hint="name the package to set it all the same: --package NAME",
        )
    raise ChalieError(
        f"several packages have a tool named {name!r}: {', '.join(owners)}",
        code="ambiguous-name",
        hint="say which: --package NAME",
    )


def _owners_with_a_row(host: Host, channel: str, permission: str) -> list[str]:
    rows = host.ledger.permissions.list()
    return sorted(row.package for row in rows if (row.channel, row.permission) == (channel, permission))


def _policy(host: Host, channel: str) -> str:
    """Return the policy channel whose rows apply on a channel; a delegate has none of its own."""
    from ..channels import channel_named

    found = channel_named(host.channels, channel)
    if found.delegate:
        raise ChalieError(
            f"{channel} takes the permissions of the turn that opens it",
            code="bad-config",
            hint="set it on a policy channel: chat, subconscious or external_agent",
        )
    return found.policy
