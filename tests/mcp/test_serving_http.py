"""The door on HTTP, a process of its own: who gets in, who sees what, and what is written down of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import httpx
import pytest
from chalie.envelope import parse
from chalie.errors import ConfigError
from chalie.mcp.http import LARGEST_BODY, Doorkeeper, address, is_loopback, listening
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError

from .served import Person, Running, Served, running, texts, until

Era = Literal["legacy", "2026-07-28"]
era = pytest.mark.parametrize("mode", ("legacy", "2026-07-28"))
DEPLOY = {"name": "deploy", "arguments": {"text": "now"}}
OWN = ["find_tools", "find_skills", "read_result"]


@pytest.fixture(scope="module")
def door(read_once: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One server for this file: whoever is at the client may be asked."""
    with running(read_once.copied(tmp_path_factory.mktemp("http") / "home"), "--person-at-client") as found:
        yield found


@asynccontextmanager
async def client(
    door: Running, token: str, mode: Era, conversation: str | None = None, **more: Any
) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"}
    if conversation is not None:
        headers["Chalie-Conversation"] = conversation
    async with (
        create_mcp_http_client(headers=headers) as http,
        Client(streamable_http_client(door.url, http_client=http), mode=mode, **more) as opened,
    ):
        yield opened


def post(door: Running, body: Any = None, **headers: str) -> httpx.Response:
    asked = body or {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    known = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    content = asked if isinstance(asked, bytes) else json.dumps(asked).encode()
    return httpx.post(door.url, content=content, headers={**known, **headers}, timeout=30)


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


# who gets in


def test_without_a_token_that_is_good_there_is_no_call_of_any_kind(door: Running) -> None:
    token = door.token("revoked")
    with door.served.ledger() as ledger:
        ledger.tokens.revoke("revoked")
    for given in ({}, {"authorization": f"Bearer {token}"}, {"authorization": token}, {"authorization": ""}):
        for method in ("GET", "POST", "DELETE", "PUT"):
            said = httpx.request(method, door.url, headers=given)
            assert said.status_code == 401 and said.headers["www-authenticate"].startswith("Bearer")
            assert "chalie tokens add" in said.json()["hint"]
    assert httpx.post(f"{door.url}?token={token}").status_code == 401


def test_a_token_that_is_revoked_is_good_no_more_within_its_session(door: Running) -> None:
    token = door.token("briefly")
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    opened = post(door, hello, authorization=f"Bearer {token}")
    assert opened.status_code == 200
    session = {"authorization": f"Bearer {token}", "mcp-session-id": opened.headers["mcp-session-id"]}
    assert post(door, **session).status_code == 200
    with door.served.ledger() as ledger:
        ledger.tokens.revoke("briefly")
    assert post(door, **session).status_code == 401


def test_another_token_does_not_get_into_a_session(door: Running) -> None:
    one, two = door.token("one"), door.token("two")
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    session = post(door, hello, authorization=f"Bearer {one}").headers["mcp-session-id"]
    stolen = {"authorization": f"Bearer {two}", "mcp-session-id": session}
    assert post(door, **stolen).status_code == 404
    assert httpx.get(door.url, headers={**stolen, "accept": "text/event-stream"}).status_code == 404


@pytest.mark.parametrize(
    "name", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "[::1"]
)
def test_a_page_cannot_reach_this_machine_under_a_name_of_its_own(door: Running, name: str) -> None:
    assert post(door, host=name, authorization=f"Bearer {door.token(name)}").status_code == 421


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "http://localhost.evil.example", "file://localhost", "localhost"],
)
def test_a_page_of_another_origin_may_not_ask(door: Running, origin: str) -> None:
    assert post(door, origin=origin, authorization=f"Bearer {door.token(origin)}").status_code == 403


def test_known_names_and_origins_come_in(door: Running) -> None:
    port = door.url.split(":")[2].split("/")[0]
    given = {"authorization": f"Bearer {door.token('names')}", "mcp-protocol-version": "2026-07-28"}
    for name in (f"localhost:{port}", f"127.0.0.1:{port}", "LOCALHOST", f"[::1]:{port}"):
        assert post(door, host=name, **given).status_code == 400  # it is in, and no request of that era
    for origin in (f"http://localhost:{port}", "http://127.0.0.1", "https://[::1]:9"):
        assert post(door, origin=origin, **given).status_code == 400
    assert httpx.get(door.url.replace("/mcp", "/other"), headers=given).status_code == 404


