"""`chalie mcp`: tools by MCP, from other servers and for other agents."""

from __future__ import annotations

import click

from .mcp_serve import install, serve

__all__ = ["command"]


@click.group("mcp")
def command() -> None:
    """Serve the tools of this host to other agents by MCP."""


command.add_command(serve)
command.add_command(install)
