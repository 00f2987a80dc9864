"""Graphs of one's own with a turn's tools: each call in a task of its own, and calls that share one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from chalie import Turn
from chalie.envelope import parse
from chalie_langchain import tools
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, Send

from .conftest import Bench
from .test_langchain import ASK, FIND, Call, Script, results, script, thread

THREE: list[Call] = [
    ("roll_dice", {"text": "one"}),
    ("send_mail", {"text": "first"}),
    ("send_mail", {"text": "second"}),
]


def a_graph(bench: Bench, model: Script, turn: Turn, saver: Any, shared: bool) -> Any:
    """Return a graph whose calls have a task each, or share one."""

    def offered() -> Sequence[Any]:
        return tools(bench.host, turn, approver_token=bench.token)

    async def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.bind_tools(offered()).ainvoke(state["messages"])]}

    async def act(given: Any) -> Any:
        state = given if shared else {"messages": [AIMessage("", tool_calls=[given])]}
        return await ToolNode(offered()).ainvoke(state)

    def each(state: MessagesState) -> Any:
        calls = getattr(state["messages"][-1], "tool_calls", [])
        return ("act" if shared and calls else [Send("act", call) for call in calls]) or "__end__"

    graph: Any = StateGraph(MessagesState)
    graph.add_node("think", think)
    graph.add_node("act", act)
    graph.add_edge(START, "think")
    graph.add_edge("act", "think")
    graph.add_conditional_edges("think", each, ["act", "__end__"])
    return graph.compile(checkpointer=saver)


@pytest.mark.parametrize("yes", ["first", "second"])
@pytest.mark.parametrize("another", [False, True], ids=["same-turn", "another-turn"])
def test_each_of_two_calls_gets_its_own_answer_and_none_runs_again(
    bench: Bench, yes: str, another: bool
) -> None:
    model, saver = script(FIND, THREE), InMemorySaver()

    def a_turn(*active: str) -> Turn:
        return bench.host.turn("chat", principal="ada", conversation=bench.day, active=active)

    async def main() -> Any:
        turn = a_turn()
        state = await a_graph(bench, model, turn, saver, shared=False).ainvoke(ASK, thread(bench))
        answers = {
            question.id: {"type": "approve" if question.value["args"]["text"] == yes else "reject"}
            for question in state["__interrupt__"]
        }
        later = a_turn("roll_dice", "send_mail") if another else turn
        agent = a_graph(bench, model, later, saver, shared=False)
        return await agent.ainvoke(Command(resume=answers), thread(bench))

    assert asyncio.run(main())["messages"][-1].content == "done"
    assert bench.ran == ["roll_dice one", f"send_mail {yes}"]
    assert {"roll_dice", "send_mail"} <= set(model.listed[1])


def test_calls_that_share_a_task_do_not_interrupt_it(bench: Bench) -> None:
    turn = bench.host.turn("chat", principal="ada", conversation=bench.day)
    agent = a_graph(bench, script(FIND, THREE), turn, InMemorySaver(), shared=True)
    state = asyncio.run(agent.ainvoke(ASK, thread(bench)))
    assert "__interrupt__" not in state
    assert parse(str(results(state)["send_mail"].content)).code == "approval-pending"
    assert bench.ran == ["roll_dice one"]
