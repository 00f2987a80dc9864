"""`chalie uninstall`: pip or uv; what a person decided about the package is kept."""

from __future__ import annotations

import click

from . import exits, installer
from .install import in_fresh_process

__all__ = ["command"]


@click.command("uninstall")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("-y", "--yes", is_flag=True, help="Do not ask first.")
@click.pass_context
def command(context: click.Context, names: tuple[str, ...], yes: bool) -> int:
    """Uninstall packages. Permissions and kept data stay, and count again if the package comes back."""
    from ..config import Config
    from .opening import home_of

    token = Config.load(home_of(context)).approver_token
    if not yes:
        click.confirm(f"Uninstall {', '.join(names)}?", abort=True, err=True)
    installer.run("uninstall", names)
    code = in_fresh_process(context, ["index", "--installed"], token)
    return exits.OK if code == exits.NOTHING else code  # other packages' problems are not this command's
