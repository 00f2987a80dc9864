"""`chalie permissions`: the rows a person sets, the first thing the gate looks at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from ..config import normal_dist
from ..errors import ChalieError
from ..gate.display import escaped
from ..names import OWN_DIST, is_server
from ..pins import own_descriptors
from . import exits, lookup
from .completion import channels, packages, permissions
from .ending import end_of, ending
from .opening import opened
from .output import as_json, emit, local, note, table
from .proof import proven

if TYPE_CHECKING:
    from ..host import Host
    from ..ledger.permissions import PermissionRow

__all__ = ["command"]


@click.group("permissions", invoke_without_command=True)
@as_json
@click.pass_context
def command(context: click.Context, json_: bool) -> None:
    """List, set and remove what tools may do.

    A row says allow, ask or deny for one channel, package and permission (`email`, or `email.send`). Where
    there is no row the gate asks, and on a channel without a person it refuses. Of several rows the most
    specific counts, but a deny that covers the call goes before everything.
    """
    if context.invoked_subcommand is None:
        context.invoke(list_, json_=json_)


@command.command("list")
@click.option("--channel", help="Only rows of this channel.", shell_complete=channels)
@click.option("--package", help="Only rows of this package.", shell_complete=packages)
@as_json
@click.pass_context
def list_(
    context: click.Context, channel: str | None = None, package: str | None = None, json_: bool = False
) -> int:
    """List the rows in force, what was asked for without one, and what the host allows by itself.

    The host's own table is marked `host`; a row that a person sets goes before it.
    """
    with opened(context, settle=False) as host:
        rows = [
            _facts(row, host.snapshot.state(row.package) not in (None, "missing"))
            for row in host.ledger.permissions.list(asked=True)
        ]
        rows = [
            row
            for row in [*rows, *own_rows(host, rows)]
            if channel in (None, row["channel"]) and package in (None, row["package"])
        ]
        if not rows and channel is not None:
            lookup.channel(host, channel)
    if json_:
        emit(rows)
    else:
        columns = ("channel", "package", "permission", "setting", "until", "by", "installed")
        table(columns, [[row[column] for column in columns] for row in rows])
        if all(row["by"] == "host" for row in rows):
            note("no permission has been set or asked for yet; rows by `host` are its own table")
    return exits.OK


def own_rows(host: Host, set_by_people: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """Return the host's own table as rows: what is allowed on every policy channel where nobody said else."""
    from ..gate.gate import INTERNAL

    said = {(row["channel"], row["package"], row["permission"]) for row in set_by_people if row["by"]}
    return [
        {
            "channel": channel.name,
            "package": dist,
            "permission": name,
            "setting": "internal",
            "until": None,
            "by": "host",
            "installed": dist == OWN_DIST or host.snapshot.state(dist) == "ready",
        }
        for channel in host.channels.values()
        if channel.name == channel.policy
        for dist, name in sorted(INTERNAL)
        if (channel.name, dist, name) not in said
    ]


def _facts(row: PermissionRow, installed: bool) -> dict[str, object]:
    return {
        "channel": row.channel,
        "package": row.package,
        "permission": row.permission,
        "setting": row.setting.value,
        "until": row.until,
        "by": row.by or "nobody yet",
        "installed": installed,
    }


