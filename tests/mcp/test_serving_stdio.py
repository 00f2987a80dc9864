"""The door on standard input and output, a process of its own: what it says there, and how it ends."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from chalie.envelope import parse
from chalie.ledger import Ledger
from mcp import Client, StdioServerParameters

from .served import Served, texts, until

#: seconds in which a server is gone after its client, or a signal, ended it.
GONE_S = 15.0


class Pipe:
    """A server's process and what it says, line by line."""

    def __init__(self, served: Served, *words: str) -> None:
        self.process = subprocess.Popen(
            [*served.words, *words],
            env=served.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.lines: queue.Queue[str] = queue.Queue()
        self.said: list[Any] = []
        self.aside: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._read_aside, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)

    def _read_aside(self) -> None:
        assert self.process.stderr is not None
        self.aside.extend(self.process.stderr)

    def send(self, method: str, params: Any = None, id: int | None = None) -> None:
        assert self.process.stdin is not None
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        message |= {} if id is None else {"id": id}
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def call(self, name: str, id: int, **arguments: Any) -> None:
        self.send(
            "tools/call", {"name": "call_tool", "arguments": {"name": name, "arguments": arguments}}, id
        )

    def answer(self, id: int, seconds: float = 30.0) -> Any:
        """Return the answer to a request; what else is said meanwhile is kept, and must be JSON-RPC too."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                line = self.lines.get(timeout=0.5)
            except queue.Empty:
                assert not self.is_gone(), "".join(self.aside)
                continue
            message = json.loads(line)
            assert message["jsonrpc"] == "2.0"
            self.said.append(message)
            if message.get("id") == id:
                return message
        raise AssertionError(f"no answer to {id}: {''.join(self.aside)}")

    def initialize(self) -> None:
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        self.send("initialize", hello, 1)
        assert self.answer(1)["result"]["protocolVersion"] == "2025-11-25"
        self.send("notifications/initialized")

    def is_gone(self) -> bool:
        return self.process.poll() is not None


def started(ledger: Ledger, name: str) -> list[Any]:
    return [row for row in ledger.trail.query(event="call.started") if row.name == name]


@contextmanager
def piped(served: Served, *words: str) -> Iterator[Pipe]:
    pipe = Pipe(served, *words)
    try:
        yield pipe
    finally:
        pipe.process.kill()
        pipe.process.wait()


def test_one_session_from_its_beginning_to_the_end_of_its_client(served: Served) -> None:
    with piped(served) as pipe:
        pipe.initialize()
        # what tools print, and what they start prints, is not on the wire
        pipe.call("chatter", 2)
        printed = pipe.answer(2)["result"]
        assert not printed["isError"], printed
        assert until(lambda: any("from a child" in line for line in pipe.aside))
        # a tool that blocks stops neither pings nor other calls, and a call that was given up has no answer
        pipe.call("nap", 3, n=2500)
        pipe.send("ping", id=4)
        pipe.call("echo", 5, text="meanwhile")
        pipe.answer(4)
        pipe.answer(5)
        assert all(message.get("id") != 3 for message in pipe.said)
        pipe.send("notifications/cancelled", {"requestId": 3})
        # given up just as it ends: at most one answer, and the session lives
        for number in range(10, 20):
            pipe.call("echo", number, text="x")
            pipe.send("notifications/cancelled", {"requestId": number})
        pipe.call("nap", 6, n=2600)
        pipe.answer(6)
        answers = [message["id"] for message in pipe.said if "id" in message]
        assert 3 not in answers and len(set(answers)) == len(answers)
        # what is no JSON-RPC at all costs nothing
        assert pipe.process.stdin is not None
        pipe.process.stdin.write("this is not JSON\n\n[1, 2\n")
        pipe.send("tools/list", id=7)
        assert {tool["name"] for tool in pipe.answer(7)["result"]["tools"]} >= {"call_tool", "find_tools"}
        # its client goes while a call runs
        pipe.call("nap", 8, n=3000)
        with served.ledger() as ledger:
            assert until(lambda: len(started(ledger, "nap")) == 3)
        pipe.process.stdin.close()
        assert until(pipe.is_gone, GONE_S) and pipe.process.returncode == 0
        assert not any("Traceback" in line for line in pipe.aside), "".join(pipe.aside)
    with served.ledger() as ledger:
        ended = [row for row in ledger.trail.query() if row.name == "nap" and row.code is not None]
        assert {row.code for row in ended} == {"cancelled"} and len(ended) == 2


def test_a_signal_ends_it_and_what_it_started(served: Served) -> None:
    with piped(served) as pipe:
        pipe.initialize()
        pipe.call("worker", 2)
        worker = int(parse(pipe.answer(2)["result"]["content"][0]["text"]).body)
        os.kill(worker, 0)
        pipe.call("nap", 3, n=3000)
        with served.ledger() as ledger:
            assert until(lambda: len(started(ledger, "nap")) == 1)
        pipe.process.send_signal(signal.SIGTERM)
        assert until(pipe.is_gone, GONE_S) and pipe.process.returncode == 0
        assert until(lambda: not is_alive(worker), GONE_S)
        assert not any("Traceback" in line for line in pipe.aside), "".join(pipe.aside)
    with served.ledger() as ledger:
        (ended,) = [row for row in ledger.trail.query() if row.name == "nap" and row.code is not None]
    assert ended.code == "cancelled"


def test_killed_outright_it_leaves_no_process_behind(served: Served) -> None:
    with piped(served) as pipe:
        pipe.initialize()
        pipe.call("worker", 2)
        worker = int(parse(pipe.answer(2)["result"]["content"][0]["text"]).body)
        pipe.process.kill()
        assert until(lambda: not is_alive(worker), GONE_S)


def is_alive(pid: int) -> bool:
    """Tell whether a process runs; one that has ended and waits to be asked about does not."""
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return bool(done.stdout.strip()) and not done.stdout.startswith("Z")


@pytest.mark.asyncio
async def test_a_client_of_the_new_era_is_served_by_the_same_command(served: Served) -> None:
    words = served.words
    started = StdioServerParameters(command=words[0], args=words[1:], env=served.env)
    async with Client(started, mode="auto") as client:
        assert client.protocol_version == "2026-07-28"
        found = texts(await client.call_tool("find_tools", {"query": ["repeat what I say"]}))
        assert '"name":"echo"' in found
        assert "echo" in [tool.name for tool in (await client.list_tools()).tools]
        assert '"text":"hi"' in texts(await client.call_tool("echo", {"text": "hi"}))
