"""Answers that come late: told twice, or after a person has said more in the home."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from chalie import AnswerKind
from chalie.calls import Setting
from chalie.envelope import parse
from chalie_openai_agents import Chalie
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic_ai import DeferredToolResults

from . import test_langchain as langchain
from . import test_openai_agents as openai_agents
from . import test_pydantic_ai as pydantic_ai
from .conftest import Bench

MAIL = ("chat", "chalie-ability-send-mail", "send_mail")
FIND, BOTH = langchain.FIND, langchain.BOTH


@pytest.fixture
def asked(bench: Bench) -> Iterator[Bench]:
    """The bench; what a test allows is asked about again after it."""
    yield bench
    bench.host.ledger.permissions.set(*MAIL, Setting.ASK, by="test")


def stored(bench: Bench, chalie: Chalie) -> str:
    agent = openai_agents.an_agent(openai_agents.script(FIND, BOTH))
    done = asyncio.run(openai_agents.go(chalie, bench, agent))
    return done.to_state().to_string()


def approved(bench: Bench, text: str, chalie: Chalie) -> str:
    """Return what the mail of a stored run of the Agents SDK is answered after a yes."""

    async def main() -> str:
        agent = openai_agents.an_agent(openai_agents.script())
        state = await chalie.restore(agent, text, conversation=bench.day, principal="ada")
        for item in state.get_interruptions():
            state.approve(item)
        return openai_agents.results(await openai_agents.go(chalie, bench, agent, state))["send_mail"]

    return asyncio.run(main())


@pytest.mark.parametrize("another", [False, True], ids=["same-program", "another-program"])
def test_a_stored_run_of_the_agents_sdk_runs_its_call_once_however_often_it_goes_on(
    bench: Bench, another: bool
) -> None:
    chalie = Chalie(bench.host, approver_token=bench.token)
    text = stored(bench, chalie)
    for _ in range(3):
        approved(bench, text, Chalie(bench.host, approver_token=bench.token) if another else chalie)
    assert bench.ran == ["roll_dice one", "send_mail hi ada"]


def test_the_agents_sdk_does_not_run_again_what_was_always_allowed_at_a_terminal(asked: Bench) -> None:
    text = stored(asked, Chalie(asked.host, approver_token=asked.token))
    (hold,) = asked.host.turn("chat", principal="ada", conversation=asked.day).waiting()
    asked.host.answer(hold.id, AnswerKind.ALWAYS, token=asked.token)
    told = approved(asked, text, Chalie(asked.host, approver_token=asked.token))
    assert parse(told).code == "already-decided"
    assert asked.ran == ["roll_dice one", "send_mail hi ada"]


@pytest.mark.parametrize("kind", ["approve", "reject"])
def test_langgraph_does_not_run_again_what_was_always_allowed_at_a_terminal(asked: Bench, kind: str) -> None:
    saver = InMemorySaver()
    agent = langchain.an_agent(asked, langchain.script(FIND, BOTH), saver, asked.token)
    (question,) = agent.invoke(langchain.ASK, langchain.thread(asked))["__interrupt__"]
    asked.host.answer(question.value["hold"], AnswerKind.ALWAYS, token=asked.token)
    later = langchain.an_agent(asked, langchain.script(), saver, asked.token)
    later.invoke(Command(resume={"type": kind}), langchain.thread(asked))
    assert asked.ran == ["roll_dice one", "send_mail hi ada"]


@pytest.mark.parametrize("another", [False, True], ids=["same-agent", "another-agent"])
def test_what_is_rejected_in_langgraph_does_not_run_where_a_row_allows_it_by_now(
    asked: Bench, another: bool
) -> None:
    saver = InMemorySaver()
    agent = langchain.an_agent(asked, langchain.script(FIND, BOTH), saver, asked.token)
    agent.invoke(langchain.ASK, langchain.thread(asked))
    asked.host.ledger.permissions.set(*MAIL, Setting.ALLOW, by="test")
    if another:
        agent = langchain.an_agent(asked, langchain.script(), saver, asked.token)
    agent.invoke(Command(resume={"type": "reject"}), langchain.thread(asked))
    assert asked.ran == ["roll_dice one"]


def test_an_answer_of_pydantic_ai_without_its_metadata_counts_once(bench: Bench) -> None:
    async def main() -> None:
        agent = pydantic_ai.an_agent(bench, pydantic_ai.Script(FIND, BOTH), bench.token)
        first = await agent.run("go")
        answers = DeferredToolResults(approvals={first.output.approvals[0].tool_call_id: True})
        for _ in range(3):
            await agent.run(message_history=first.all_messages(), deferred_tool_results=answers)

    asyncio.run(main())
    assert bench.ran == ["roll_dice one", "send_mail hi ada"]


def test_a_denial_of_pydantic_ai_ends_a_call_whose_arguments_were_healed(bench: Bench) -> None:
    async def main() -> None:
        script = pydantic_ai.Script(FIND, [("send_mail", {"'text'": "hi ada"})])
        first = await pydantic_ai.an_agent(bench, script, bench.token).run("go")
        answers = DeferredToolResults(approvals={first.output.approvals[0].tool_call_id: False})
        later = pydantic_ai.an_agent(bench, script, bench.token)
        await later.run(message_history=first.all_messages(), deferred_tool_results=answers)

    asyncio.run(main())
    assert bench.host.turn("chat", principal="ada", conversation=bench.day).waiting() == ()
    assert not bench.ran