@pytest.mark.asyncio
async def test_an_allowed_origin_and_host_are_let_in_and_the_token_goes_no_further() -> None:
    from datetime import UTC, datetime

    from chalie.ledger.tokens import TokenRow

    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope)

    row = TokenRow("id", "label", "chat", "ada", None, "me", datetime.now(UTC))
    keeper = Doorkeeper(
        app,
        lambda token: row if token == "good" else None,
        hosts=("tools.example",),
        origins=("https://app.example/",),
        channel="chat",
    )
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def ask(**headers: str) -> None:
        pairs = [(key.encode(), value.encode()) for key, value in headers.items()]
        await keeper({"type": "http", "path": "/mcp", "headers": pairs}, None, send)  # type: ignore[arg-type]

    await ask(host="tools.example:443", origin="https://app.example", authorization="bearer good")
    (scope,) = seen
    assert scope["chalie.caller"].principal == "ada"
    assert b"good" not in repr(scope).encode()
    await ask(host="tools.example", origin="https://app.example", authorization="Bearer bad")
    assert len(seen) == 1 and sent[0]["status"] == 401


def test_a_body_that_is_too_large_is_not_read(door: Running) -> None:
    given = {"authorization": f"Bearer {door.token('large')}"}
    assert post(door, b" " * (LARGEST_BODY + 1), **given).status_code == 413
    assert post(door, b"{" * 100, **given).status_code == 400


@pytest.mark.asyncio
async def test_only_tokens_for_the_channel_are_let_in_where_one_is_named(served: Served) -> None:
    with running(served, "--channel", "chat", "--person-at-client") as door:
        assert post(door, authorization=f"Bearer {door.token('external')}").status_code == 403
        async with client(door, door.token("mine", channel="chat"), "2026-07-28") as mine:
            assert "call_tool" in await names(mine)


# who sees what


@pytest.mark.asyncio
async def test_of_the_old_era_found_tools_join_the_list_of_their_session_alone(door: Running) -> None:
    token = door.token("sessions")
    async with client(door, token, "legacy") as one, client(door, token, "legacy") as two:
        await one.call_tool("find_tools", {"query": ["echo"]})
        assert await names(one) == [*OWN, "echo", "call_tool"]
        assert await names(two) == [*OWN, "call_tool"]
        assert not (await one.call_tool("echo", {"text": "x"})).is_error
        said = parse(texts(await two.call_tool("echo", {"text": "x"})))
        assert said.code == "not-active"


@pytest.mark.asyncio
async def test_of_the_new_era_they_join_by_token_and_conversation_and_else_there_is_the_door(
    door: Running,
) -> None:
    mine, other = door.token("mine", principal="ada"), door.token("other", principal="ada")
    async with client(door, mine, "2026-07-28", "monday") as one:
        await one.call_tool("find_tools", {"query": ["echo"]})
        assert await names(one) == [*OWN, "echo", "call_tool"]
    async with client(door, mine, "2026-07-28", "monday") as again:
        assert await names(again) == [*OWN, "echo", "call_tool"]
    for token, conversation in ((mine, "tuesday"), (mine, None), (other, "monday")):
        async with client(door, token, "2026-07-28", conversation) as elsewhere:
            assert await names(elsewhere) == [*OWN, "call_tool"]
    async with client(door, mine, "2026-07-28") as bare:
        await bare.call_tool("find_tools", {"query": ["echo"]})
        assert await names(bare) == [*OWN, "call_tool"]
        for call in (("call_tool", {"name": "echo"}), ("echo", {})):  # no search would ever make it active
            assert not (await bare.call_tool(*call)).is_error
        in_meta = await bare.call_tool("echo", {}, meta={"chalie/conversation": "in the request"})
        assert parse(texts(in_meta)).code == "not-active"


@pytest.mark.asyncio
@pytest.mark.parametrize("conversation", ["x" * 129, 7, "a\nb"])
async def test_a_conversation_that_cannot_be_one_is_refused(door: Running, conversation: Any) -> None:
    async with client(door, door.token(repr(conversation)[:60]), "2026-07-28") as mine:
        with pytest.raises(MCPError, match="chalie/conversation"):
            await mine.call_tool("echo", {}, meta={"chalie/conversation": conversation})


@pytest.mark.asyncio
async def test_a_token_reaches_its_permissions_and_principal_and_no_others(door: Running) -> None:
    token = door.token("scoped", principal="eve", permissions=("echo",))
    async with client(door, token, "2026-07-28") as scoped:
        said = await scoped.call_tool("call_tool", {"name": "echo"})
        assert json.loads(parse(texts(said)).body)["for"] == "eve"
        refused = await scoped.call_tool("call_tool", {"name": "nap"})
        assert "the token of this turn is for echo alone" in texts(refused)
        found = await scoped.call_tool("find_tools", {"query": ["nap"]})
        assert '"reason":"hidden"' in texts(found)


@era
@pytest.mark.asyncio
async def test_a_token_for_a_channel_that_is_not_there_any_more_is_told_so(door: Running, mode: Era) -> None:
    async with client(door, door.token(f"gone {mode}", channel="gone"), mode) as mine:
        for asked in (mine.list_tools(), mine.call_tool("find_tools", {"query": ["echo"]})):
            with pytest.raises(MCPError, match=r"there is no channel 'gone' \[bad-config\]"):
                await asked


