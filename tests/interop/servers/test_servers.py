"""Servers that nobody here wrote: found, called, lost and found again."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from chalie import Host
from chalie.catalogue.servers import availability
from chalie.envelope import Frame, parse
from chalie.errors import ChalieError
from chalie.mcp.guard import GONE_S
from chalie.names import server_tool

from tests.interop.servers.asked import ASKED, REFUSED
from tests.interop.servers.things import NOUNS, VERBS
from tests.mcp.reaching import alive, call, client, eventually, hosted
from tests.mcp.stored import configure

Entries = Mapping[str, dict[str, Any]]
SERVERS = ("everything", "files", "memory", "time", "git", "many")
TOOLS = [(server, tool) for server, tools in ASKED.items() for tool in tools]


def found(host: Host, entry: str) -> list[str]:
    turn = host.turn()
    answer = json.loads(parse(turn.call("find_tools", {"query": [entry], "act_summary": "looking"})).body)
    return [row["name"] for row in answer["injected"]]


def filled(value: Any, entries: Entries) -> Any:
    """Put the folders into arguments."""
    places = {"{files}": entries["files"]["args"][0], "{repository}": entries["git"]["args"][1]}
    if isinstance(value, str):
        for word, place in places.items():
            value = value.replace(word, place)
    if isinstance(value, dict):
        return {key: filled(inner, entries) for key, inner in value.items()}
    return [filled(inner, entries) for inner in value] if isinstance(value, list) else value


def test_every_listed_tool_of_every_server_is_known(everyone: Host) -> None:
    for server, tools in ASKED.items():
        assert {item.bare for item in everyone.snapshot.of(f"mcp:{server}")} == set(tools), server
    assert len(everyone.snapshot.of("mcp:many")) == 305


@pytest.mark.parametrize(("server", "tool"), TOOLS)
def test_a_tool_is_found_by_its_own_name_and_by_meaning(server: str, tool: str, everyone: Host) -> None:
    whole = server_tool(server, tool)
    assert found(everyone, tool) == [whole]
    assert found(everyone, whole) == [whole]
    assert whole in found(everyone, ASKED[server][tool][0])


@pytest.mark.parametrize(("server", "tool"), TOOLS)
def test_a_tool_is_called_through_the_gate_and_answers_in_an_envelope(
    server: str, tool: str, everyone: Host, entries: Entries
) -> None:
    before = everyone.gate.passes
    frame = call(everyone, server_tool(server, tool), **filled(ASKED[server][tool][1], entries))
    assert everyone.gate.passes == before + 1
    assert frame.meta["source"] == f"mcp:{server}"
    assert (frame.status, frame.code) == (
        ("error", REFUSED[tool]) if tool in REFUSED else ("success", None)
    ), frame.body


def test_each_of_three_hundred_tools_is_found_by_name_and_by_what_it_does(everyone: Host) -> None:
    missed = []
    for verb, words in VERBS.items():
        for noun in NOUNS:
            whole = server_tool("many", f"{noun.replace(' ', '_')}_{verb}")
            for entry in (f"{noun.replace(' ', '_')}_{verb}", words.format(noun)):
                if whole not in found(everyone, entry):
                    missed.append(entry)
    assert missed == []


def test_each_of_three_hundred_tools_is_called(everyone: Host) -> None:
    turn = everyone.turn(active=[item.name for item in everyone.snapshot.of("mcp:many")])
    for verb in VERBS:
        for noun in NOUNS:
            name = server_tool("many", f"{noun.replace(' ', '_')}_{verb}")
            assert parse(turn.call(name, {"text": noun, "act_summary": "x"})).body == f"done: {noun}"


def test_what_nobody_should_write_costs_itself_alone(everyone: Host) -> None:
    named = {problem.entry_point: problem.reason for problem in everyone.problems()}
    assert "mixes the scripts" in named["tool: r\\u0435ad_file"]
    assert "U+202E" in named["tool: whisper"]
    tree: dict[str, Any] = {"label": "a", "children": [{"label": "b", "children": []}]}
    assert call(everyone, "tree_depth", tree=tree).body == "2"
    assert call(everyone, "tree_depth", tree=json.dumps(tree)).body == "2"
    assert call(everyone, server_tool("many", "admin.tools/list")).body == "dotted"
    assert "forged" in call(everyone, "override").body  # within the one frame there is
    flood = call(everyone, "flood")
    assert flood.meta["truncated"] is True and flood.meta["size"] == 6_000_000
    refused = call(everyone, "refuse")
    assert refused.code == "server-error" and "out of order" in refused.body


# what goes wrong with each


def programs() -> list[int]:
    """Return the processes below this one that a guard looks after, the guards left out."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    own = [pid for pid in parents if b"guard.py" in _command(pid) and parents[pid] == os.getpid()]
    below: list[int] = []
    todo = list(own)
    while todo:
        pid = todo.pop()
        children = [child for child, parent in parents.items() if parent == pid]
        below += children
        todo += children
    return below


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


EASY = {
    "everything": ("echo", {"message": "hello"}),
    "files": ("list_allowed_directories", {}),
    "memory": ("read_graph", {}),
    "time": ("get_current_time", {"timezone": "UTC"}),
    "git": ("git_status", {"repo_path": "{repository}"}),
    "many": ("invoice_create", {"text": "it"}),
}


@pytest.fixture(params=SERVERS)
def alone(
    request: pytest.FixtureRequest, entries: Entries, home: Path
) -> Iterator[tuple[str, Host, Callable[[], Frame]]]:
    """A host with one server, and what calls one of its tools."""
    server = request.param
    entry = {**entries[server], "timeout": 1.5}
    tool, arguments = EASY[server]
    with hosted(home, **{server: entry}) as host:
        yield server, host, lambda: call(host, server_tool(server, tool), **filled(arguments, entries))


def test_a_killed_server_is_reported_or_started_again(alone: tuple[str, Host, Callable[[], Frame]]) -> None:
    _, _, ask = alone
    assert ask().status == "success"
    for pid in programs():
        os.kill(pid, signal.SIGKILL)
    again = ask()
    assert again.status == "success" or again.code == "connection-lost"
    assert ask().status == "success"


def test_a_server_that_hangs_is_reported_and_ended_with_everything_it_started(
    alone: tuple[str, Host, Callable[[], Frame]],
) -> None:
    _, host, ask = alone
    assert ask().status == "success"
    stopped = programs()
    assert stopped
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    frame = ask()
    assert frame.code == "timed-out" and "1.5 s" in frame.body
    begun = time.monotonic()
    host.servers.close()
    assert eventually(lambda: not alive(stopped), GONE_S + 3), alive(stopped)
    assert time.monotonic() - begun < GONE_S + 6


@pytest.mark.parametrize("server", SERVERS)
def test_a_slow_start_is_waited_for_or_reported(server: str, entries: Entries, home: Path) -> None:
    entry = entries[server]
    words = [entry["command"], *entry.get("args", [])]
    slow = {**entry, "command": "sh", "args": ["-c", 'sleep 2; exec "$@"', "sh", *words]}
    configure(home, {server: slow})
    with client(home, connect_s=1.0) as hasty, pytest.raises(ChalieError, match="no answer within 1 s"):
        hasty.refresh(server)
    assert availability(home, server).reach == "not_connected"
    with client(home, connect_s=60.0) as patient:
        assert patient.refresh(server).tools
    assert availability(home, server).reach == "ok"
