"""Clients no one here wrote, from finding a tool to its result: those of FastMCP and the inspector."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chalie.envelope import parse
from fastmcp import Client as FastClient
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

from tests.mcp.served import Running, Served, texts

from .conftest import Node

INSPECTOR = "@modelcontextprotocol/inspector"


def over_http(door: Running, token: str, **more: Any) -> FastClient[Any]:
    headers = {"Authorization": f"Bearer {token}"}
    return FastClient(StreamableHttpTransport(door.url, headers=headers), **more)


async def whole_way(client: FastClient[Any], person: list[str]) -> None:
    """Find two tools, call both, be asked about one, and have its result."""
    async with client:
        before = {tool.name for tool in await client.list_tools()}
        assert {"find_tools", "call_tool"} <= before and "echo" not in before
        found = await client.call_tool("find_tools", {"query": ["repeat what I say", "deploy"]})
        assert '"name":"echo"' in texts(found) and '"name":"deploy"' in texts(found)
        said = await client.call_tool("call_tool", {"name": "echo", "arguments": {"text": "hi"}})
        assert '"text":"hi"' in texts(said)
        done = await client.call_tool("call_tool", {"name": "deploy", "arguments": {"text": "fast"}})
        assert parse(texts(done)).body == '{"deployed":"fast"}'
    assert len(person) == 1 and "May deploy run?" in person[0]


@pytest.mark.asyncio
async def test_the_client_of_fastmcp_goes_the_whole_way_over_http(door: Running) -> None:
    person: list[str] = []

    async def answer(message: str, *_: Any) -> Any:
        person.append(message)
        return ElicitResult(action="accept", content={"answer": "once"})

    await whole_way(over_http(door, door.token("fast", channel="chat"), elicitation_handler=answer), person)


@pytest.mark.asyncio
async def test_the_client_of_fastmcp_goes_the_whole_way_over_stdio(served: Served) -> None:
    person: list[str] = []

    async def answer(message: str, *_: Any) -> Any:
        person.append(message)
        return ElicitResult(action="accept", content={"answer": "once"})

    words = [*served.words, "--channel", "chat", "--person-at-client"]
    started = StdioTransport(words[0], words[1:], env=served.env)
    await whole_way(FastClient(started, elicitation_handler=answer), person)
    assert served.ran == ["fast"]


@pytest.mark.asyncio
async def test_one_that_cannot_ask_is_told_that_the_call_waits(door: Running) -> None:
    async with over_http(door, door.token("mute", channel="chat")) as client:
        said = await client.call_tool("call_tool", {"name": "deploy"}, raise_on_error=False)
    assert parse(texts(said)).code == "approval-pending" and "chalie approve" in texts(said)


@pytest.mark.asyncio
async def test_where_nobody_can_be_asked_it_is_told_the_line_that_allows_it(door: Running) -> None:
    async with over_http(door, door.token("alone")) as client:
        said = await client.call_tool("call_tool", {"name": "deploy"}, raise_on_error=False)
    assert "chalie permissions set external_agent deploy allow" in texts(said)


def inspected(node: Node, *words: str) -> dict[str, Any]:
    ran = node.run(INSPECTOR, "--cli", *words)
    assert ran.returncode in (0, 5), ran.stdout + ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_the_inspector_lists_and_calls_over_http(door: Running, node: Node) -> None:
    bearer = ("--header", f"Authorization: Bearer {door.token('inspector')}")
    listed = inspected(node, door.url, *bearer, "--method", "tools/list")
    assert [tool["name"] for tool in listed["tools"]][-1] == "call_tool"
    strict = node.run(INSPECTOR, "--cli", door.url, *bearer, "--method", "tools/list", "--strict")
    assert strict.returncode == 0, strict.stderr
    call = ("--method", "tools/call", "--tool-name", "call_tool", "--tool-arg", "name=echo")
    said = inspected(node, door.url, *bearer, *call, 'arguments={"text":"from node"}')
    assert "from node" in said["content"][0]["text"]
    without = node.run(INSPECTOR, "--cli", door.url, "--method", "tools/list")
    assert without.returncode != 0


def test_the_inspector_starts_and_asks_a_server_on_a_pipe(served: Served, node: Node, tmp_path: Path) -> None:
    entry = {"command": served.words[0], "args": served.words[1:], "env": served.env, "type": "stdio"}
    config = tmp_path / "servers.json"
    config.write_text(json.dumps({"mcpServers": {"chalie": entry}}), encoding="utf-8")
    words = ("--config", str(config), "--server", "chalie", "--method", "tools/call")
    found = inspected(node, *words, "--tool-name", "find_tools", "--tool-arg", 'query=["echo"]')
    assert '"name":"echo"' in found["content"][0]["text"]
