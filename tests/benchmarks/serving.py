"""The served host beside FastMCP with its search: one search and one call, over a pipe and over HTTP.

Run with a word, this file is a process of the measurement: `peer` serves the same tools with FastMCP, `bytes`
says how long their whole listing is, `measure` is the client of both.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
NOUNS = ("invoice", "photo", "contract", "recipe", "ticket", "lamp", "route", "playlist", "plant", "parcel")
VERBS = ("archive", "rename", "share", "print", "measure", "translate", "rotate", "count", "tag", "merge")
PER_PACKAGE = 500
ROUNDS = 60

_MODULE = """
from chalie import Ability, SideEffect, ToolResult

TEXT = {{"type": "string", "description": "What to do it with."}}
PARAMETERS = {{"type": "object", "properties": {{"text": TEXT}}}}


def made(name, summary, examples):
    facts = {{
        "__module__": __name__,
        "side_effect": SideEffect.READ,
        "name": lambda self: name,
        "summary": lambda self: summary,
        "examples": lambda self: examples,
        "search_tooltip": lambda self: "a measured tool",
        "parameters": lambda self: PARAMETERS,
        "run": lambda self, params: ToolResult.ok({{"echo": params}}),
    }}
    return type(name.title().replace("_", ""), (Ability,), facts)


for each in {tools!r}:
    globals()[each[0]] = made(*each)
