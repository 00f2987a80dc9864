"""`chalie distrust`: take back that a policy's allow counts."""

from __future__ import annotations

import click

from .completion import packages
from .trust import changed

__all__ = ["command"]


@click.command("distrust")
@click.argument("package", shell_complete=packages)
@click.pass_context
def command(context: click.Context, package: str) -> int:
    """Let the allow of PACKAGE's policies count no longer; what they limit still counts.

    For an MCP server (mcp:NAME) all of its tools count as destructive again.
    """
    return changed(context, package, trusted=False)
