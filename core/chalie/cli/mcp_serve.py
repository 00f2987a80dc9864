"""`chalie mcp serve` and `chalie mcp install`: this host for other agents, by MCP."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..channels import channel_named
from ..errors import ConfigError
from . import exits
from .completion import channels
from .opening import home_of, opened
from .output import note

if TYPE_CHECKING:
    from ..host import Host

__all__ = ["install", "serve"]

_CHANNEL = "external_agent"
_FILE = ".mcp.json"
_CHANNEL_HELP = "Where calls happen."
_PERSON_HELP = "What the gate asks about is asked at the client; you vouch that its person answers."


@click.command("serve")
@click.option("--http", metavar="HOST:PORT", help="Serve HTTP there instead of standard input and output.")
@click.option("--channel", help=f"{_CHANNEL_HELP} Default: {_CHANNEL}.", shell_complete=channels)
@click.option("--principal", help="On whose behalf, without --http. Default: the account.")
@click.option("--person-at-client", is_flag=True, help=_PERSON_HELP)
@click.option(
    "--allow-host", "hosts", multiple=True, metavar="NAME", help="A further name of this server, for --http."
)
@click.option(
    "--allow-origin", "origins", multiple=True, metavar="ORIGIN", help="A web page that may ask, for --http."
)
@click.pass_context
def serve(
    context: click.Context,
    http: str | None,
    channel: str | None,
    principal: str | None,
    person_at_client: bool,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
) -> int:
    """Serve every installed tool to an agent by MCP: found by search, called through the gate.

    Without --http it serves the one client that started it. With --http it takes any client that brings a
    token (`chalie tokens add`); the token says channel and principal, and --channel lets in only the tokens
    made for it. Needs the extra `chalie[mcp]`.
    """
    import asyncio

    from ..mcp.sdk import require

    require()
    if http is None and (hosts or origins):
        raise click.UsageError("--allow-host and --allow-origin are for --http")
    if http is not None and principal is not None:
        raise click.UsageError(
            "over HTTP a token says the principal: chalie tokens add LABEL --principal NAME"
        )
    with opened(context, settle=False) as host:
        _check_channel(host, channel if http is not None else channel or _CHANNEL, person_at_client)
        if http is not None:
            _serve_http(host, http, channel, person_at_client, hosts, origins)
            return exits.OK
        from ..mcp.doors import Caller
        from ..mcp.stdio import serve_stdio

        caller = Caller("stdio", "stdio", channel or _CHANNEL, principal or getpass.getuser())
        asyncio.run(serve_stdio(host, caller, person_at_client=person_at_client))
    return exits.OK


def _check_channel(host: Host, channel: str | None, person_at_client: bool) -> None:
    """Refuse a channel that nobody can be served on, or asked on where that is wanted."""
    if channel is None:
        return
    where = channel_named(host.channels, channel)
    if where.delegate:
        raise click.UsageError(f"{channel} is a delegate channel, which only another turn can open")
    if person_at_client and not where.has_person:
        raise click.UsageError(
            f"on {channel} nobody is asked; --person-at-client goes with a channel like chat: --channel chat"
        )


def _serve_http(
    host: Host,
    http: str,
    channel: str | None,
    person_at_client: bool,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
) -> None:
    import asyncio

    from ..mcp.http import PATH, address, is_loopback, listening, serve_http

    name, port = address(http)
    bound = listening(name, port)
    port = bound.getsockname()[1]
    shown = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"

    def ready() -> None:
        note(f"serving MCP at http://{shown}{PATH}")
        if not host.ledger.tokens.list():
            note("there are no tokens yet, and without one no client gets in: chalie tokens add LABEL")
        if not is_loopback(name):
            note(
                "others can reach this address, and what they send can be read on its way: put TLS before it"
            )

    known = (*hosts, f"[{name}]" if ":" in name else name)
    asyncio.run(
        serve_http(
            host,
            bound,
            hosts=known,
            origins=origins,
            channel=channel,
            person_at_client=person_at_client,
            ready=ready,
        )
    )


@click.command("install")
@click.option("--name", default="chalie", show_default=True, help="What the client calls this server.")
@click.option("--user", is_flag=True, help="For all your projects (~/.claude.json), not this folder's alone.")
@click.option("--print", "print_only", is_flag=True, help="Write nothing.")
@click.option("--replace", is_flag=True, help="Take the place of another entry of that name.")
@click.option("--url", help="The server's address, where one runs with --http; the token is $CHALIE_TOKEN.")
@click.option("--channel", help=f"{_CHANNEL_HELP} Default: {_CHANNEL}.", shell_complete=channels)
@click.option("--person-at-client", is_flag=True, help=_PERSON_HELP)
@click.pass_context
def install(
    context: click.Context,
    name: str,
    user: bool,
    print_only: bool,
    replace: bool,
    url: str | None,
    channel: str | None,
    person_at_client: bool,
) -> int:
    """Enter this server into Claude Code's configuration, and print the entry for any other client.

    The entry starts `chalie mcp serve` with this Python and home. It goes into .mcp.json in this folder, or
    with --user into ~/.claude.json; whatever else stands there stays.
    """
    if url is not None and (channel is not None or person_at_client):
        raise click.UsageError("the server at --url was started with a channel, and its tokens have theirs")
    if person_at_client and channel is None:
        raise click.UsageError("--person-at-client goes with a channel like chat: --channel chat")
    entry = _remote(url) if url is not None else _local(home_of(context), channel, person_at_client)
    if not print_only:
        file = Path.home() / ".claude.json" if user else Path.cwd() / _FILE
        done = "is there already" if _entered(file, name, entry, replace) else "was added"
        note(f"{name} {done} in {file}; Claude Code starts it in its next session")
        note("for any other client, put this where it keeps its mcpServers:")
    click.echo(json.dumps({"mcpServers": {name: entry}}, ensure_ascii=False, indent=2))
    return exits.OK


def _remote(url: str) -> dict[str, Any]:
    """Return the entry of a server that runs: the token stays in the environment, out of the file."""
    return {"type": "http", "url": url, "headers": {"Authorization": "Bearer ${CHALIE_TOKEN}"}}


def _local(home: Path | None, channel: str | None, person_at_client: bool) -> dict[str, Any]:
    """Return the entry that starts this server as it runs here, whatever the client's own path is."""
    script = Path(sys.executable).parent / "chalie"
    words = [str(script)] if script.exists() else [sys.executable, "-m", "chalie.cli.main"]
    chosen = home or (Path(os.environ["CHALIE_HOME"]) if os.environ.get("CHALIE_HOME") else None)
    if chosen is not None:
        words += ["--home", str(chosen.absolute())]
    words += ["mcp", "serve"]
    if channel is not None:
        words += ["--channel", channel]
    if person_at_client:
        words.append("--person-at-client")
    return {"type": "stdio", "command": words[0], "args": words[1:]}


