"""Agreeing with a server on a version of the protocol: the newer way, or the older ones' handshake."""

from __future__ import annotations

from typing import Literal, TypeAlias

from mcp import ClientSession, MCPError
from mcp_types import METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION

from .failures import hung_up

__all__ = ["First", "negotiate"]

First: TypeAlias = Literal["discover", "handshake"]


async def negotiate(session: ClientSession, first: First) -> None:
    """Agree on a protocol version: the newer way first, the older where the server does not know it.

    Raises:
        MCPError: there is none that both speak, or the connection is gone.
    """
    if first == "discover":
        try:
            await session.discover()
            return
        except MCPError as error:
            if hung_up(error):
                raise
        except (RuntimeError, ValueError):
            pass  # its answer is no answer of the newer protocol
    try:
        await session.initialize()
    except MCPError as error:
        # it speaks the newer one alone, or settled for that when the first question reached it late
        if error.code not in (UNSUPPORTED_PROTOCOL_VERSION, METHOD_NOT_FOUND):
            raise
        await session.discover()
