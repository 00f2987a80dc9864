"""The commands of `chalie mcp` for other servers, whose tools join this host's."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ..catalogue.server_file import FILE, Server, configured
from ..catalogue.server_secrets import reached_by
from ..catalogue.servers import Availability, Listing, availability, listing
from ..errors import ChalieError
from . import exits
from .opening import opened, working
from .output import as_json, emit, note, pairs, table

if TYPE_CHECKING:
    from ..host import Host
    from ..mcp.client import Client

__all__ = ["COMMANDS", "ask_servers"]


@click.command("list")
@as_json
@click.pass_context
def list_(context: click.Context, json_: bool) -> int:
    """List the servers of mcp.json: how they were reached last, and what of their tools is left out.

    Nothing is started or asked; `chalie mcp test NAME` does that. What an entry holds in env and headers is
    never shown. Exit code 1 if there is none.
    """
    with opened(context) as host:
        rows = [_row(host, server) for server in configured(host.config.home)[0].values()]
        others = [
            {
                "server": problem.dist,
                "tool": problem.entry_point,
                "reason": problem.reason,
                "fix": problem.fix,
            }
            for problem in host.problems()
            if problem.phase == "server"
        ]
    if json_:
        emit({"servers": rows, "problems": others})
    elif rows:
        columns = ("name", "reach", "tools", "left_out", "protocol", "trusted", "reached_by")
        table(columns, [[row[column] for column in columns] for row in rows])
        for row in rows:
            if row["reason"]:
                note(f"{row['name']}: {row['reason']}")
    if not json_:
        for other in others:
            what = f" {other['tool'].removeprefix('tool: ')}" if other["tool"] else ""
            note(f"{other['server'].removeprefix('mcp:')}{what}: {other['reason']} ({other['fix']})")
    if not rows and not json_:
        note("there are no servers; add one: chalie mcp add NAME -- COMMAND ARGS..., or --url URL")
    return exits.OK if rows else exits.NOTHING


@click.command("add")
@click.argument("name")
@click.argument("command", nargs=-1, metavar="[-- COMMAND ARGS...]")
@click.option("--url", help="Its address, for a server that is reached by streamable HTTP.")
@click.option("--env", "-e", multiple=True, metavar="NAME=VALUE", help="For its environment; ${VAR} works.")
@click.option("--header", multiple=True, metavar="NAME:VALUE", help="Sent with every request; ${VAR} works.")
@click.option("--cwd", metavar="FOLDER", help="The folder it is started in.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Seconds a call may take.")
@click.option("--no-connect", is_flag=True, help="Write the entry only; do not reach it now.")
@click.pass_context
def add(
    context: click.Context,
    name: str,
    command: tuple[str, ...],
    url: str | None,
    env: tuple[str, ...],
    header: tuple[str, ...],
    cwd: str | None,
    timeout: float | None,
    no_connect: bool,
) -> int:
    """Add a server under NAME to mcp.json, reach it and read its tools.

    Its program starts with your account's rights, so add only what you would install. What its tools say of
    themselves (read-only, not destructive) counts only once you `chalie trust mcp:NAME`. A variable in an
    entry is written ${VAR} and put in when the server is reached.
    """
    from ..mcp import entries

    if bool(command) == bool(url):
        raise click.UsageError("say how it is reached: either -- COMMAND ARGS..., or --url URL")
    entry: dict[str, Any] = {"command": command[0], "args": list(command[1:])} if command else {"url": url}
    if env:
        entry["env"] = dict(_pair(word, "=", "--env") for word in env)
    if header:
        entry["headers"] = dict(_pair(word, ":", "--header") for word in header)
    if cwd is not None:
        entry["cwd"] = cwd
    if timeout is not None:
        entry["timeout"] = timeout
    with opened(context, settle=False) as host:
        slug = entries.add(host.config.home, name, entry)
        click.echo(f"{slug} is in {host.config.home / FILE}")
        return exits.OK if no_connect else _reach(host, [slug])


@click.command("remove")
@click.argument("name")
@click.pass_context
def remove(context: click.Context, name: str) -> int:
    """Remove a server from mcp.json, with what it listed. Settings of its tools stay. Exit code 1 if none."""
    from ..mcp import entries

    with opened(context, settle=False) as host:
        found = entries.remove(host.config.home, name)
    if not found:
        note(f"there is no server {name!r}; see `chalie mcp list`")
        return exits.NOTHING
    click.echo(f"{name} is removed")
    return exits.OK


@click.command("refresh")
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.pass_context
def refresh(context: click.Context, names: tuple[str, ...]) -> int:
    """Reach the servers (or those named) and read their tools again. Exit code 5 if one cannot be reached."""
    with opened(context, settle=False) as host:
        return _reach(host, names or list(configured(host.config.home)[0]))


@click.command("test")
@click.argument("name")
@as_json
@click.pass_context
def test(context: click.Context, name: str, json_: bool) -> int:
    """Reach one server, and tell how long it took, what it speaks and which tools are left out."""
    with opened(context, settle=False) as host:
        begun = time.monotonic()
        with working(f"reaching {name}"):
            known = host.servers.client.refresh(name)
        seconds = time.monotonic() - begun
        host.upkeep.refresh()
        row = host.snapshot.distribution(f"mcp:{name}")
        tools = [item.bare for item in host.snapshot.of(f"mcp:{name}")]
        left = [problem for problem in host.problems() if problem.dist == f"mcp:{name}"]
    told = {
        "name": name,
        "server": f"{known.server.get('name', '')} {known.version}".strip(),
        "protocol": known.protocol,
        "seconds": round(seconds, 2),
        "tools": tools,
        "left_out": [{"tool": each.entry_point, "reason": each.reason, "fix": each.fix} for each in left],
        "hash": "" if row is None else row.files_hash,
    }
    if json_:
        emit(told)
    else:
        pairs((key, value) for key, value in told.items() if key != "left_out")
        for each in left:
            note(f"{each.entry_point.removeprefix('tool: ') or name}: {each.reason} ({each.fix})")
    return exits.OK


@click.command("import")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option("--no-connect", is_flag=True, help="Write the entries only; do not reach them now.")
@click.pass_context
def import_(context: click.Context, file: Path, names: tuple[str, ...], no_connect: bool) -> int:
    """Take the servers (or those named) of another client's FILE over, and reach them.

    FILE is JSON with `mcpServers` or `servers` at its top: claude_desktop_config.json, .mcp.json,
    .vscode/mcp.json, .cursor/mcp.json. It is not changed. A server that is here already stays as it is. Exit
    code 1 if none was taken over.
    """
    from ..mcp import entries

    with opened(context, settle=False) as host:
        added, left = entries.take_over(host.config.home, file, names)
        for name, why in left:
            note(f"{name} is left out: {why}")
        if not added:
            return exits.NOTHING
        click.echo(f"taken over: {', '.join(added)}")
        return exits.OK if no_connect else _reach(host, added)


#: in the order of `chalie mcp --help`.
COMMANDS: Final[tuple[click.Command, ...]] = (list_, add, remove, refresh, test, import_)


def ask_servers(host: Host, names: Sequence[str] | None = None) -> dict[str, ChalieError | None]:
    """Reach servers now and take in what they list; return why each could not be reached, or None."""
    client: Client = host.servers.client
    found = client.ask(names)
    host.upkeep.refresh()
    return found


def _reach(host: Host, names: Sequence[str]) -> int:
    """Reach servers, say of each how that went, and return the exit code."""
    known, _ = configured(host.config.home)
    missing = [name for name in names if name not in known]
    if missing:
        raise ChalieError(
            f"no server {', '.join(missing)} is in {host.config.home / FILE}",
            code="unknown-server",
            hint="chalie mcp list",
        )
    with working(f"reaching {', '.join(names)}"):
        found = ask_servers(host, list(names))
    failed = 0
    for name, error in found.items():
        if error is not None:
            failed += 1
            note(f"{error.message} [{error.code}]")
            if error.hint and error.code in ("bad-config", "extra-missing"):
                note(f"  hint: {error.hint}")
            continue
        usable = host.snapshot.of(f"mcp:{name}")
        left = [p for p in host.problems() if p.dist == f"mcp:{name}" and p.entry_point]
        said = listing(host.config.home, name)
        speaks = "" if said is None else f", protocol {said.protocol}"
        click.echo(f"{name}: {len(usable)} tools{speaks}")
        for problem in left:
            note(f"{name} {problem.entry_point.removeprefix('tool: ')}: {problem.reason}")
    if failed:
        note("the entries stay; try again with: chalie mcp test NAME")
        return next(exits.of(error.code) for error in found.values() if error is not None)
    return exits.OK


def _row(host: Host, server: Server) -> dict[str, Any]:
    home = host.config.home
    known: Listing | None = listing(home, server.slug)
    found: Availability = availability(home, server.slug)
    row = host.snapshot.distribution(server.dist)
    usable = host.snapshot.of(server.dist) if row is not None and row.state == "ready" else ()
    return {
        "name": server.slug,
        "reach": found.reach,
        "reason": found.reason if found.reach != "ok" else "",
        "tools": len(usable),
        "left_out": 0 if known is None else len(known.tools) + len(known.problems) - len(usable),
        "protocol": "" if known is None else known.protocol,
        "version": "" if known is None else known.version,
        "trusted": row is not None and host.approvals.trusts_server(server.dist, row.files_hash),
        "reached_by": reached_by(server),
    }


def _pair(word: str, sign: str, option: str) -> tuple[str, str]:
    name, found, value = word.partition(sign)
    if not found or not name.strip():
        raise click.UsageError(f"{option} takes NAME{sign}VALUE, not {name!r}")
    return name.strip(), value.strip() if sign == ":" else value
