"""Hosts with servers of their own, and what is left of a server's processes."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from chalie import Host
from chalie.envelope import Frame, parse
from chalie.mcp.client import Client

from tests.mcp.stored import built, configure

HERE = Path(__file__).parent
QUERY = {"type": "object", "properties": {"text": {"type": "string"}}}


def raw(**told: Any) -> dict[str, Any]:
    """Return the entry of a server that misbehaves as told."""
    return {"command": sys.executable, "args": ["-I", str(HERE / "raw_server.py"), json.dumps(told)]}


def tools(*names: str, **more: Any) -> list[dict[str, Any]]:
    return [{"name": name, "description": f"Do {name}.", "inputSchema": QUERY, **more} for name in names]


@contextmanager
def client(home: Path, *, connect_s: float = 20.0, call_s: float = 20.0) -> Iterator[Client]:
    made = Client(home, connect_s=connect_s, call_s=call_s)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def hosted(home: Path, **servers: Any) -> Iterator[Host]:
    """Open a host that has read these servers and may call all of their tools."""
    configure(home, servers)
    with client(home) as first:
        for error in first.ask().values():
            assert error is None, error
    built(home)
    with Host.open(home) as host:
        allow_all(host)
        yield host


def allow_all(host: Host) -> None:
    for _, item in host.snapshot.abilities():
        if item.bare:
            host.ledger.permissions.set("chat", item.dist, item.name, "allow", by="terminal:ada")


def call(host: Host, name: str, /, **arguments: Any) -> Frame:
    return parse(host.turn(active=[name]).call(name, {**arguments, "act_summary": "trying"}))


def received(log: Path, method: str) -> list[Any]:
    """Return what a server got of one method."""
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return [message for message in map(json.loads, lines) if message["method"] == method]


def eventually(found: Any, seconds: float = 10.0) -> Any:
    """Wait until something is true, and return it; after the time it is returned as it is."""
    deadline = time.monotonic() + seconds
    while not (value := found()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return value


def alive(pids: list[int]) -> list[int]:
    """Return which processes run; one that has ended and waits to be looked at does not."""
    running = []
    for pid in pids:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue
        if stat.rpartition(")")[2].split()[0] != "Z":
            running.append(pid)
    return running


def clinging(path: Path) -> list[int]:
    """Return the processes that a clinging server wrote down."""
    text = eventually(lambda: path.exists() and len(path.read_text().split()) == 3 and path.read_text())
    return [int(pid) for pid in text.split()]
