"""A server written with the MCP SDK, as its users write one: on standard input and output, or over HTTP."""

from __future__ import annotations

import asyncio
import os
import sys
import time

from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Image
from mcp_types import (
    CallToolResult,
    EmbeddedResource,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import BaseModel

server = MCPServer("lab", version="3.1")


class Weather(BaseModel):
    """What the weather tool returns."""

    place: str
    celsius: float


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def weather(place: str) -> Weather:
    """Tell the weather at a place."""
    return Weather(place=place, celsius=24.5)


@server.tool()
def echo(text: str, tags: list[str] | None = None) -> str:
    """Say a text again."""
    return f"{text} {tags}" if tags else text


@server.tool()
def fail(text: str) -> str:
    """Fail, saying why."""
    raise ValueError(text)


@server.tool()
def picture() -> Image:
    """Draw a picture."""
    return Image(data=b"\x89PNG" + bytes(100), format="png")


@server.tool()
def papers() -> CallToolResult:
    """Hand out a resource and a link to another one."""
    inside = TextResourceContents(uri="file:///a.txt", mime_type="text/plain", text="the paper's text")
    return CallToolResult(
        content=[
            TextContent(type="text", text="two papers"),
            EmbeddedResource(type="resource", resource=inside),
            ResourceLink(type="resource_link", uri="file:///b.txt", name="the other paper"),
        ]
    )


@server.tool()
async def slow(seconds: float, context: Context) -> str:
    """Work for a while and say how far it is."""
    for step in range(10):
        await context.report_progress(step + 1, 10, f"step {step + 1}")
        await asyncio.sleep(seconds / 10)
    return "done"


@server.tool()
def block(seconds: float) -> str:
    """Work for a while without ever looking up."""
    time.sleep(seconds)
    return "done"


@server.tool()
def who() -> dict[str, int]:
    """Say which process this is."""
    return {"pid": os.getpid()}


@server.tool()
async def grow(word: str, context: Context) -> str:
    """Add a tool of that name to the list."""
    server.add_tool(echo, name=word, description=f"Say a text again, {word}.")
    await context.notify_tools_changed()
    return "grown"


if __name__ == "__main__":
    if sys.argv[1:2] == ["http"]:
        server.run("streamable-http", port=int(sys.argv[2]))
    else:
        server.run("stdio")
