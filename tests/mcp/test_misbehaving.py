"""Servers that flood, cut their texts, use codes of the SDK for themselves, and say what they were told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chalie.catalogue.server_file import Server
from chalie.catalogue.server_secrets import masked, reached_by
from chalie.catalogue.servers import listing
from chalie.cli.main import main
from chalie.errors import ChalieError
from chalie.mcp.metered import BURST, PER_S, Metered
from mcp_types import JSONRPCNotification, JSONRPCResponse

from .reaching import call, client, hosted, raw, received, tools
from .stored import configure

SECRET = "SEKRET42x"

ENTRIES: dict[str, dict[str, Any]] = {
    "an option's word": {"command": "x", "args": ["--api-key", SECRET]},
    "an option's value": {"command": "x", "args": ["--token=" + SECRET]},
    "a variable": {"command": "docker", "args": ["run", "-e", "API_TOKEN=" + SECRET, "img"]},
    "a header": {"command": "x", "args": ["--header", "Authorization: Bearer " + SECRET]},
    "a header in short": {"command": "x", "args": ["-H", "X-Api-Key:" + SECRET]},
    "an address's query": {"command": "npx", "args": ["mcp-remote", f"https://a.example/mcp?key={SECRET}"]},
    "an address's user": {"command": "x", "args": [f"postgresql://joe:{SECRET}@db/x"]},
    "a service's form": {"command": "x", "args": ["ghp_" + SECRET], "env": {"K": SECRET}},
    "a url's query": {"url": f"http://a.example/mcp?key={SECRET}"},
    "a url's user": {"url": f"http://me:{SECRET}@a.example/mcp"},
    "a url's path": {"url": f"https://a.example/mcp/s/{SECRET * 3}/mcp"},
    "a url that is none": {"url": f"http://[{SECRET}@?{SECRET}"},
    "the environment": {"command": "x", "env": {"K": SECRET}},
    "a sent header": {"url": "http://a.example/mcp", "headers": {"Authorization": f"Bearer {SECRET}\n"}},
}


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=list(ENTRIES))
def test_what_is_secret_in_an_entry_is_neither_listed_nor_repeated(entry: dict[str, Any]) -> None:
    facts = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
    server = Server("s", "s", **facts)
    assert SECRET not in reached_by(server)
    if not any(mark in server.url for mark in ("[", "/s/")):
        assert masked(server, f"I was told {SECRET}, was I?") != f"I was told {SECRET}, was I?"
        assert SECRET not in masked(server, f"I was told ghp_{SECRET}, {SECRET}\n, was I?")


def test_what_is_not_secret_is_shown_as_it_is() -> None:
    words = ("run", "--root", "/srv/files", "--port=80", "https://a.example/mcp", "C:/x", "stdio")
    assert reached_by(Server("s", "s", command="x", args=words)) == " ".join(("x", *words))
    assert masked(Server("s", "s", command="x", args=words), "stdio run") == "stdio run"
    address = "https://a.example/a-long-name-without-a-number/v1/mcp"
    assert reached_by(Server("s", "s", url=address)) == address


def test_a_key_in_an_address_is_masked_where_it_is_repeated() -> None:
    server = Server("s", "s", url=f"https://a.example/mcp/s/{SECRET * 3}/mcp")
    assert masked(server, f"no {SECRET * 3} here") == "no ••• here"


def test_one_entry_with_a_bad_address_costs_the_list_nothing(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(home, {"bad": {"url": "http://[x"}, "good": {"command": "good-server"}})
    assert main(["mcp", "list"]) == 0
    assert "good-server" in capsys.readouterr().out


def test_a_header_that_cannot_be_sent_is_not_shown(home: Path) -> None:
    headers = {"Authorization": f"Bearer {SECRET}\n"}
    configure(home, {"web": {"url": "http://127.0.0.1:9/mcp", "headers": headers}})
    with client(home) as reaching:
        (error,) = reaching.ask().values()
    assert error is not None and SECRET not in error.message
    assert SECRET not in "".join(path.read_text() for path in (home / "mcp").iterdir())


def test_an_error_under_a_code_of_the_sdk_is_an_answer_like_any_other(home: Path, tmp_path: Path) -> None:
    wrong = {"code": -32000, "message": f"not with the key {SECRET}"}
    log = tmp_path / "log"
    entry = raw(errors={"tools/call": wrong, "server/discover": wrong}, log=str(log))
    with hosted(home, odd={**entry, "env": {"KEY": SECRET}}) as host:
        for _ in range(2):
            frame = call(host, "say", text="x")
            assert frame.code == "server-error"
            assert "the server odd refused the call: not with the key •••" in frame.body
        assert len(received(log, "tools/call")) == 2
        # of the client that read it first, and of the host: it was not started again
        assert len(received(log, "initialize")) == 2


@pytest.mark.parametrize("method", ["notifications/message", "sampling/createMessage"])
def test_a_server_that_floods_is_given_up_and_the_reason_said(home: Path, method: str) -> None:
    configure(home, {"loud": raw(floods=method, hang="tools/list")})
    with client(home, connect_s=20.0) as reaching, pytest.raises(ChalieError) as caught:
        reaching.refresh("loud")
    assert f"it sent over {BURST} messages that nobody asked for" in caught.value.message


@pytest.mark.anyio
async def test_what_is_asked_for_and_what_comes_in_its_time_is_not_counted_out() -> None:
    now = [0.0]
    blamed: list[str] = []

    class Message:
        def __init__(self, message: Any) -> None:
            self.message = message

    told = Message(JSONRPCNotification(jsonrpc="2.0", method="notifications/progress"))
    answer = Message(JSONRPCResponse(jsonrpc="2.0", id=1, result={}))

    class Stream:
        given = told

        async def __anext__(self) -> Any:
            return self.given

    stream = Stream()
    metered = Metered(stream, blamed.append, lambda: now[0])
    for _ in range(BURST * 3):
        await metered.__anext__()
        now[0] += 1 / PER_S
    stream.given = answer
    for _ in range(BURST * 3):
        await metered.__anext__()
    stream.given = told
    with pytest.raises(StopAsyncIteration):
        for _ in range(BURST + 1):
            await metered.__anext__()
    assert len(blamed) == 1


def test_a_text_that_was_cut_within_a_character_is_an_answer_all_the_same(home: Path) -> None:
    cut = {"content": [{"type": "text", "text": "cut here: \ud83d, whole: \U0001f600"}]}
    with hosted(home, cut={**raw(answers={"say": cut}), "timeout": 8}) as host:
        assert call(host, "say", text="x").body == "cut here: ?, whole: \U0001f600"


def test_no_more_tools_are_read_of_one_page_than_of_many(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chalie.mcp.pages.MOST_TOOLS", 5)
    configure(
        home, {"many": raw(tools=tools(*(f"t{n}" for n in range(9)))), "few": raw(tools=tools(*"abcde"))}
    )
    with client(home) as reaching:
        assert set(reaching.ask().values()) == {None}
    many, few = listing(home, "many"), listing(home, "few")
    assert many is not None and len(many.tools) == 5
    assert [reason for _, reason, _ in many.problems] == ["it lists over 5 tools; the rest is not read"]
    assert few is not None and len(few.tools) == 5 and not few.problems
