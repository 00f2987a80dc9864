"""`chalie mcp` for servers whose tools join the host: added, reached, listed, trusted, taken over."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from chalie.catalogue.servers import Availability, note_availability

from tests.mcp.reaching import raw, tools
from tests.mcp.stored import configure, known, tool

from .conftest import Ran

Chalie = Callable[..., Ran]


def test_a_server_is_added_reached_and_its_tools_are_found(chalie: Chalie, home: Path) -> None:
    entry = raw(tools=[*tools("say"), {"name": "bad", "inputSchema": {}}])
    done = chalie("mcp", "add", "raw", "--env", "KEY=s3cret", "--", entry["command"], *entry["args"])
    assert done.code == 0 and "raw: 1 tools, protocol 2025-11-25" in done.out
    assert "raw bad: left out" in done.err
    written = json.loads((home / "mcp.json").read_text())["mcpServers"]["raw"]
    assert written == {"command": entry["command"], "args": entry["args"], "env": {"KEY": "s3cret"}}
    assert (home / "mcp.json").stat().st_mode & 0o077 == 0
    assert [row["name"] for row in chalie("find", "say", "--json").json["injected"]] == ["_mcp_raw_say"]
    told = chalie("mcp", "list", "--json")
    (row,) = told.json["servers"]
    assert (row["reach"], row["tools"], row["left_out"], row["trusted"]) == ("ok", 1, 1, False)
    assert "s3cret" not in told.out + chalie("mcp", "list").out
    tested = chalie("mcp", "test", "raw", "--json").json
    assert (tested["protocol"], tested["tools"]) == ("2025-11-25", ["say"])
    assert tested["left_out"][0]["tool"] == "tool: bad"


def test_a_server_that_cannot_be_reached_stays_with_its_reason(chalie: Chalie, home: Path) -> None:
    done = chalie("mcp", "add", "gone", "--", "no-such-program-anywhere")
    assert done.code == 5 and "No such file" in done.err and "[not-connected]" in done.err
    (row,) = chalie("mcp", "list", "--json").json["servers"]
    assert row["reach"] == "not_connected" and "No such file" in row["reason"]
    assert chalie("mcp", "test", "gone").code == 5


REFUSED = [
    (["x"], "say how it is reached"),
    (["x", "--url", "http://y", "--", "z"], "say how it is reached"),
    (["x", "--url", "ftp://y"], "a url that is not http"),
    (["x", "--env", "novalue", "--", "z"], "--env takes NAME=VALUE"),
    (["time", "--no-connect", "--", "z"], "has a server 'time' already"),
    (["TIME", "--no-connect", "--", "z"], "has a server 'time' already"),
]


def test_what_cannot_be_added_is_refused_and_nothing_is_written(chalie: Chalie, home: Path) -> None:
    configure(home, {"time": {"command": "t"}})
    before = (home / "mcp.json").read_text()
    for words, said in REFUSED:
        done = chalie("mcp", "add", *words)
        assert done.code != 0 and said in done.err, words
    assert (home / "mcp.json").read_text() == before


def test_what_else_the_file_holds_is_left_alone(chalie: Chalie, home: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "mcp.json").write_text('{"inputs": [1], "mcpServers": {"a": {"command": "x", "own": true}}}')
    assert chalie("mcp", "add", "b", "--no-connect", "--url", "http://localhost:1/mcp").code == 0
    whole = json.loads((home / "mcp.json").read_text())
    assert whole["inputs"] == [1] and whole["mcpServers"]["a"]["own"] is True and "b" in whole["mcpServers"]


def test_a_removed_servers_tools_are_gone(chalie: Chalie, home: Path) -> None:
    known(home, web=[tool()])
    assert chalie("find", "search").code == 0
    assert chalie("mcp", "remove", "web").code == 0
    assert chalie("find", "search").code == 1
    assert not list((home / "mcp").iterdir())
    assert chalie("mcp", "remove", "web").code == 1


def test_another_clients_file_is_taken_over_and_what_is_wrong_with_it_named(
    chalie: Chalie, home: Path, tmp_path: Path
) -> None:
    configure(home, {"here": {"command": "x"}})
    theirs = tmp_path / "claude_desktop_config.json"
    servers = {"here": {"command": "y"}, "odd": {"url": "x", "type": "sse"}, "raw": raw(), "more": raw()}
    theirs.write_text(json.dumps({"globalShortcut": "", "mcpServers": servers}))
    done = chalie("mcp", "import", str(theirs), "raw", "here", "odd")
    assert done.code == 0 and "taken over: raw" in done.out and "raw: 1 tools" in done.out
    assert "here is left out" in done.err and "odd is left out" in done.err
    kept = json.loads((home / "mcp.json").read_text())["mcpServers"]
    assert kept["here"] == {"command": "x"} and set(kept) == {"here", "raw"}
    missing = chalie("mcp", "import", str(theirs), "nobody")
    assert missing.code == 3 and "no server nobody; it has here, odd, raw, more" in missing.err


def test_a_vs_code_file_is_taken_over_too(chalie: Chalie, home: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "mcp.json"
    theirs.write_text(json.dumps({"servers": {"docs": {"type": "http", "url": "https://localhost:1/mcp"}}}))
    assert chalie("mcp", "import", str(theirs), "--no-connect").code == 0
    assert "docs" in json.loads((home / "mcp.json").read_text())["mcpServers"]


def test_a_live_search_asks_the_servers_first(chalie: Chalie, home: Path) -> None:
    configure(home, {"raw": raw(tools=tools("say", "shout"))})
    assert chalie("find", "shout").code == 1
    found = chalie("find", "shout", "--live", "--json").json["injected"]
    assert [row["name"] for row in found] == ["_mcp_raw_shout"]
    note_availability(home, "raw", Availability("not_connected", "it was down"))
    assert chalie("find", "shout", "--json").json["injected"][0]["reason"] == "it was down"
    assert "availability" not in chalie("find", "shout", "--live", "--json").json["injected"][0]


def test_trusting_a_server_lets_its_word_count_until_its_entry_changes(
    chalie: Chalie, home: Path, token: str
) -> None:
    known(home, web=[tool(annotations={"readOnlyHint": True})])

    def effect() -> str:
        return str(chalie("list", "mcp:web", "--json").json["tools"][0]["effect"])

    def explained() -> str:
        return chalie("explain", "_mcp_web_search", "--json").out

    assert effect() == "destructive" and '"effect": "read"' not in explained()
    done = chalie("trust", "mcp:web")
    assert done.code == 0 and "counts now: 1 read" in done.out
    assert effect() == "read" and '"effect": "read"' in explained()
    assert chalie("show", "_mcp_web_search", "--json").json["permissions"][0]["effect"] == "read"
    assert chalie("mcp", "list", "--json").json["servers"][0]["trusted"] is True
    configure(home, {"web": {"command": "web-server", "args": ["--more"]}})
    assert effect() == "destructive"
    assert chalie("trust", "mcp:web").code == 0 and effect() == "read"
    assert chalie("distrust", "mcp:web").code == 0 and effect() == "destructive"
    for words in (["trust", "mcp:nobody"], ["list", "mcp:nobody"]):
        assert "no server nobody is configured [unknown-server]" in chalie(*words).err


def test_trusting_takes_a_person(chalie: Chalie, home: Path) -> None:
    known(home, web=[tool()])
    refused = chalie("trust", "mcp:web")
    assert refused.code == 4 and "not-authorised" in refused.err


def test_secrets_among_a_programs_arguments_and_in_an_address_are_not_shown(
    chalie: Chalie, home: Path
) -> None:
    args = ["--api-key", "s3cret-one", "--token=s3cret-two", "--plain", "seen"]
    url = "https://user:s3cret-three@host/mcp?key=s3cret-four"
    configure(home, {"a": {"command": "x", "args": args}, "b": {"url": url, "headers": {"X": "s3cret-five"}}})
    for words in (["mcp", "list"], ["mcp", "list", "--json"], ["doctor"], ["list", "--json"]):
        ran = chalie(*words)
        assert "s3cret" not in ran.out + ran.err
    shown = {row["name"]: row["reached_by"] for row in chalie("mcp", "list", "--json").json["servers"]}
    assert shown == {"a": "x --api-key ••• --token=••• --plain seen", "b": "https://host/mcp"}


def test_no_server_is_said_and_a_broken_file_is_one_line(chalie: Chalie, home: Path) -> None:
    none = chalie("mcp", "list")
    assert none.code == 1 and "chalie mcp add" in none.err
    (home / "mcp.json").write_text("{")
    broken = chalie("mcp", "list")
    assert broken.code == 3 and "is not JSON" in broken.err and "Traceback" not in broken.err
    assert chalie("mcp", "refresh", "nobody").code == 3