@command.command("set")
@click.argument("channel", shell_complete=channels)
@click.argument("permission", shell_complete=permissions)
@click.argument("setting", type=click.Choice(["allow", "ask", "deny"]))
@click.option(
    "--package", help="The package that owns the tool; needed where several do.", shell_complete=packages
)
@click.option(
    "--force", is_flag=True, help="Set it although the package as installed has no such permission."
)
@ending("Only")
@click.pass_context
def set_(
    context: click.Context,
    channel: str,
    permission: str,
    setting: str,
    package: str | None,
    force: bool,
    minutes: int | None,
    until: str | None,
) -> int:
    """Set PERMISSION on CHANNEL to allow, ask or deny.

    PERMISSION is a tool's name, which covers all its actions, or name.action; of a server's tools also a
    pattern with a star at its end ('_mcp_files_*'). What is allowed is pinned as it is now: where the tool or
    its package changes, it is asked about again. Needs the home's owner at a terminal or an approver token.
    """
    end = end_of(minutes, until)
    with opened(context, settle=False) as host:
        channel = _policy(host, channel)
        by = proven(host)
        owner = _owner(package, permission) if package else owner_of(host, permission)
        installed = known(host, owner, permission, force=force)
        names = covered(host, owner, permission) if setting == "allow" else ()
        pins = [pin for name in names if (pin := host.approvals.pin(owner, name)) is not None]
        try:
            host.ledger.permissions.set(channel, owner, permission, setting, by=by, until=end, pins=pins)
        except ValueError as error:
            raise click.UsageError(str(error)) from error
    ends = f" for {minutes} min" if minutes else "" if end is None else f" until {local(end)}"
    click.echo(f"{channel}: {owner}:{permission} is now {setting}{ends}")
    if not installed:
        note(f"nothing installed has that permission yet; the row counts when {owner} brings it")
    return exits.OK


def known(host: Host, dist: str, permission: str, *, force: bool) -> bool:
    """Whether an installed package has a permission; of one that is not installed nobody knows yet.

    Raises:
        ChalieError: it is installed and has no such tool or action; the message lists those it has.
    """
    tools = [item for item in own_descriptors().values() if item.dist == dist] or list(host.snapshot.of(dist))
    if not tools or (dist != OWN_DIST and host.snapshot.state(dist) != "ready"):
        return False
    has = sorted({item.name for item in tools} | {each for item in tools for each, _ in item.permissions()})
    if permission in has or (permission.endswith("*") and covered(host, dist, permission)):
        return True
    if force:
        return False
    near = None if permission.endswith("*") else lookup.nearest(permission, has)
    raise ChalieError(
        f"{dist} has no permission {permission}; it has {', '.join(has)}",
        code="unknown-action",
        hint=(f"did you mean {near}? " if near else "") + "To set it all the same: --force",
    )


def covered(host: Host, dist: str, permission: str) -> tuple[str, ...]:
    """Return the names of a package's tools that a permission, or a pattern of a server's, covers."""
    if permission.endswith("*"):
        return tuple(item.name for item in host.snapshot.of(dist) if item.name.startswith(permission[:-1]))
    return (permission.partition(".")[0],)


@command.command("remove")
@click.argument("channel", shell_complete=channels)
@click.argument("permission", shell_complete=permissions)
@click.option(
    "--package", help="The package that owns the tool; needed where several do.", shell_complete=packages
)
@click.pass_context
def remove(context: click.Context, channel: str, permission: str, package: str | None) -> int:
    """Remove the row of PERMISSION on CHANNEL; the gate asks again. Exit code 1 if there was none."""
    with opened(context, settle=False) as host:
        channel = _policy(host, channel)
        by = proven(host)
        owners = [_owner(package, permission)] if package else _owners_with_a_row(host, channel, permission)
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
    if name.endswith("*"):
        every = (item for _, item in host.snapshot.abilities() if is_server(item.dist))
        owners = sorted({item.dist for item in every if item.name.startswith(name[:-1])})
    if not owners and name in own_descriptors():
        return OWN_DIST
    if len(owners) == 1:
        return owners[0]
    if not owners:
        near = lookup.nearest(name, [item.name for _, item in host.snapshot.abilities()])
        meant = f"did you mean {near}? " if near else ""
        raise ChalieError(
            f"no installed package has a tool named {name!r}",
            code="unknown-tool",
            hint=f"{meant}To set it for one that is not installed, name its package: --package NAME",
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
    return host.channels[lookup.channel(host, channel, policy=True)].policy


def _owner(package: str, permission: str) -> str:
    """Return a package's name as rows hold it; an MCP server's is its own spelling."""
    return package if permission.startswith("_mcp_") else normal_dist(package)
