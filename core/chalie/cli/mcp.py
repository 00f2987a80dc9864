"""`chalie mcp`: tools by MCP, from other servers and for other agents."""

from __future__ import annotations

import click

from . import mcp_servers
from .mcp_serve import install, serve

__all__ = ["command"]


@click.group("mcp")
def command() -> None:
    """Use the tools of MCP servers, and serve this host's to other agents."""


for each in (*mcp_servers.COMMANDS, serve, install):
    command.add_command(each)
