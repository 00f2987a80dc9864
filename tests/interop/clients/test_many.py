"""A hundred clients at once, ten thousand calls: none lost, none crossed, memory as it was."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from chalie.envelope import parse
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from tests.mcp.served import Running, Served, running, texts

CLIENTS, CALLS, ROUNDS = 100, 20, 5
#: KiB by which a server may grow over the last four fifths of the calls.
GROWTH_KIB = 24 * 1024


def kib(pid: int) -> int:
    """Return the resident memory of a process in KiB."""
    return int(subprocess.check_output(["ps", "-o", "rss=", "-p", str(pid)], text=True))


async def work(door: Running, token: str, number: int, start: int) -> Counter[str]:
    """Make some calls as one principal; odd ones in the old era, even ones in the new."""
    said: Counter[str] = Counter()
    headers = {"Authorization": f"Bearer {token}"}
    mode = "legacy" if number % 2 else "2026-07-28"
    async with (
        create_mcp_http_client(headers=headers) as http,
        Client(streamable_http_client(door.url, http_client=http), mode=mode) as client,
    ):
        for turn in range(start, start + CALLS):
            text = f"{number}-{turn}"
            answer = await client.call_tool("call_tool", {"name": "echo", "arguments": {"text": text}})
            body = json.loads(parse(texts(answer)).body)
            assert body == {"echo": {"text": text}, "for": f"p{number}"}
            said[text] += 1
    return said


def test_ten_thousand_calls_of_a_hundred_clients(read_once: Served, tmp_path: Path) -> None:
    with running(read_once.copied(tmp_path / "home")) as door:
        tokens = [door.token(f"c{number}", principal=f"p{number}") for number in range(CLIENTS)]

        async def at_once(start: int) -> Counter[str]:
            works = (work(door, token, number, start) for number, token in enumerate(tokens))
            return sum(await asyncio.gather(*works), Counter())

        sizes: list[int] = []
        said: Counter[str] = Counter()
        for part in range(ROUNDS):
            said += asyncio.run(at_once(part * CALLS))
            sizes.append(kib(door.process.pid))
        with door.served.ledger() as ledger:
            rows = ledger._fast.read(
                "SELECT principal, count(*) FROM trail WHERE event = 'call.finished' AND name = 'echo' "
                "AND status = 'success' GROUP BY principal"
            )
    print(f"resident KiB after each {CLIENTS * CALLS} calls: {sizes}")
    assert len(said) == CLIENTS * CALLS * ROUNDS == 10_000 and set(said.values()) == {1}
    assert dict(rows) == {f"p{number}": CALLS * ROUNDS for number in range(CLIENTS)}
    assert sizes[-1] - sizes[0] < GROWTH_KIB, sizes
    assert not any("Traceback" in line for line in door.said), "".join(door.said)


@pytest.mark.asyncio
async def test_a_session_that_is_never_ended_costs_no_more_than_the_next(
    read_once: Served, tmp_path: Path
) -> None:
    """Clients that come, search and go without a word: what is kept of them is bounded."""
    from chalie import Host
    from chalie.mcp.doors import Caller
    from chalie.mcp.sessions import MOST, MOST_FOUND, Sessions

    with Host.open(read_once.copied(tmp_path / "home").home) as host:
        sessions = Sessions()
        caller = Caller("c", "c", "external_agent", "ada")
        found = [descriptor for _, descriptor in host.snapshot.abilities()]
        for number in range(MOST + 100):
            sessions.of(("session", number), caller, None).find({each.name: each for each in found})
        assert len(sessions) == MOST
        assert all(len(session.found(host.snapshot)) <= MOST_FOUND for session in sessions.all())
