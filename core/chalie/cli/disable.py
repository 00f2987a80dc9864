"""`chalie disable`: keep a package installed, but neither read nor loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .completion import packages
from .enable import powers, row
from .opening import opened
from .proof import proven

if TYPE_CHECKING:
    from ..host import Host

__all__ = ["command"]


@click.command("disable")
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=packages)
@click.pass_context
def command(context: click.Context, names: tuple[str, ...]) -> int:
    """Disable packages: nothing of them is parsed, imported or loaded any more.

    A package with policies or plugins may be what protects this home: disabling one needs the owner at a
    terminal or an approver token.
    """
    from packaging.utils import canonicalize_name

    with opened(context, settle=False) as host:
        for name in names:
            _disable(host, str(canonicalize_name(name)))
    return 0


def _disable(host: Host, dist: str) -> None:
    from ..config import save_package_option

    if host.config.package(dist).disabled:
        click.echo(f"{dist}: is disabled already")
        return
    row(host, dist)
    by = proven(host) if powers(host, dist) else "command line"
    save_package_option(host.config.home, dist, "disabled", True)
    if not host.ledger.enabled.clear(dist, by=by):
        host.ledger.trail.append("package.disabled", dist=dist, by=by)
    click.echo(f"{dist}: disabled; `chalie enable {dist}` brings it back")
