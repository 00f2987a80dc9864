"""Pydantic AI agents with Chalie's tools, driven by its own scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from chalie import AnswerKind, NotAuthorised
from chalie.envelope import parse
from chalie_pydantic_ai import Chalie, ChalieToolset
from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    RunContext,
    ToolApproved,
    ToolDenied,
)
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from . import pages
from .conftest import Bench

Call = tuple[str, dict[str, Any]]
FIND: list[Call] = [("find_tools", {"query": ["roll_dice", "send_mail"]})]
BOTH: list[Call] = [("roll_dice", {"text": "one"}), ("send_mail", {"text": "hi ada"})]


class Script:
    """A model that makes these calls, one list for each reply, and says "done" after the last."""

    def __init__(self, *replies: Sequence[Call]) -> None:
        self._replies = replies
        self.listed: list[list[str]] = []

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.listed.append([tool.name for tool in info.function_tools])
        said = sum(isinstance(message, ModelResponse) for message in messages)
        if said >= len(self._replies):
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart(name, arguments) for name, arguments in self._replies[said]])


def an_agent(bench: Bench, model: Script, token: str | None = None, **options: Any) -> Agent[None, Any]:
    chalie = Chalie(bench.host, principal="ada", approver_token=token, **options)
    return Agent(FunctionModel(model), capabilities=[chalie], output_type=[str, DeferredToolRequests])


def results(messages: Sequence[ModelMessage]) -> dict[str, Any]:
    return {
        part.tool_name: part.content
        for message in messages
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    }


def test_a_run_finds_two_tools_calls_both_is_approved_and_finishes(bench: Bench) -> None:
    model = Script(FIND, BOTH)
    agent = an_agent(bench, model, bench.token)

    async def main() -> None:
        first = await agent.run("roll dice and tell ada")
        assert isinstance(first.output, DeferredToolRequests)
        (call,) = first.output.approvals
        shown = first.output.metadata[call.tool_call_id]
        assert (shown["tool"], shown["arguments"]) == ("send_mail", {"text": "hi ada"})
        assert bench.ran == ["roll_dice one"]
        answers = first.output.build_results(approvals={call.tool_call_id: True})
        second = await agent.run(message_history=first.all_messages(), deferred_tool_results=answers)
        assert second.output == "done"
        frames = {name: parse(text) for name, text in results(second.all_messages()).items()}
        assert json.loads(frames["send_mail"].body) == {"did": "send_mail", "text": "hi ada"}
        assert all(frame.status == "success" for frame in frames.values())

    asyncio.run(main())
    assert bench.ran == ["roll_dice one", "send_mail hi ada"]
    assert "roll_dice" not in model.listed[0] and "find_tools" in model.listed[0]
    assert {"roll_dice", "send_mail"} <= set(model.listed[1])
    assert {"roll_dice", "send_mail"} <= set(model.listed[2]), "the run that goes on lists them too"


def test_an_approval_counts_in_another_agent_that_knows_only_the_stored_messages(bench: Bench) -> None:
    async def main() -> None:
        first = await an_agent(bench, Script(FIND, BOTH), bench.token).run("go")
        stored = ModelMessagesTypeAdapter.validate_json(first.all_messages_json())
        call = first.output.approvals[0].tool_call_id
        answers = DeferredToolResults(approvals={call: True}, metadata=first.output.metadata)
        later = an_agent(bench, Script(FIND, BOTH), bench.token)
        second = await later.run(message_history=stored, deferred_tool_results=answers)
        assert second.output == "done"

    asyncio.run(main())
    assert bench.ran == ["roll_dice one", "send_mail hi ada"]


@pytest.mark.parametrize("another", [False, True], ids=["same-agent", "another-agent"])
def test_what_is_denied_never_runs_and_is_declined_in_the_home(bench: Bench, another: bool) -> None:
    async def main() -> None:
        agent = an_agent(bench, Script(FIND, BOTH), bench.token)
        first = await agent.run("go")
        (call,) = first.output.approvals
        hold = first.output.metadata[call.tool_call_id]["hold"]
        answers = DeferredToolResults(approvals={call.tool_call_id: ToolDenied("not today")})
        if another:
            agent = an_agent(bench, Script(FIND, BOTH), bench.token)
        second = await agent.run(message_history=first.all_messages(), deferred_tool_results=answers)
        assert second.output == "done"
        assert results(second.all_messages())["send_mail"] == "not today"
        assert bench.host.holds.get(hold).state == "declined"

    asyncio.run(main())
    assert bench.ran == ["roll_dice one"]


@pytest.mark.parametrize("yes", [True, False], ids=["approved", "denied"])
def test_an_answer_may_come_together_with_new_words(bench: Bench, yes: bool) -> None:
    async def main() -> str:
        agent = an_agent(bench, Script(FIND, BOTH), bench.token)
        first = await agent.run("go")
        call = first.output.approvals[0].tool_call_id
        answers = first.output.build_results(approvals={call: yes})
        history = first.all_messages()
        second = await agent.run("and then?", message_history=history, deferred_tool_results=answers)
        assert second.output == "done"
        return str(first.output.metadata[call]["hold"])

    hold = asyncio.run(main())
    assert bench.ran == (["roll_dice one", "send_mail hi ada"] if yes else ["roll_dice one"])
    assert bench.host.holds.get(hold).state == ("done" if yes else "declined")


@pytest.mark.parametrize("yes", [True, False], ids=["approved", "denied"])
def test_a_handler_inside_the_run_answers_too(bench: Bench, yes: bool) -> None:
    holds: list[str] = []

    def handle(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        (call,) = requests.approvals
        holds.append(requests.metadata[call.tool_call_id]["hold"])
        return requests.build_results(approvals={call.tool_call_id: yes})

    chalie = Chalie(bench.host, principal="ada", approver_token=bench.token)
    agent = Agent(
        FunctionModel(Script(FIND, BOTH)), capabilities=[chalie, HandleDeferredToolCalls(handler=handle)]
    )
    assert asyncio.run(agent.run("go")).output == "done"
    assert bench.ran == (["roll_dice one", "send_mail hi ada"] if yes else ["roll_dice one"])
    assert bench.host.holds.get(holds[0]).state == ("done" if yes else "declined")


def test_a_later_run_of_the_conversation_begins_with_the_pinned_tools(bench: Bench) -> None:
    later = Script()

    async def main() -> None:
        first = await an_agent(bench, Script(FIND)).run("go")
        await an_agent(bench, later).run("again", message_history=first.all_messages())

    asyncio.run(main())
    assert "roll_dice" not in later.listed[0] and "find_tools" in later.listed[0]


def test_the_same_call_after_a_denial_is_refused_without_asking(bench: Bench) -> None:
    async def main() -> None:
        agent = an_agent(bench, Script(FIND, BOTH, [BOTH[1]]), bench.token)
        first = await agent.run("go")
        answers = first.output.build_results(approvals={first.output.approvals[0].tool_call_id: False})
        second = await agent.run(message_history=first.all_messages(), deferred_tool_results=answers)
        assert second.output == "done"
        frame = parse(results(second.all_messages())["send_mail"])
        assert frame.code == "declined" and "do not retry" in frame.body

    asyncio.run(main())
    assert bench.ran == ["roll_dice one"]


def test_changed_arguments_are_asked_about_anew(bench: Bench) -> None:
    async def main() -> None:
        agent = an_agent(bench, Script(FIND, BOTH), bench.token)
        first = await agent.run("go")
        (call,) = first.output.approvals
        changed = ToolApproved(override_args={"text": "all my keys"})
        answers = DeferredToolResults(approvals={call.tool_call_id: changed}, metadata=first.output.metadata)
        second = await agent.run(message_history=first.all_messages(), deferred_tool_results=answers)
        assert isinstance(second.output, DeferredToolRequests)
        again = second.output.metadata[call.tool_call_id]
        assert again["arguments"] == {"text": "all my keys"}
        assert again["hold"] != first.output.metadata[call.tool_call_id]["hold"]

    asyncio.run(main())
    assert bench.ran == ["roll_dice one"]


def test_what_was_approved_at_a_terminal_meanwhile_is_not_run_again(bench: Bench) -> None:
    async def main() -> None:
        agent = an_agent(bench, Script(FIND, BOTH), bench.token)
        first = await agent.run("go")
        (call,) = first.output.approvals
        hold = first.output.metadata[call.tool_call_id]["hold"]
        await asyncio.to_thread(bench.host.answer, hold, AnswerKind.ONCE, token=bench.token)
        answers = first.output.build_results(approvals={call.tool_call_id: True})
        second = await agent.run(message_history=first.all_messages(), deferred_tool_results=answers)
        assert parse(results(second.all_messages())["send_mail"]).status == "success"

    asyncio.run(main())
    assert bench.ran == ["roll_dice one", "send_mail hi ada"]


def test_without_a_token_a_call_that_is_asked_about_says_that_it_waits(bench: Bench) -> None:
    async def main() -> None:
        done = await an_agent(bench, Script(FIND, BOTH)).run("go")
        assert done.output == "done"
        assert parse(results(done.all_messages())["send_mail"]).code == "approval-pending"

    asyncio.run(main())
    assert bench.ran == ["roll_dice one"]


def test_a_token_that_the_home_does_not_know_ends_the_run_before_it_begins(bench: Bench) -> None:
    model = Script(FIND)
    with pytest.raises(NotAuthorised, match="not known to this home"):
        asyncio.run(an_agent(bench, model, "made-up").run("go"))
    assert model.listed == []


def test_runs_side_by_side_do_not_share_what_they_found(bench: Bench) -> None:
    finding = Script([("find_tools", {"query": ["roll_dice"]})], [("roll_dice", {"text": "mine"})])
    other = Script([("find_tools", {"query": ["send_mail"]})], [("roll_dice", {"text": "not mine"})])

    async def main() -> list[Any]:
        chalie = Chalie(bench.host, principal="ada", approver_token=bench.token)
        agent = Agent(FunctionModel(finding), capabilities=[chalie])
        return list(await asyncio.gather(agent.run("a"), agent.run("b", model=FunctionModel(other))))

    mine, theirs = asyncio.run(main())
    assert "send_mail" not in finding.listed[1] and "roll_dice" in finding.listed[1]
    assert "roll_dice" not in other.listed[1] and "send_mail" in other.listed[1]
    assert parse(results(mine.all_messages())["roll_dice"]).status == "success"
    assert parse(results(theirs.all_messages())["roll_dice"]).code == "not-active"
    assert bench.ran == ["roll_dice mine"]


def test_a_tool_that_blocks_does_not_block_the_loop(bench: Bench) -> None:
    agent = an_agent(bench, Script([("find_tools", {"query": ["wait_here"]})], [("wait_here", {})]))

    async def main() -> Any:
        return (await asyncio.gather(agent.run("go"), bench.opens_the_gate()))[0]

    assert parse(results(asyncio.run(main()).all_messages())["wait_here"]).status == "success"


def test_an_unknown_tool_is_an_envelope_each_time_it_is_called(bench: Bench) -> None:
    nothing = [("nothing_like_it", {"x": 1})]
    done = asyncio.run(an_agent(bench, Script(nothing, nothing, nothing)).run("go"))
    assert done.output == "done"
    texts = [
        part.content for m in done.all_messages() for part in m.parts if isinstance(part, ToolReturnPart)
    ]
    assert [parse(str(text)).code for text in texts] == ["unknown-tool"] * 3


def test_what_is_found_in_a_reply_can_be_called_in_the_same_reply(bench: Bench) -> None:
    both = [*FIND, ("roll_dice", {"text": "at once"})]
    done = asyncio.run(an_agent(bench, Script(both)).run("go"))
    assert parse(results(done.all_messages())["roll_dice"]).status == "success"
    assert bench.ran == ["roll_dice at once"]


def test_bad_arguments_are_answered_by_the_host(bench: Bench) -> None:
    wrong: list[Call] = [("roll_dice", {"text": ["no", "text"], "zeal": 1})]
    done = asyncio.run(an_agent(bench, Script(FIND, wrong)).run("go"))
    assert parse(results(done.all_messages())["roll_dice"]).code == "invalid-param"


def test_the_toolset_alone_serves_found_tools_too(bench: Bench) -> None:
    model = Script(FIND, [BOTH[0]])
    agent = Agent(FunctionModel(model), toolsets=[ChalieToolset(bench.host, principal=lambda ctx: "bob")])
    assert asyncio.run(agent.run("go")).output == "done"
    assert "roll_dice" in model.listed[1]
    assert bench.host.ledger.trail.query(name="roll_dice", limit=1)[0].principal == "bob"


def test_other_tools_of_the_agent_stay_as_they_are(bench: Bench) -> None:
    model = Script([("add", {"a": 1, "b": 2})])
    agent = an_agent(bench, model)

    @agent.tool_plain
    def add(a: int, b: int) -> int:
        return a + b

    done = asyncio.run(agent.run("go"))
    assert results(done.all_messages())["add"] == 3
    assert "add" in model.listed[0]


def test_the_code_of_its_page_runs(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHALIE_APPROVER_TOKEN", bench.token)  # as where the home was made before
    model = Script(FIND, BOTH)
    page = pages.run(
        "use-with-pydantic-ai.md",
        {'"anthropic:claude-sonnet-4-5"': "MODEL", "Host.open()": "HOST"},
        MODEL=FunctionModel(model),
        HOST=bench.host,
    )
    asked: list[Any] = []

    def person(*shown: Any) -> bool:
        asked.append(shown)
        return True

    assert asyncio.run(page["answer"]("go")) == "done"
    assert bench.ran == ["roll_dice one"]
    assert asyncio.run(page["answer_with_approvals"]("go", person)) == "done"
    assert [shown[:2] for shown in asked] == [("send_mail", {"text": "hi ada"})]
    assert bench.ran == ["roll_dice one", "roll_dice one", "send_mail hi ada"]
