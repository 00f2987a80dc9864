"""`chalie trust` and `chalie distrust`: whether an enabled policy's allow counts."""

from __future__ import annotations

import click

from ..config import environment_key
from ..errors import ChalieError
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

    What an enabled policy limits counts without that. Trust lapses when the package's files change. Needs the
    home's owner at a terminal or an approver token.
    """
    return changed(context, package, trusted=True)


def changed(context: click.Context, package: str, *, trusted: bool) -> int:
    """Trust or distrust a package's policies.

    Raises:
        ChalieError: it brings none, or they are not enabled with the files it has now.
    """
    from packaging.utils import canonicalize_name

    dist = str(canonicalize_name(package))
    with opened(context) as host:
        by = proven(host)
        found = row(host, dist)
        if "policies" not in powers(host, dist):
            raise ChalieError(f"{dist} brings no policies", code="not-allowed", hint=f"chalie show {dist}")
        if not host.ledger.enabled.trust(dist, found.files_hash, environment_key(), trusted, by=by):
            raise ChalieError(
                f"{dist} is not enabled with the files it has now",
                code="not-allowed",
                hint=f"chalie enable {dist}",
            )
    click.echo(f"{dist}: its allow {'counts now' if trusted else 'does not count any more'}")
    return exits.OK