def _entered(file: Path, name: str, entry: dict[str, Any], replace: bool) -> bool:
    """Put an entry into a client's file; return whether that very one was there.

    Raises:
        ConfigError: the file is not the client's, or another entry has that name.
    """
    try:
        text = file.read_text(encoding="utf-8")
        whole = json.loads(text) if text.strip() else {}
    except FileNotFoundError:
        whole = {}
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{file} cannot be read as JSON: {error}", hint="repair it, or use --print"
        ) from error
    servers = whole.setdefault("mcpServers", {}) if isinstance(whole, dict) else None
    if not isinstance(servers, dict):
        raise ConfigError(f"{file} has no object of mcpServers", hint="repair it, or use --print")
    if servers.get(name) == entry:
        return True
    if name in servers and not replace:
        raise ConfigError(
            f"{file} has another entry {name!r}", hint="choose another --name, or replace it: --replace"
        )
    servers[name] = entry
    _write(file, json.dumps(whole, ensure_ascii=False, indent=2) + "\n")
    return False


def _write(file: Path, text: str) -> None:
    """Write a file aside and put it into its place, with the mode it had."""
    target = file.resolve()
    aside = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    try:
        aside.write_text(text, encoding="utf-8")
        if target.exists():
            shutil.copymode(target, aside)
        aside.replace(target)
    except OSError as error:
        aside.unlink(missing_ok=True)
        reason = error.strerror or str(error)
        raise ConfigError(f"{target} cannot be written: {reason}", hint="use --print") from error
