"""Asking the person at the client, in each era's own way, and what happens where that cannot be."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from chalie.envelope import parse
from chalie.mcp.states import GOOD_S, States
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult, InputRequiredResult

from .served import AT_CLIENT, Here, Person, Served, here, passes, texts

Era = Literal["legacy", "2026-07-28"]
era = pytest.mark.parametrize("mode", ("legacy", "2026-07-28"))
DEPLOY = {"name": "deploy", "arguments": {"text": "now", "act_summary": "the page is ready"}}


@pytest.fixture
def asking(served: Served) -> Iterator[Here]:
    with here(served, AT_CLIENT, person_at_client=True) as found:
        yield found


@era
@pytest.mark.asyncio
async def test_what_the_gate_asks_about_is_asked_at_the_client_and_runs_once(asking: Here, mode: Era) -> None:
    person = Person("once")
    since = passes(asking.host)
    async with Client(asking.server, mode=mode, elicitation_callback=person) as client:
        said = await client.call_tool("call_tool", DEPLOY)
        assert json.loads(parse(texts(said)).body) == {"deployed": "now"}
        assert since() == (1 if mode == "legacy" else 2)  # of 2026-07-28 the answer comes with a second call
        await client.call_tool("call_tool", DEPLOY)
    assert asking.served.ran == ["now", "now"] and len(person.asked) == 2
    question = person.asked[0].message
    assert "May deploy run? It is part of chalie-ability-deploy." in question
    assert "permission: deploy (destructive)" in question and '"text": "now"' in question
    assert 'the model says: "the page is ready"' in question
    row = asking.host.ledger.trail.query(event="approval.decided")[0]
    assert (row.setting, row.by) == ("once", "client:stdio")


@era
@pytest.mark.asyncio
async def test_always_sets_the_row_and_is_not_asked_again(asking: Here, mode: Era) -> None:
    person = Person("always")
    async with Client(asking.server, mode=mode, elicitation_callback=person) as client:
        for _ in range(2):
            assert not (await client.call_tool("call_tool", DEPLOY)).is_error
    assert len(person.asked) == 1
    (row,) = [row for row in asking.host.ledger.permissions.list() if row.permission == "deploy"]
    assert (row.channel, row.setting, row.by) == ("chat", "allow", "client:stdio")


@era
@pytest.mark.parametrize("answer", ["decline", "refuse"])
@pytest.mark.asyncio
async def test_a_no_is_told_and_the_same_call_is_not_asked_again(
    asking: Here, mode: Era, answer: str
) -> None:
    person = Person(answer)
    async with Client(asking.server, mode=mode, elicitation_callback=person) as client:
        for _ in range(3):
            assert parse(texts(await client.call_tool("call_tool", DEPLOY))).code == "declined"
    assert len(person.asked) == 1 and asking.served.ran == []


@era
@pytest.mark.parametrize("answer", ["cancel", "perhaps", ""])
@pytest.mark.asyncio
async def test_no_answer_leaves_the_call_among_the_holds(asking: Here, mode: Era, answer: str) -> None:
    person = Person(answer)
    async with Client(asking.server, mode=mode, elicitation_callback=person) as client:
        said = await client.call_tool("call_tool", DEPLOY)
    assert parse(texts(said)).code == "approval-pending" and asking.served.ran == []
    (hold,) = asking.host.holds.list()
    assert hold.state == "pending" and f"chalie approve {hold.id}" in texts(said)


@era
@pytest.mark.asyncio
async def test_a_client_that_cannot_ask_is_told_that_the_call_waits_and_gets_its_end_later(
    asking: Here, mode: Era
) -> None:
    async with Client(asking.server, mode=mode) as client:
        said = await client.call_tool("call_tool", DEPLOY)
        assert parse(texts(said)).code == "approval-pending"
        (hold,) = asking.host.holds.list()
        token = asking.host.approver_token or asking.host.ledger.approvers.add("phone", by="test")
        asking.host.answer(hold.id, token=token)
        late = await client.call_tool("call_tool", {"name": "echo", "arguments": {"text": "x"}})
    assert asking.served.ran == ["now"]
    assert [parse(block.text).name for block in late.content] == ["echo", "deploy"]
    assert json.loads(parse(late.content[1].text).body) == {"deployed": "now"}


@era
@pytest.mark.asyncio
async def test_without_the_operators_word_nobody_is_asked_at_the_client(served: Served, mode: Era) -> None:
    person = Person("once")
    with here(served, AT_CLIENT) as plain:
        async with Client(plain.server, mode=mode, elicitation_callback=person) as client:
            assert parse(texts(await client.call_tool("call_tool", DEPLOY))).code == "approval-pending"
    assert person.asked == [] and served.ran == []


@era
@pytest.mark.asyncio
async def test_a_channel_without_a_person_asks_nobody_at_the_client_either(served: Served, mode: Era) -> None:
    person = Person("once")
    with here(served, person_at_client=True) as plain:
        async with Client(plain.server, mode=mode, elicitation_callback=person) as client:
            assert parse(texts(await client.call_tool("call_tool", DEPLOY))).code == "permission-denied"
    assert person.asked == []


@pytest.mark.asyncio
async def test_a_question_is_taken_back_when_its_call_is_given_up(asking: Here) -> None:
    shown, withdrawn = asyncio.Event(), asyncio.Event()

    async def person(context: Any, params: Any) -> ElicitResult:
        shown.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            withdrawn.set()
            raise
        return ElicitResult(action="accept", content={"answer": "once"})

    async with Client(asking.server, mode="legacy", elicitation_callback=person) as client:
        call = asyncio.create_task(client.call_tool("call_tool", DEPLOY))
        await asyncio.wait_for(shown.wait(), 20)
        call.cancel()
        await asyncio.wait_for(withdrawn.wait(), 20)
        assert not (await client.call_tool("call_tool", {"name": "echo"})).is_error
    assert asking.served.ran == [] and [hold.state for hold in asking.host.holds.list()] == ["pending"]


async def asked(client: Client, arguments: Any = DEPLOY) -> InputRequiredResult:
    said = await client.session.call_tool("call_tool", arguments, allow_input_required=True)
    assert isinstance(said, InputRequiredResult), texts(said)
    return said


def yes(answer: str = "once") -> dict[str, ElicitResult]:
    return {"answer": ElicitResult(action="accept", content={"answer": answer})}


@pytest.mark.asyncio
async def test_a_state_holds_the_id_of_a_hold_and_nothing_of_the_call(asking: Here) -> None:
    async with Client(asking.server, mode="2026-07-28", elicitation_callback=Person("once")) as client:
        said = await asked(client)
    (hold,) = asking.host.holds.list()
    payload = States(asking.host.ledger).open(said.request_state or "", "stdio")
    assert payload == hold.id
    key = asking.served.home / "secrets" / "key"
    assert key.stat().st_mode & 0o777 == 0o600


@pytest.mark.asyncio
async def test_a_state_is_good_once(asking: Here) -> None:
    async with Client(asking.server, mode="2026-07-28", elicitation_callback=Person("once")) as client:
        said = await asked(client)
        back = {"input_responses": yes(), "request_state": said.request_state}
        done = await client.session.call_tool("call_tool", DEPLOY, **back)
        assert not done.is_error and asking.served.ran == ["now"]
        with pytest.raises(MCPError, match="requestState is not good"):
            await client.session.call_tool("call_tool", DEPLOY, **back)
    assert asking.served.ran == ["now"]


@pytest.mark.asyncio
async def test_a_yes_is_for_the_arguments_that_were_shown_and_for_no_others(asking: Here) -> None:
    other = {"name": "deploy", "arguments": {"text": "something else"}}
    async with Client(asking.server, mode="2026-07-28", elicitation_callback=Person("once")) as client:
        said = await asked(client)
        again = await client.session.call_tool(
            "call_tool",
            other,
            input_responses=yes(),
            request_state=said.request_state,
            allow_input_required=True,
        )
        assert isinstance(again, InputRequiredResult) and asking.served.ran == []
        assert "something else" in again.input_requests["answer"].params.message  # type: ignore[index,union-attr]


@pytest.mark.asyncio
async def test_what_was_answered_elsewhere_meanwhile_is_not_run_again(asking: Here) -> None:
    async with Client(asking.server, mode="2026-07-28", elicitation_callback=Person("once")) as client:
        said = await asked(client)
        (hold,) = asking.host.holds.list()
        asking.host.answer(hold.id, token=asking.host.ledger.approvers.add("phone", by="test"))
        assert asking.served.ran == ["now"]
        done = await client.session.call_tool(
            "call_tool", DEPLOY, input_responses=yes(), request_state=said.request_state
        )
    assert parse(done.content[0].text).code == "already-decided"
    assert json.loads(parse(done.content[1].text).body) == {"deployed": "now"}
    assert asking.served.ran == ["now"]


@pytest.mark.asyncio
async def test_a_question_without_an_answer_is_put_again(asking: Here) -> None:
    async with Client(asking.server, mode="2026-07-28", elicitation_callback=Person("once")) as client:
        first = await asked(client)
        again = await client.session.call_tool(
            "call_tool", DEPLOY, request_state=first.request_state, allow_input_required=True
        )
        assert isinstance(again, InputRequiredResult) and again.request_state != first.request_state
    assert len(asking.host.holds.list()) == 1


def test_a_state_is_for_one_caller_one_home_and_a_while(served: Served, asking: Here) -> None:
    now = 1000.0
    states = States(asking.host.ledger, lambda: now)
    assert States(asking.host.ledger, lambda: now).open(states.seal("a1", "x"), "x") is None  # long ago
    fresh = States(asking.host.ledger)
    assert fresh.open(fresh.seal("a1", "x"), "y") is None
    state = fresh.seal("a1", "x")
    (served.home / "secrets" / "key").write_bytes(b"0" * 32)
    assert States(asking.host.ledger).open(state, "x") is None
    assert fresh.open(state, "x") == "a1" and fresh.open(state, "x") is None
    assert GOOD_S <= 3600


@given(st.text() | st.from_regex(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+"))
def test_no_text_that_we_did_not_make_is_a_state(text: str) -> None:
    assert States(_Keyed()).open(text, "x") is None  # type: ignore[arg-type]


class _Keyed:
    """A ledger with a key, for tries that never get as far as the marks."""

    class holds:
        class secrets:
            @staticmethod
            def key() -> bytes:
                return b"k" * 32
