"""What a client is shown and how its calls go, in both eras, tried with the client of the SDK."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any, Literal

import pytest
from attrs import evolve
from chalie.calls import SideEffect
from chalie.envelope import parse
from chalie.mcp.answers import Progressing, seen_blocks
from chalie.mcp.offer import offered, worst_hints
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ToolListChangedNotification

from tests.support import packages

from .served import Here, passes, texts

ERAS = ("legacy", "2026-07-28")
Era = Literal["legacy", "2026-07-28"]
OWN = ["find_tools", "find_skills", "read_result"]

era = pytest.mark.parametrize("mode", ERAS)


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


@era
@pytest.mark.asyncio
async def test_the_list_begins_small_and_grows_by_what_was_found(server: Here, mode: Era) -> None:
    async with Client(server.server, mode=mode) as client:
        assert await names(client) == [*OWN, "call_tool"]
        found = await client.call_tool("find_tools", {"query": ["echo", "deploy"]})
        assert await names(client) == [*OWN, "echo", "deploy", "call_tool"]
        said = await client.call_tool("echo", {"text": "hello", "act_summary": "to see"})
    assert parse(found.content[0].text).meta == {"found": 2, "not_found": 0}
    assert json.loads(parse(texts(said)).body) == {"echo": {"text": "hello"}, "for": "ada"}
    assert not said.is_error


@era
@pytest.mark.asyncio
async def test_the_answer_of_a_search_holds_all_that_a_call_by_the_door_needs(
    server: Here, mode: Era
) -> None:
    async with Client(server.server, mode=mode) as client:
        found = await client.call_tool("find_tools", {"query": ["deploy", "echo"]})
        definitions = json.loads(parse(found.content[1].text).body)
        assert definitions["call_by"] == "call_tool"
        entries = {entry["name"]: entry for entry in definitions["tools"]}
        assert entries["echo"]["inputSchema"]["properties"]["text"] == {"type": "string"}
        assert entries["deploy"]["annotations"]["destructiveHint"] is True
        assert entries["echo"]["annotations"]["readOnlyHint"] is True
        said = await client.call_tool("call_tool", {"name": "echo", "arguments": {"text": "hi"}})
    assert '"text":"hi"' in texts(said)


@era
@pytest.mark.asyncio
async def test_every_road_moves_the_gate_by_one_per_call(server: Here, mode: Era) -> None:
    since = passes(server.host)
    async with Client(server.server, mode=mode) as client:
        await client.list_tools()
        assert since() == 0
        await client.call_tool("find_tools", {"query": ["echo", "deploy"]})
        assert since() == 1
        await client.call_tool("echo", {"text": "a"})
        assert since() == 1
        await client.call_tool("call_tool", {"name": "echo", "arguments": {"text": "a"}})
        assert since() == 1
        await client.call_tool("call_tool", {"name": "deploy", "arguments": {}})
        assert since() == 1
        await client.call_tool("call_tool", {"name": "nothing_of_that_name"})
        assert since() == 0


@era
@pytest.mark.asyncio
async def test_what_would_be_asked_is_refused_with_the_line_that_allows_it(server: Here, mode: Era) -> None:
    async with Client(server.server, mode=mode) as client:
        refused = await client.call_tool("call_tool", {"name": "deploy", "arguments": {"text": "now"}})
        frame = parse(texts(refused))
        assert refused.is_error and frame.code == "permission-denied"
        line = "chalie permissions set external_agent deploy allow --package chalie-ability-deploy"
        assert frame.hint == f"to allow it: {line}"
        assert server.served.ran == []
        server.host.ledger.permissions.set(
            "external_agent", "chalie-ability-deploy", "deploy", "allow", by="t"
        )
        done = await client.call_tool("call_tool", {"name": "deploy", "arguments": {"text": "now"}})
    assert not done.is_error and server.served.ran == ["now"]


@era
@pytest.mark.asyncio
async def test_a_client_can_gate_by_the_real_tool_behind_the_door(server: Here, mode: Era) -> None:
    async with Client(server.server, mode=mode) as client:
        door = next(tool for tool in (await client.list_tools()).tools if tool.name == "call_tool")
        found = await client.call_tool("find_tools", {"query": ["deploy", "pair"]})
        said = await client.call_tool("call_tool", {"name": "deploy"})
        pair = next(tool for tool in (await client.list_tools()).tools if tool.name == "pair")
    assert door.annotations is not None and door.annotations.destructive_hint is True
    known = found.meta["chalie/tools"]["deploy"]
    assert known["annotations"]["destructiveHint"] is True
    assert known["chalie/permissions"] == {"deploy": "destructive"}
    assert said.meta["chalie/permission"] == "deploy" and said.meta["chalie/tool"]["name"] == "deploy"
    assert said.meta["chalie/tool"]["annotations"] == known["annotations"]
    assert pair.annotations is not None and pair.annotations.read_only_hint is False
    assert pair.meta["chalie/permissions"] == {"pair.look": "read", "pair.wipe": "destructive"}


@era
@pytest.mark.asyncio
async def test_a_tool_with_the_name_of_the_door_is_called_by_its_qualified_name(
    server: Here, mode: Era
) -> None:
    async with Client(server.server, mode=mode) as client:
        await client.call_tool("find_tools", {"query": ["call_tool"]})
        listed = await names(client)
        assert listed == [*OWN, "call_tool__call_tool", "call_tool"]
        said = await client.call_tool("call_tool", {"name": "call_tool__call_tool"})
    assert parse(texts(said)).body == "the package itself"


@era
@pytest.mark.asyncio
async def test_what_search_may_not_show_is_not_reached_by_the_door_either(server: Here, mode: Era) -> None:
    async with Client(server.server, mode=mode) as client:
        said = await client.call_tool("call_tool", {"name": "hidden"})
    assert parse(texts(said)).code == "unknown-tool"


@pytest.mark.asyncio
@pytest.mark.parametrize("arguments", [None, {}, {"name": ""}, {"name": 7}, {"arguments": {"name": "echo"}}])
async def test_the_door_says_what_it_takes(server: Here, arguments: Any) -> None:
    async with Client(server.server, mode="legacy") as client:
        said = await client.call_tool("call_tool", arguments)
    assert said.is_error and parse(texts(said)).code == "missing-params"


@era
@pytest.mark.asyncio
async def test_arguments_that_came_as_text_are_healed_as_on_every_road(server: Here, mode: Era) -> None:
    async with Client(server.server, mode=mode) as client:
        said = await client.call_tool("call_tool", {"name": "echo", "arguments": '{"n": "3", "Text": "a"}'})
    assert json.loads(parse(texts(said)).body)["echo"] == {"n": 3, "text": "a"}
    rows = server.host.ledger.trail.query(event="call.finished")
    assert any(row.detail and "text" in row.detail for row in rows)


@era
@pytest.mark.asyncio
async def test_a_long_result_is_cut_with_a_handle_that_read_result_pages(server: Here, mode: Era) -> None:
    async with Client(server.server, mode=mode) as client:
        said = await client.call_tool("call_tool", {"name": "novel", "arguments": {"n": 300_000}})
        frame = parse(texts(said))
        assert frame.meta["truncated"] is True and frame.meta["size"] == 300_000
        rest = await client.call_tool("read_result", {"result": frame.meta["result"], "offset": 299_990})
        handed_on = await client.call_tool(
            "call_tool", {"name": "echo", "arguments": {"text": f"result:{frame.meta['result']}"}}
        )
    assert "xxxxx" in parse(texts(rest)).body
    assert len(texts(said)) < 100_000
    assert "xxxxx" in texts(handed_on)


@era
@pytest.mark.asyncio
async def test_a_tool_that_fails_is_an_error_result_and_no_traceback(server: Here, mode: Era) -> None:
    async with Client(server.server, mode=mode) as client:
        said = await client.call_tool("call_tool", {"name": "fail"})
    assert said.is_error and said.structured_content is None
    assert parse(texts(said)).code == "unhandled-exception" and "Traceback" not in texts(said)


@era
@pytest.mark.asyncio
async def test_no_tool_promises_structure_that_its_answers_do_not_have(server: Here, mode: Era) -> None:
    async with Client(server.server, mode=mode) as client:
        await client.call_tool("find_tools", {"query": ["echo", "novel"]})
        assert [tool.output_schema for tool in (await client.list_tools()).tools] == [None] * 6


@pytest.mark.asyncio
async def test_one_bad_tool_costs_the_list_nothing_but_itself(server: Here) -> None:
    turn = server.host.turn("external_agent")
    (echo,) = server.host.snapshot.resolve("echo")
    for number in range(50):
        turn.state.active[f"good_{number}"] = evolve(echo, name=f"good_{number}")
    bad = {
        "not_an_object": evolve(echo, name="a", parameters=7),
        "no_json": evolve(echo, name="b", parameters={"type": "object", "x": {1, 2}}),
        "not_a_number": evolve(echo, name="c", parameters={"type": "object", "x": float("nan")}),
        "too_large": evolve(echo, name="d", summary="x" * 300_000),
        "call_tool": evolve(echo, dist="chalie-ability-echo", name="echo"),
        "": evolve(echo, name="e"),
        "echo__echo": evolve(echo, name="f"),  # what the one before the last is called, not to be the door
    }
    turn.state.active.update(bad)
    offer = offered(turn.state)
    listed = [tool.name for tool in offer.tools]
    assert sum(name.startswith("good_") for name in listed) == 50
    assert set(offer.left_out) == set(bad) - {"call_tool"}
    assert len(set(listed)) == len(listed) and listed.count("call_tool") == 1
    assert all(reason for reason in offer.left_out.values())
    for tool in offer.tools:
        tool.model_dump_json(by_alias=True)


@pytest.mark.asyncio
async def test_a_list_with_something_left_out_says_so(server: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    real = server.host.turn

    def turn(*words: Any, **more: Any) -> Any:
        opened = real(*words, **more)
        (echo,) = opened.state.snapshot.resolve("echo")
        opened.state.active["bad"] = evolve(echo, name="bad", parameters=[])
        return opened

    monkeypatch.setattr(server.host, "turn", turn)
    async with Client(server.server, mode="legacy") as client:
        listed = await client.list_tools()
    assert [tool.name for tool in listed.tools] == [*OWN, "call_tool"]
    assert set(listed.meta["chalie/left_out"]) == {"bad"}


def test_what_another_server_says_of_its_tools_is_not_passed_on(server: Here) -> None:
    (echo,) = server.host.snapshot.resolve("echo")
    foreign = evolve(echo, dist="mcp:search", side_effect=SideEffect.READ)
    assert worst_hints(echo) == {"readOnlyHint": True}
    assert worst_hints(foreign)["destructiveHint"] is True and worst_hints(foreign)["readOnlyHint"] is False


@era
@pytest.mark.asyncio
async def test_a_tool_that_blocks_stops_nobody_and_can_be_given_up(server: Here, mode: Era) -> None:
    async with Client(server.server, mode=mode) as client:
        slow = asyncio.create_task(client.call_tool("call_tool", {"name": "nap", "arguments": {"n": 3000}}))
        quick = await client.call_tool("call_tool", {"name": "echo", "arguments": {"text": "first"}})
        assert not slow.done() and '"first"' in texts(quick)
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        again = await client.call_tool("call_tool", {"name": "echo", "arguments": {"text": "after"}})
    assert '"after"' in texts(again)
    finished = [row for row in server.host.ledger.trail.query() if row.name == "nap" and row.code]
    assert [row.code for row in finished] == ["cancelled"]


@era
@pytest.mark.asyncio
async def test_progress_is_told_and_grows(server: Here, mode: Era) -> None:
    told: list[tuple[float, str | None]] = []

    async def progress(now: float, total: float | None, message: str | None) -> None:
        told.append((now, message))

    async with Client(server.server, mode=mode) as client:
        await client.call_tool("call_tool", {"name": "steps"}, progress_callback=progress)
    assert told == [(0.25, "step 1"), (0.5, "step 2"), (0.75, "step 3")]


@era
@pytest.mark.asyncio
async def test_unusual_names_and_arguments_are_answered_and_the_session_lives(
    server: Here, mode: Era
) -> None:
    async with Client(server.server, mode=mode) as client:
        for name in ("", "x" * 10_000, "admin.tools.list", "user/update", "r\u0435ad", "a\nb", "\u202eabc"):
            for said in (
                await client.call_tool("call_tool", {"name": name or "?", "arguments": {"a": [1] * 50}}),
                await client.call_tool(name, {}),
            ):
                assert said.is_error and parse(texts(said)).code in ("unknown-tool", "missing-params")
        assert "call_tool" in await names(client)


@pytest.mark.asyncio
async def test_what_is_no_request_of_the_protocol_is_an_error_of_it(server: Here) -> None:
    async with Client(server.server, mode="legacy") as client:
        with pytest.raises(MCPError):
            await client.list_prompts()
        assert "call_tool" in await names(client)


async def found_in_time(client: Client, name: str) -> bool:
    """Search until a tool is there: a package is read in a process of its own, which takes a moment."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if f'"name":"{name}"' in texts(await client.call_tool("find_tools", {"query": [name]})):
            return True
    return False


