"""The door on standard input and output: one client, which started this process."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING

from .server import ToolServer

if TYPE_CHECKING:
    from .doors import Caller, Turns

__all__ = ["serve_stdio"]


async def serve_stdio(host: Turns, caller: Caller, *, person_at_client: bool = False) -> None:
    """Serve one client until it closes our input, or a signal ends us; its running calls are cancelled then.

    What tools print goes to standard error meanwhile: standard output is the client's.

    Args:
        host: opens the turns.
        caller: the client.
        person_at_client: whether what the gate asks about may be answered there.
    """
    from mcp.server.stdio import stdio_server

    tools = ToolServer(host, lambda context: caller, person_at_client=person_at_client)
    server = tools.build()
    async with stdio_server() as (incoming, outgoing):
        watching = asyncio.create_task(tools.watch())
        serving = asyncio.create_task(server.run(incoming, outgoing, server.create_initialization_options()))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, serving.cancel)
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await serving
        finally:
            watching.cancel()
            tools.close()
