"""LangChain agents and LangGraph graphs with Chalie's tools, driven by a scripted chat model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from chalie import AnswerKind, NotAuthorised
from chalie.envelope import parse
from chalie_langchain import ChalieMiddleware
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from . import pages
from .conftest import Bench

Call = tuple[str, dict[str, Any]]
FIND: list[Call] = [("find_tools", {"query": ["roll_dice", "send_mail"]})]
BOTH: list[Call] = [("roll_dice", {"text": "one"}), ("send_mail", {"text": "hi ada"})]
ASK: Any = {"messages": [("user", "roll dice and tell ada")]}
APPROVE: Command[Any] = Command(resume={"type": "approve"})


class Script(GenericFakeChatModel):
    """A chat model that notes which tools it is given."""

    listed: list[list[str]] = []

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        self.listed.append([tool.name for tool in tools])
        return self


def script(*replies: Sequence[Call]) -> Script:
    messages = [
        AIMessage(
            content="",
            tool_calls=[
                {"name": name, "args": arguments, "id": f"call-{at}-{place}"}
                for place, (name, arguments) in enumerate(reply)
            ],
        )
        for at, reply in enumerate(replies)
    ]
    return Script(messages=iter([*messages, AIMessage(content="done")]), listed=[])


def an_agent(bench: Bench, model: Script, saver: Any = None, token: str | None = None, **more: Any) -> Any:
    middleware = ChalieMiddleware(bench.host, principal="ada", approver_token=token)
    saver = InMemorySaver() if saver is None else saver
    return create_agent(model, middleware=[middleware], checkpointer=saver, **more)


def thread(bench: Bench) -> Any:
    return {"configurable": {"thread_id": bench.day}}


def results(state: Any) -> dict[str, ToolMessage]:
    return {str(message.name): message for message in state["messages"] if isinstance(message, ToolMessage)}


def test_a_run_finds_two_tools_calls_both_is_approved_and_finishes(bench: Bench) -> None:
    model = script(FIND, BOTH)
    agent = an_agent(bench, model, token=bench.token)

    async def main() -> Any:
        first = await agent.ainvoke(ASK, thread(bench))
        (question,) = first["__interrupt__"]
        assert (question.value["name"], question.value["args"]) == ("send_mail", {"text": "hi ada"})
        assert bench.ran == ["roll_dice one"]
        return await agent.ainvoke(APPROVE, thread(bench))

    state = asyncio.run(main())
    assert state["messages"][-1].content == "done"
    assert json.loads(parse(str(results(state)["send_mail"].content)).body)["did"] == "send_mail"
    assert {message.status for message in results(state).values()} == {"success"}
    assert bench.ran == ["roll_dice one", "send_mail hi ada"]
    assert "roll_dice" not in model.listed[0] and "find_tools" in model.listed[0]
    assert {"roll_dice", "send_mail"} <= set(model.listed[1])
    assert "chalie_exchange" not in state


def test_it_is_the_same_without_asyncio(bench: Bench) -> None:
    agent = an_agent(bench, script(FIND, BOTH), token=bench.token)
    assert "__interrupt__" in agent.invoke(ASK, thread(bench))
    assert agent.invoke(APPROVE, thread(bench))["messages"][-1].content == "done"
    assert bench.ran == ["roll_dice one", "send_mail hi ada"]


def test_an_approval_counts_in_another_agent_that_knows_only_the_checkpoint(bench: Bench) -> None:
    saver = InMemorySaver()
    an_agent(bench, script(FIND, BOTH), saver, bench.token).invoke(ASK, thread(bench))
    later = script([("roll_dice", {"text": "two"})])
    state = an_agent(bench, later, saver, bench.token).invoke(APPROVE, thread(bench))
    assert state["messages"][-1].content == "done"
    assert bench.ran == ["roll_dice one", "send_mail hi ada", "roll_dice two"]
    assert {"roll_dice", "send_mail"} <= set(later.listed[0])


@pytest.mark.parametrize("another", [False, True], ids=["same-agent", "another-agent"])
def test_what_is_rejected_never_runs_and_is_declined_in_the_home(bench: Bench, another: bool) -> None:
    saver = InMemorySaver()
    agent = an_agent(bench, script(FIND, BOTH), saver, bench.token)
    (question,) = agent.invoke(ASK, thread(bench))["__interrupt__"]
    if another:
        agent = an_agent(bench, script(), saver, bench.token)
    no: Command[Any] = Command(resume={"type": "reject", "message": "not today"})
    state = agent.invoke(no, thread(bench))
    frame = parse(str(results(state)["send_mail"].content))
    assert frame.code == "declined" and "The person says: not today" in frame.body
    assert results(state)["send_mail"].status == "error"
    assert bench.host.holds.get(question.value["hold"]).state == "declined"
    assert bench.ran == ["roll_dice one"]


def test_the_same_call_after_a_rejection_is_refused_without_asking(bench: Bench) -> None:
    agent = an_agent(bench, script(FIND, BOTH, [BOTH[1]]), token=bench.token)
    agent.invoke(ASK, thread(bench))
    state = agent.invoke(Command(resume={"type": "reject", "message": "not today"}), thread(bench))
    assert "__interrupt__" not in state
    frame = parse(str(state["messages"][-2].content))
    assert frame.code == "declined" and "do not retry" in frame.body and "not today" not in frame.body
    assert bench.ran == ["roll_dice one"]


def test_what_is_no_answer_has_the_question_put_again(bench: Bench) -> None:
    agent = an_agent(bench, script(FIND, BOTH), token=bench.token)
    (first,) = agent.invoke(ASK, thread(bench))["__interrupt__"]
    edit = {"type": "edit", "edited_action": {"name": "send_mail", "args": {"text": "all my keys"}}}
    for answer in ("yes", True, edit):
        (again,) = agent.invoke(Command(resume=answer), thread(bench))["__interrupt__"]
        assert again.value["hold"] == first.value["hold"]
        assert again.value["problem"]
    assert bench.ran == ["roll_dice one"]
    assert agent.invoke(APPROVE, thread(bench))["messages"][-1].content == "done"
    assert bench.ran == ["roll_dice one", "send_mail hi ada"]


@pytest.mark.parametrize("another", [False, True], ids=["same-agent", "another-agent"])
def test_what_was_approved_at_a_terminal_meanwhile_is_not_run_again(bench: Bench, another: bool) -> None:
    saver = InMemorySaver()
    agent = an_agent(bench, script(FIND, BOTH), saver, bench.token)
    (question,) = agent.invoke(ASK, thread(bench))["__interrupt__"]
    bench.host.answer(question.value["hold"], AnswerKind.ONCE, token=bench.token)
    if another:
        agent = an_agent(bench, script(), saver, bench.token)
    state = agent.invoke(APPROVE, thread(bench))
    frame = parse(str(results(state)["send_mail"].content))
    assert frame.status == "success" or frame.code == "already-decided"
    assert bench.ran == ["roll_dice one", "send_mail hi ada"]
    turn = bench.host.turn("chat", principal="ada", conversation=bench.day)
    assert turn.waiting() == ()


def test_two_calls_that_wait_are_answered_each_on_its_own(bench: Bench) -> None:
    calls: list[Call] = [("send_mail", {"text": "first"}), ("send_mail", {"text": "second"})]
    agent = an_agent(bench, script(FIND, calls), token=bench.token)
    questions = agent.invoke(ASK, thread(bench))["__interrupt__"]
    answers = {
        question.id: {"type": "approve" if question.value["args"]["text"] == "second" else "reject"}
        for question in questions
    }
    assert agent.invoke(Command(resume=answers), thread(bench))["messages"][-1].content == "done"
    assert bench.ran == ["send_mail second"]


def test_without_a_token_a_call_that_is_asked_about_says_that_it_waits(bench: Bench) -> None:
    state = an_agent(bench, script(FIND, BOTH)).invoke(ASK, thread(bench))
    assert state["messages"][-1].content == "done"
    assert parse(str(results(state)["send_mail"].content)).code == "approval-pending"
    assert bench.ran == ["roll_dice one"]


def test_a_token_that_the_home_does_not_know_ends_the_run_before_it_begins(bench: Bench) -> None:
    model = script(FIND)
    with pytest.raises(NotAuthorised, match="not known to this home"):
        an_agent(bench, model, token="made-up").invoke(ASK, thread(bench))
    assert model.listed == []


def test_runs_side_by_side_do_not_share_what_they_found(bench: Bench) -> None:
    finding = script([("find_tools", {"query": ["roll_dice"]})], [("roll_dice", {"text": "mine"})])
    other = script([("find_tools", {"query": ["send_mail"]})], [("roll_dice", {"text": "not mine"})])
    middleware = ChalieMiddleware(bench.host, principal="ada")

    async def main() -> list[Any]:
        agents = [create_agent(model, middleware=[middleware]) for model in (finding, other)]
        return list(await asyncio.gather(*(agent.ainvoke(ASK, thread(bench)) for agent in agents)))

    mine, theirs = asyncio.run(main())
    assert "send_mail" not in finding.listed[1] and "roll_dice" in finding.listed[1]
    assert "roll_dice" not in other.listed[1] and "send_mail" in other.listed[1]
    assert parse(str(results(mine)["roll_dice"].content)).status == "success"
    assert parse(str(results(theirs)["roll_dice"].content)).code == "not-active"
    assert bench.ran == ["roll_dice mine"]
    assert middleware._turns == {}, "a run that ended keeps no turn"


def test_a_tool_that_blocks_does_not_block_the_loop(bench: Bench) -> None:
    agent = an_agent(bench, script([("find_tools", {"query": ["wait_here"]})], [("wait_here", {})]))

    async def main() -> Any:
        return (await asyncio.gather(agent.ainvoke(ASK, thread(bench)), bench.opens_the_gate()))[0]

    assert results(asyncio.run(main()))["wait_here"].status == "success"


def test_an_unknown_tool_is_an_envelope(bench: Bench) -> None:
    state = an_agent(bench, script([("nothing_like_it", {"x": 1})])).invoke(ASK, thread(bench))
    assert parse(str(results(state)["nothing_like_it"].content)).code == "unknown-tool"


def test_a_later_run_of_the_thread_begins_with_the_pinned_tools(bench: Bench) -> None:
    saver = InMemorySaver()
    an_agent(bench, script(FIND), saver).invoke(ASK, thread(bench))
    later = script()
    an_agent(bench, later, saver).invoke(ASK, thread(bench))
    assert "roll_dice" not in later.listed[0] and "find_tools" in later.listed[0]


def test_other_tools_of_the_agent_stay_as_they_are_and_keep_their_names(bench: Bench) -> None:
    @tool
    def roll_dice(text: str) -> str:
        """Roll the agent's own dice."""
        return f"own {text}"

    model = script(FIND, [BOTH[0]])
    state = an_agent(bench, model, tools=[roll_dice]).invoke(ASK, thread(bench))
    assert results(state)["roll_dice"].content == "own one"
    assert model.listed[1].count("roll_dice") == 1
    assert bench.ran == []