@pytest.mark.asyncio
async def test_a_result_that_was_cut_is_read_by_its_principal_alone(door: Running) -> None:
    ada, eve = door.token("ada's"), door.token("eve's")
    async with client(door, ada, "2026-07-28") as mine, client(door, eve, "2026-07-28") as other:
        said = await mine.call_tool("call_tool", {"name": "novel", "arguments": {"n": 200_000}})
        handle = {"result": parse(texts(said)).meta["result"]}
        assert not (await mine.call_tool("read_result", handle)).is_error
        assert parse(texts(await other.call_tool("read_result", handle))).code == "result-unknown"


@era
@pytest.mark.asyncio
async def test_calls_at_once_are_neither_lost_nor_crossed(door: Running, mode: Era) -> None:
    async def work(number: int) -> None:
        token = door.token(f"{mode}-{number}", principal=f"p{number}")
        async with client(door, token, mode) as mine:
            for turn in range(5):
                text = f"{number}-{turn}"
                said = await mine.call_tool("call_tool", {"name": "echo", "arguments": {"text": text}})
                assert json.loads(parse(texts(said)).body) == {"echo": {"text": text}, "for": f"p{number}"}

    await asyncio.gather(*(work(number) for number in range(8)))


# what is told, and asked


@pytest.mark.asyncio
async def test_a_change_of_the_list_is_told_in_each_era(door: Running) -> None:
    token = door.token("told")
    told: list[str] = []

    async def hear(message: Any) -> None:
        told.append(type(message).__name__)

    async with client(door, token, "legacy", message_handler=hear) as old:
        await old.list_tools()
        await old.call_tool("find_tools", {"query": ["echo"]})
        assert "ToolListChangedNotification" in told
        await old.call_tool("find_tools", {"query": ["echo"]})  # known already: nothing is told
        assert told.count("ToolListChangedNotification") == 1
    async with (
        client(door, token, "2026-07-28", "listening") as new,
        new.listen(tools_list_changed=True) as heard,
    ):
        await new.call_tool("find_tools", {"query": ["echo"]})
        event = await asyncio.wait_for(anext(aiter(heard)), 20)
        assert type(event).__name__ == "ToolsListChanged"


@era
@pytest.mark.parametrize("conversation", [None, "asking"])
@pytest.mark.asyncio
async def test_the_person_at_a_client_is_asked_over_http_too(
    door: Running, mode: Era, conversation: str | None
) -> None:
    label = f"{mode} {conversation}"
    person = Person("once")
    call = {"name": "deploy", "arguments": {"text": label}}
    token = door.token(label, channel="chat")
    async with client(door, token, mode, conversation, elicitation_callback=person) as mine:
        said = await mine.call_tool("call_tool", call)
    assert not said.is_error and door.served.ran.count(label) == 1
    with door.served.ledger() as ledger:
        assert any(row.by == f"client:{label}" for row in ledger.trail.query(event="approval.decided"))


@pytest.mark.asyncio
async def test_a_call_that_a_client_gives_up_is_cancelled_and_the_server_goes_on(door: Running) -> None:
    token = door.token("impatient")
    for mode in ("legacy", "2026-07-28"):
        async with client(door, token, mode) as mine:  # type: ignore[arg-type]
            slow = asyncio.create_task(
                mine.call_tool("call_tool", {"name": "nap", "arguments": {"n": 1500, "text": mode}})
            )
            quick = await mine.call_tool("call_tool", {"name": "echo"})
            assert not quick.is_error and not slow.done()
            slow.cancel()
            await asyncio.gather(slow, return_exceptions=True)
            assert not (await mine.call_tool("call_tool", {"name": "echo"})).is_error

    def recorded() -> bool:
        with door.served.ledger() as ledger:
            rows = [row for row in ledger.trail.query() if row.principal == "impatient"]
            return sum(row.code == "cancelled" for row in rows if row.name == "nap") == 2

    assert until(recorded)


# what is written down


def test_no_token_is_in_what_was_said_or_kept(door: Running) -> None:
    token = door.token("secret")
    post(door, authorization=f"Bearer {token}")
    post(door, host="evil.example", authorization=f"Bearer {token}")
    post(door, b"no json", authorization=f"Bearer {token}")
    assert token not in "".join(door.said)
    for file in door.served.home.rglob("*"):
        if file.is_file():
            assert token.encode() not in file.read_bytes(), file


def test_an_address_is_a_host_and_a_port() -> None:
    assert address("127.0.0.1:8321") == ("127.0.0.1", 8321)
    assert address("[::1]:0") == ("::1", 0)
    for text in ("8321", ":1", "a:b", "a:70000", "127.0.0.1", ""):
        with pytest.raises(ConfigError, match="HOST:PORT"):
            address(text)
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "tools.example")] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_a_port_that_is_taken_is_one_line() -> None:
    with listening("127.0.0.1", 0) as taken, pytest.raises(ConfigError, match="cannot be listened on"):
        listening("127.0.0.1", taken.getsockname()[1])