@era
@pytest.mark.asyncio
async def test_what_is_installed_while_a_client_is_connected_is_found_at_its_next_call(
    site: Path, server: Here, mode: Era
) -> None:
    async with Client(server.server, mode=mode) as client:
        before = await client.call_tool("call_tool", {"name": "late"})
        assert parse(texts(before)).code == "unknown-tool"
        late = packages.install(site, packages.ability_package("late", facts={"side_effect": packages.READ}))
        assert await found_in_time(client, "late")
        assert "late" in await names(client)
        late.uninstall()
        end = time.monotonic() + 20
        while "late" in await names(client):
            assert time.monotonic() < end


@pytest.mark.asyncio
async def test_what_goes_while_a_client_asks_for_nothing_is_told_to_it(
    site: Path, server: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chalie.mcp.server.WATCH_S", 0.05)
    late = packages.install(site, packages.ability_package("late", facts={"side_effect": packages.READ}))
    told = asyncio.Event()

    async def hear(message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            told.set()

    async with Client(server.server, mode="legacy", message_handler=hear) as client:
        assert await found_in_time(client, "late")
        assert "late" in await names(client)
        told.clear()
        watching = asyncio.create_task(server.tools.watch())
        late.uninstall()
        await asyncio.wait_for(told.wait(), 20)
        watching.cancel()
        assert "late" not in await names(client)


@era
@pytest.mark.asyncio
async def test_a_picture_is_handed_on_for_the_person_and_nothing_else_goes_past_the_frame(
    server: Here, mode: Era
) -> None:
    async with Client(server.server, mode=mode) as client:
        said = await client.call_tool("call_tool", {"name": "picture"})
    text, picture = said.content
    assert parse(text.text).body == "a picture"
    assert (picture.type, picture.data, picture.mime_type) == ("image", "aGk=", "image/png")
    assert picture.annotations.audience == ["user"]


@pytest.mark.asyncio
async def test_all_that_was_said_of_a_call_is_told_before_its_answer_and_nothing_after_it() -> None:
    told: list[float] = []

    class Slow:
        class session:
            @staticmethod
            async def report_progress(now: float, total: float | None, message: str | None) -> None:
                for _ in range(5):
                    await asyncio.sleep(0)
                told.append(now)

    progress = Progressing(Slow, asyncio.get_running_loop())  # type: ignore[arg-type]
    for fraction in (0.25, 0.5, 0.25):
        progress("c", fraction, "")
    progress("c", None, "")
    await asyncio.sleep(0)
    await progress.told()
    assert told == [0.25, 0.5, 0.5, 0.5625]
    progress("c", 1.0, "")
    await asyncio.sleep(0)
    await progress.told()
    assert len(told) == 4


@pytest.mark.parametrize("rich", [None, 7, "x", [], {"blocks": 7}, {"blocks": [7, None, {"type": []}]}])
def test_whatever_a_tool_hands_to_a_user_interface_breaks_no_answer(rich: Any) -> None:
    assert seen_blocks(rich) == []