"""


def tools(count: int) -> list[tuple[str, str, list[str]]]:
    """Return (name, summary, examples) of as many tools, the same for the same number."""
    found = []
    for number in range(count):
        noun, verb = NOUNS[number % len(NOUNS)], VERBS[number // len(NOUNS) % len(VERBS)]
        summary = f"{verb.capitalize()} the {noun} of collection {number} and report what was done."
        examples = [
            f"{verb} my {noun} in collection {number}",
            f"can you {verb} the {noun} numbered {number}",
            f"I want to {verb} a {noun}",
            f"{noun} {verb} {number}",
            f"please {verb} {noun} number {number} for me",
            f"is there a tool to {verb} the {noun} of collection {number}",
        ]
        found.append((f"{verb}_{noun}_{number}", summary, examples))
    return found


def queries(count: int) -> list[tuple[str, str]]:
    """Return (what is asked for, the tool that is then called)."""
    chosen = random.Random(1).sample(tools(count), min(count, ROUNDS))
    return [(examples[number % 6], name) for number, (name, _, examples) in enumerate(chosen)]


def site(folder: Path, count: int) -> Path:
    """Write the tools as a few packages."""
    from tests.support import packages

    made = tools(count)
    for start in range(0, count, PER_PACKAGE):
        module = f"measured_{start}"
        package = packages.Package(
            dist=module.replace("_", "-"),
            files={f"{module}.py": _MODULE.format(tools=made[start : start + PER_PACKAGE])},
            entry_points={packages.GROUP: {module: module}},
        )
        packages.install(folder, package)
    return folder


def home(folder: Path, count: int) -> None:
    """Have a home read them, and allow what will be called, as a person would."""
    from chalie import Host

    with Host.open(folder) as host:
        host.upkeep.refresh(None)
        found = [descriptor for _, descriptor in host.snapshot.abilities()]
        if len(found) != count:
            raise SystemExit(f"{len(found)} of {count} tools were read: {host.problems()}")
        called = {name for _, name in queries(count)}
        for descriptor in found:
            if descriptor.name in called:
                host.ledger.permissions.set(
                    "external_agent", descriptor.dist, descriptor.name, "allow", by="benchmark"
                )


def peer(count: int, port: int | None = None, *, searched: bool = True) -> Any:
    """Serve them with FastMCP."""
    from fastmcp import FastMCP
    from fastmcp.server.transforms.search import BM25SearchTransform
    from fastmcp.tools import Tool

    def echo(text: str = "") -> dict[str, Any]:
        return {"echo": {"text": text}}

    server: Any = FastMCP("peer", transforms=[BM25SearchTransform()] if searched else [])
    made = Tool.from_function(echo)  # once: reading the same function ten thousand times takes a minute
    for name, summary, examples in tools(count):
        words = f"{summary} {'; '.join(examples)}"
        server.add_tool(made.model_copy(update={"name": name, "description": words}))
    if not searched:
        return server
    if port is None:
        server.run(transport="stdio", show_banner=False)
    else:
        server.run(transport="http", host="127.0.0.1", port=port, show_banner=False, log_level="error")
    return None


def listing(count: int) -> dict[str, Any]:
    """Say how many bytes a listing of all of them is."""
    from fastmcp import Client

    async def size() -> int:
        async with Client(peer(count, searched=False)) as client:
            return sum(
                len(tool.model_dump_json(by_alias=True, exclude_none=True))
                for tool in await client.list_tools()
            )

    return {"bytes": asyncio.run(size())}


@asynccontextmanager
async def connected(words: list[str], env: dict[str, str]) -> AsyncIterator[Any]:
    from mcp import Client, StdioServerParameters

    started = StdioServerParameters(command=words[0], args=words[1:], env=env)
    async with Client(started, mode="legacy") as client:
        yield client


@asynccontextmanager
async def reached(url: str, token: str | None) -> AsyncIterator[Any]:
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    headers = {"Authorization": f"Bearer {token}"} if token else {}
    for left in reversed(range(1500)):
        try:
            with socket.create_connection(("127.0.0.1", int(url.split(":")[2].split("/")[0])), 1):
                break
        except OSError:
            if not left:
                raise
            await asyncio.sleep(0.2)
    async with (
        create_mcp_http_client(headers=headers) as http,
        Client(streamable_http_client(url, http_client=http), mode="legacy") as client,
    ):
        yield client


async def exchange(client: Any, search: str, arguments: dict[str, Any], name: str) -> float:
    """Return the seconds of one search and one call by the door."""
    begun = time.perf_counter()
    found = await client.call_tool(search, arguments)
    said = await client.call_tool("call_tool", {"name": name, "arguments": {"text": "hello"}})
    taken = time.perf_counter() - begun
    if said.is_error or found.is_error or "hello" not in said.content[0].text:
        raise SystemExit(f"{name}: {found.content[0].text[:300]} {said.content[0].text[:300]}")
    return taken


async def compare(ours: Any, theirs: Any, count: int) -> dict[str, float]:
    """Return the medians of both, asked in turn; the first few exchanges are for the caches."""
    listed = await ours.list_tools()
    size = sum(len(tool.model_dump_json(by_alias=True, exclude_none=True)) for tool in listed.tools)
    taken: dict[str, list[float]] = {"ours": [], "peer": []}
    asked = queries(count)
    for entry, name in [*asked[:5], *asked]:
        taken["ours"].append(await exchange(ours, "find_tools", {"query": [entry]}, name))
        taken["peer"].append(await exchange(theirs, "search_tools", {"query": entry}, name))
    return {**{who: statistics.median(times[5:]) for who, times in taken.items()}, "bytes": size}


async def _measure(count: int) -> dict[str, Any]:
    here = [sys.executable, str(HERE / "serving.py"), "peer", str(count)]
    chalie = [sys.executable, "-m", "chalie.cli.main", "mcp", "serve"]
    env = dict(os.environ)
    async with connected(chalie, env) as ours, connected(here, env) as theirs:
        piped = await compare(ours, theirs, count)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = [
        subprocess.Popen([*chalie, "--http", "127.0.0.1:0"], env=env, stderr=subprocess.PIPE, text=True),
        subprocess.Popen([*here, str(port)], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL),
    ]
    try:
        assert started[0].stderr is not None
        address = next(
            (found[1] for line in started[0].stderr if (found := re.search(r"MCP at (\S+)", line))), ""
        )
        async with (
            reached(address, env["MEASURED_TOKEN"]) as ours,
            reached(f"http://127.0.0.1:{port}/mcp", None) as theirs,
        ):
            return {"piped": piped, "http": await compare(ours, theirs, count)}
    finally:
        for process in started:
            process.kill()
            process.wait()


def measure(count: int) -> dict[str, Any]:
    """Measure both, over a home that has read the tools."""
    from chalie import Host

    with Host.open() as host:
        token = host.ledger.tokens.add("measured", channel="external_agent", principal="ada")
    os.environ["MEASURED_TOKEN"] = token
    return asyncio.run(_measure(count))


def compared(folder: Path, count: int) -> dict[str, Any]:
    """Return what `measure` and `listing` say of as many tools, each in processes of their own."""
    root = str(HERE.parents[1])
    place = folder / f"served-{count}"
    path = os.pathsep.join([str(site(place / "site", count)), root])
    env = {**os.environ, "PYTHONPATH": path, "CHALIE_HOME": str(place / "home")}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    found: dict[str, Any] = {}
    for word in ("home", "measure", "bytes"):
        words = [sys.executable, str(HERE / "serving.py"), word, str(count)]
        done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(words)} failed\n{done.stdout}\n{done.stderr}")
        found |= json.loads(done.stdout.splitlines()[-1])
    return found


def figures(folder: Path, figure: Callable[..., Any], counts: tuple[int, ...]) -> Iterator[Any]:
    """Give the figures of each number of tools.

    Args:
        folder: where everything is written.
        figure: makes one: what, ours, unit, most, peer, beside.
        counts: how many tools; of the first, no slower than the peer is enough, of more, ten times as fast.
    """
    for count in counts:
        found = compared(folder, count)
        most = 1.0 if count == counts[0] else 1 / 10
        for road, way in (("piped", "on a pipe"), ("http", "over HTTP")):
            yield figure(
                f"served {way}, {count} tools: find_tools + call: p50",
                found[road]["ours"] * 1000, "ms", most, found[road]["peer"] * 1000,
                "FastMCP search_tools + call_tool",
            )  # fmt: skip
        first = found["piped"]["bytes"]
        yield figure(
            f"bytes of the first listing, {count} tools",
            first, "B", 1 / 50, found["bytes"], "listing them all",
        )  # fmt: skip


def main(word: str, count: int, *more: str) -> None:
    if word == "peer":
        peer(count, *map(int, more))
        return
    if word == "home":
        home(Path(os.environ["CHALIE_HOME"]), count)
        print(json.dumps({}))
        return
    print(json.dumps({"measure": measure, "bytes": listing}[word](count)))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
