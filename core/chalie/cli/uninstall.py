"""`chalie uninstall`: pip or uv; what a person decided about the package is kept."""

from __future__ import annotations

import sys

import click

from ..errors import ChalieError
from . import exits, installer
from .completion import packages
from .install import in_fresh_process

__all__ = ["command"]


@click.command("uninstall")
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=packages)
@click.option("-y", "--yes", is_flag=True, help="Do not ask first.")
@click.option("-v", "--verbose", is_flag=True, help="Show all that pip or uv says.")
@click.pass_context
def command(context: click.Context, names: tuple[str, ...], yes: bool, verbose: bool) -> int:
    """Uninstall packages. Permissions and kept data stay, and count again if the package comes back.

    Exit code 1 if one of them is not installed; then none is touched.
    """
    from ..config import Config, normal_dist
    from .lookup import installed_version
    from .opening import existing_home

    token = Config.load(existing_home(context)).approver_token
    absent = [name for name in names if installed_version(normal_dist(name)) is None]
    if absent:
        raise ChalieError(
            f"no package {' or '.join(absent)} is installed in this Python, so nothing was uninstalled",
            code="unknown-package",
            hint="see what is: chalie list",
        )
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("nobody can be asked here; add --yes to uninstall all the same")
        click.confirm(f"Uninstall {', '.join(names)}?", abort=True, err=True)
    installer.run("uninstall", names, verbose=verbose)
    click.echo(f"uninstalled: {', '.join(names)}")
    code = in_fresh_process(context, ["index", "--installed"], token)
    return exits.OK if code == exits.NOTHING else code  # other packages' problems are not this command's
