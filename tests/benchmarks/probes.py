"""What a benchmark runs in a process of its own: each function prints one line of JSON."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import gating

#: the first of the generated packages.
NAME = "archive_invoice_0"


def ask() -> dict[str, Any]:
    """Open the host and answer one name: the whole of a short-lived program."""
    from chalie import Host

    with Host.open() as host:
        text = host.turn("chat").call("find_tools", {"query": [NAME]})
    if f'"name":"{NAME}"' not in text:
        raise SystemExit(f"not found: {text}")
    return {}


def open_() -> dict[str, Any]:
    """Time opening the host, after its imports."""
    import chalie.approvals
    import chalie.build
    import chalie.catalogue.loading
    import chalie.catalogue.plugins
    import chalie.discovery.cascade
    import chalie.dispatch.dispatcher
    import chalie.gate.gate
    import chalie.host
    import chalie.mcp.home_servers
    import chalie.schema

    begun = time.perf_counter()
    with chalie.host.Host.open():
        return {"seconds": time.perf_counter() - begun}


def pluggy_() -> dict[str, Any]:
    """Time pluggy's own loader over the same packages, after its imports and those they share."""
    import chalie.ability
    import chalie.calls
    import chalie.result
    import pluggy

    assert chalie.ability.Ability and chalie.calls.SideEffect and chalie.result.ToolResult
    manager = pluggy.PluginManager("chalie")
    begun = time.perf_counter()
    count = manager.load_setuptools_entrypoints("chalie.abilities")
    return {"seconds": time.perf_counter() - begun, "count": count}


def build() -> dict[str, Any]:
    """Time a build to the published catalogue; count the vectors that are kept."""
    import sqlite3

    from chalie.build import build
    from chalie.config import Config

    config = Config.load()
    begun = time.perf_counter()
    generation = build(config, quiet_s=0.0)  # as an installer that has run to its end has it built
    seconds = time.perf_counter() - begun
    catalogue = sqlite3.connect(f"file:{generation.path / 'catalogue.sqlite'}?mode=ro", uri=True)
    (vectors,) = catalogue.execute("SELECT count(*) FROM vectors").fetchone()
    return {"seconds": seconds, "vectors": vectors, "counts": generation.snapshot.counts()}


def calls() -> dict[str, Any]:
    """Time one trivial tool here and in FastMCP, in turn, in one process."""
    from chalie import Host
    from fastmcp import FastMCP

    server: Any = FastMCP("peer")

    @server.tool
    def echo(text: str = "") -> dict[str, Any]:
        return {"echo": {"text": text}}

    ours: list[float] = []
    peer: list[float] = []
    with Host.open() as host, asyncio.Runner() as loop:
        host.ledger.permissions.set("chat", "chalie-ability-archive-invoice-0", NAME, "allow", by="benchmark")
        turn = host.turn("chat", active=(NAME,))
        if "status=success" not in turn.call(NAME, {"text": "hello"}):
            raise SystemExit(turn.call(NAME, {"text": "hello"}))
        for _ in range(20):
            for _ in range(100):
                begun = time.perf_counter()
                turn.call(NAME, {"text": "hello"})
                ours.append(time.perf_counter() - begun)
            peer += loop.run(_peer(server, 100))
        recorded = len(host.ledger.trail.query(event="call.", name=NAME, limit=10_000))
    if recorded != 2 * (len(ours) + 1):
        raise SystemExit(f"{recorded} rows for {len(ours) + 1} calls")
    return {"ours": statistics.median(ours), "peer": statistics.median(peer)}


async def _peer(server: Any, times: int) -> list[float]:
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        await server.call_tool("echo", {"text": "hello"})
        taken.append(time.perf_counter() - begun)
    return taken


def notice() -> dict[str, Any]:
    """Time what a turn spends on noticing changes, and the look-up that others make each time."""
    import importlib.metadata

    from chalie import Host

    with Host.open() as host:
        ours = [_timed(host.upkeep.current) for _ in range(300)]
    peer = [_timed(lambda: importlib.metadata.entry_points(group="chalie.abilities")) for _ in range(10)]
    return {"ours": statistics.median(ours), "peer": statistics.median(peer)}


def memory() -> dict[str, Any]:
    """Return the resident memory of a program that opened the host and answered a name."""
    from chalie import Host

    with Host.open() as host:
        turn = host.turn("chat")
        turn.call("find_tools", {"query": [NAME]})
        turn.tools("anthropic")
        status = Path("/proc/self/status").read_text(encoding="ascii")
    (kib,) = (int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    return {"mib": kib / 1024}


def _timed(what: Any) -> float:
    begun = time.perf_counter()
    what()
    return time.perf_counter() - begun


PROBES = {
    "ask": ask,
    "build": build,
    "calls": calls,
    "memory": memory,
    "notice": notice,
    "open": open_,
    "pluggy": pluggy_,
    **gating.PROBES,
}

if __name__ == "__main__":
    print(json.dumps(PROBES[sys.argv[1]](*sys.argv[2:])))