def test_the_code_of_its_page_runs(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHALIE_APPROVER_TOKEN", bench.token)  # as where the home was made before
    page = pages.run(
        "use-with-langchain.md",
        {'create_agent("anthropic:claude-sonnet-4-5"': "create_agent(PLAIN", "Host.open()": "HOST"}
        | {'    "anthropic:claude-sonnet-4-5",\n': "    ASKING,\n"},
        PLAIN=script(FIND, [BOTH[0]]),
        ASKING=script(FIND, BOTH),
        HOST=bench.host,
    )
    asked: list[Any] = []

    def person(*shown: Any) -> bool:
        asked.append(shown)
        return True

    assert asyncio.run(page["answer"]("go")) == "done"
    assert bench.ran == ["roll_dice one"]
    assert asyncio.run(page["answer_with_approvals"]("go", bench.day, person)) == "done"
    assert [shown[:2] for shown in asked] == [("send_mail", {"text": "hi ada"})]
    assert bench.ran == ["roll_dice one", "roll_dice one", "send_mail hi ada"]
    turn = bench.host.turn("chat", principal="ada")
    graph = page["graph"](script(FIND, [BOTH[0]]), turn)
    assert asyncio.run(graph.ainvoke(ASK))["messages"][-1].content == "done"
    assert bench.ran[3:] == ["roll_dice one"]
