"""`chalie trust` and `chalie distrust`: whether a policy's allow, or a server's word, counts."""

from __future__ import annotations

import click

from ..config import environment_key
from ..errors import ChalieError
from ..names import SERVER, is_server
from . import exits
from .completion import packages
from .enable import powers, row
from .opening import opened
from .proof import proven

__all__ = ["changed", "command"]


@click.command("trust")
@click.argument("package", shell_complete=packages)
@click.pass_context
def command(context: click.Context, package: str) -> int:
    """Let the allow of PACKAGE's policies count, with exactly the files it has now.

    What an enabled policy limits counts without that. Trust lapses when the package's files change.

    For an MCP server PACKAGE is mcp:NAME: what it says of its tools (read-only, not destructive) then counts
    for the class of their calls. That trust lapses when its entry in mcp.json changes. Needs the home's owner
    at a terminal or an approver token.
    """
    return changed(context, package, trusted=True)


def changed(context: click.Context, package: str, *, trusted: bool) -> int:
    """Trust or distrust a package's policies.

    Raises:
        ChalieError: it brings none, or they are not enabled with the files it has now.
    """
    from packaging.utils import canonicalize_name

    dist = str(canonicalize_name(package))
    if is_server(dist):
        return _server(context, dist, trusted=trusted)
    with opened(context) as host:
        by = proven(host)
        found = row(host, dist)
        if "policies" not in powers(host, dist):
            raise ChalieError(f"{dist} brings no policies", code="not-allowed", hint=f"chalie show {dist}")
        if not host.ledger.enabled.trust(dist, found.files_hash, trusted, by=by):
            raise ChalieError(
                f"{dist} is not enabled with the files it has now",
                code="not-allowed",
                hint=f"chalie enable {dist}",
            )
    click.echo(f"{dist}: its allow {'counts now' if trusted else 'does not count any more'}")
    return exits.OK


def _server(context: click.Context, dist: str, *, trusted: bool) -> int:
    """Trust or distrust a server to say what its tools do."""
    from collections import Counter

    with opened(context) as host:
        by = proven(host)
        found = host.snapshot.distribution(dist)
        if found is None or not found.files_hash:
            slug = dist.removeprefix(SERVER)
            raise ChalieError(
                f"no server {slug} is configured", code="unknown-server", hint="chalie mcp list"
            )
        enabled = host.ledger.enabled
        if trusted:
            enabled.set(dist, found.files_hash, environment_key(), by=by)
        enabled.trust(dist, found.files_hash, trusted, by=by)
        claims = Counter(item.side_effect.value for item in host.snapshot.of(dist))
    said = ", ".join(f"{count} {effect}" for effect, count in sorted(claims.items())) or "nothing yet"
    if trusted:
        click.echo(f"{dist}: what it says of its tools counts now: {said}")
    else:
        click.echo(f"{dist}: all of its tools count as destructive")
    return exits.OK
