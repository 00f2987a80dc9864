"""Agents of the OpenAI Agents SDK with Chalie's tools, driven by its own scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from agents import RunConfig, Runner, RunResult, UserError, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call
from chalie import AnswerKind, NotAuthorised
from chalie.envelope import parse
from chalie_openai_agents import Chalie, ChalieAgent

from . import pages
from .conftest import Bench

Call = tuple[str, dict[str, Any]]
FIND: list[Call] = [("find_tools", {"query": ["roll_dice", "send_mail"]})]
BOTH: list[Call] = [("roll_dice", {"text": "one"}), ("send_mail", {"text": "hi ada"})]
QUIET = RunConfig(tracing_disabled=True)
set_tracing_disabled(True)  # the code of the page has no configuration of its own, and must not go out either


def steps(*replies: Sequence[Call]) -> list[Any]:
    """Return what a model says that makes these calls, one list for each reply, and then says "done"."""
    calls = [
        [
            function_call(name, arguments, call_id=f"call-{at}-{place}")
            for place, (name, arguments) in enumerate(reply)
        ]
        for at, reply in enumerate(replies)
    ]
    return [*calls, [assistant_message("done")]]


def script(*replies: Sequence[Call]) -> ScriptedModel:
    return ScriptedModel(steps(*replies))


def an_agent(model: ScriptedModel, **more: Any) -> ChalieAgent[Any]:
    return ChalieAgent(name="helper", model=model, **more)


def listed(model: ScriptedModel) -> list[list[str]]:
    return [[tool.name for tool in call.tools] for call in model.calls]


def results(done: RunResult) -> dict[str, str]:
    """Return what each call was answered, by its tool's name."""
    called: dict[str, str] = {}
    answered: dict[str, str] = {}
    for item in done.new_items:
        raw: Any = item.raw_item
        if item.type == "tool_call_item":
            called[raw.call_id] = raw.name
        elif item.type == "tool_call_output_item":
            answered[called[raw["call_id"]]] = str(item.output)
    return answered


async def go(chalie: Chalie, bench: Bench, agent: Any, input: Any = "go", **more: Any) -> RunResult:
    more = {"conversation": bench.day, "principal": "ada", "run_config": QUIET, **more}
    return await chalie.run(agent, input, **more)


def test_a_run_finds_two_tools_calls_both_is_approved_and_finishes(bench: Bench) -> None:
    model = script(FIND, BOTH)
    agent, chalie = an_agent(model), Chalie(bench.host, approver_token=bench.token)

    async def main() -> RunResult:
        first = await go(chalie, bench, agent)
        (item,) = first.interruptions
        assert (item.tool_name, json.loads(item.arguments or "")) == ("send_mail", {"text": "hi ada"})
        assert bench.ran == ["roll_dice one"]
        (view,) = bench.host.turn("chat", principal="ada", conversation=bench.day).waiting()
        assert dict(view.arguments) == {"text": "hi ada"}
        state = first.to_state()
        state.approve(state.get_interruptions()[0])
        return await go(chalie, bench, agent, state)

    done = asyncio.run(main())
    assert done.final_output == "done"
    assert json.loads(parse(results(done)["send_mail"]).body)["did"] == "send_mail"
    assert bench.ran == ["roll_dice one", "send_mail hi ada"]
    first, second, third = listed(model)
    assert "roll_dice" not in first and "find_tools" in first
    assert {"roll_dice", "send_mail"} <= set(second) and {"roll_dice", "send_mail"} <= set(third)


@pytest.mark.parametrize("yes", [True, False], ids=["approved", "rejected"])
def test_an_answer_counts_in_another_program_that_knows_only_the_stored_state(
    bench: Bench, yes: bool
) -> None:
    async def main() -> RunResult:
        first = await go(Chalie(bench.host, approver_token=bench.token), bench, an_agent(script(FIND, BOTH)))
        text = first.to_state().to_string()
        later, agent = Chalie(bench.host, approver_token=bench.token), an_agent(script())
        state = await later.restore(agent, text, conversation=bench.day, principal="ada")
        (item,) = state.get_interruptions()
        if yes:
            state.approve(item)
        else:
            state.reject(item)
        return await go(later, bench, agent, state)

    done = asyncio.run(main())
    assert done.final_output == "done"
    assert bench.ran == (["roll_dice one", "send_mail hi ada"] if yes else ["roll_dice one"])
    assert parse(results(done)["send_mail"]).code == (None if yes else "declined")
    assert bench.host.turn("chat", principal="ada", conversation=bench.day).waiting() == ()


@pytest.mark.parametrize("message", [None, "not today"])
def test_what_is_rejected_never_runs_and_is_declined_in_the_home(bench: Bench, message: str | None) -> None:
    agent, chalie = an_agent(script(FIND, BOTH)), Chalie(bench.host, approver_token=bench.token)

    async def main() -> RunResult:
        first = await go(chalie, bench, agent)
        state = first.to_state()
        state.reject(state.get_interruptions()[0], rejection_message=message)
        return await go(chalie, bench, agent, state)

    done = asyncio.run(main())
    assert done.final_output == "done"
    told = results(done)["send_mail"]
    assert told == message if message else parse(told).code == "declined"
    assert bench.ran == ["roll_dice one"]
    (hold,) = [h for h in bench.host.holds.list(ended=True) if h.conversation == bench.day]
    assert hold.state == "declined"


def test_the_same_call_after_a_rejection_is_refused_without_asking(bench: Bench) -> None:
    agent, chalie = an_agent(script(FIND, BOTH, [BOTH[1]])), Chalie(bench.host, approver_token=bench.token)

    async def main() -> RunResult:
        first = await go(chalie, bench, agent)
        state = first.to_state()
        state.reject(state.get_interruptions()[0], rejection_message="not today")
        return await go(chalie, bench, agent, state)

    done = asyncio.run(main())
    assert done.final_output == "done"
    frame = parse(results(done)["send_mail"])
    assert frame.code == "declined" and "do not retry" in frame.body
    assert bench.ran == ["roll_dice one"]


def test_a_standing_approval_of_the_sdk_is_no_answer_to_a_later_call(bench: Bench) -> None:
    later: list[Call] = [("send_mail", {"text": "all my keys"})]
    agent, chalie = an_agent(script(FIND, BOTH, later)), Chalie(bench.host, approver_token=bench.token)

    async def main() -> RunResult:
        # not even where that very call waits already
        turn = bench.host.turn("chat", principal="ada", conversation=bench.day, active=["send_mail"])
        await turn.aattempt(*later[0])
        first = await go(chalie, bench, agent)
        state = first.to_state()
        state.approve(state.get_interruptions()[0], always_approve=True)
        return await go(chalie, bench, agent, state)

    done = asyncio.run(main())
    assert done.final_output == "done"
    assert parse(results(done)["send_mail"]).code == "approval-pending"
    assert bench.ran == ["roll_dice one", "send_mail hi ada"]


def test_what_was_approved_at_a_terminal_meanwhile_is_not_run_again(bench: Bench) -> None:
    agent, chalie = an_agent(script(FIND, BOTH)), Chalie(bench.host, approver_token=bench.token)

    async def main() -> RunResult:
        first = await go(chalie, bench, agent)
        (view,) = bench.host.turn("chat", principal="ada", conversation=bench.day).waiting()
        await asyncio.to_thread(bench.host.answer, view.id, AnswerKind.ONCE, token=bench.token)
        state = first.to_state()
        state.approve(state.get_interruptions()[0])
        return await go(chalie, bench, agent, state)

    assert parse(results(asyncio.run(main()))["send_mail"]).status == "success"
    assert bench.ran == ["roll_dice one", "send_mail hi ada"]


def test_what_nobody_answered_interrupts_again(bench: Bench) -> None:
    agent, chalie = an_agent(script(FIND, BOTH)), Chalie(bench.host, approver_token=bench.token)

    async def main() -> None:
        first = await go(chalie, bench, agent)
        second = await go(chalie, bench, agent, first.to_state())
        assert [item.tool_name for item in second.interruptions] == ["send_mail"]
        assert len(bench.host.turn("chat", principal="ada", conversation=bench.day).waiting()) == 1

    asyncio.run(main())
    assert bench.ran == ["roll_dice one"]


def test_without_a_token_a_call_that_is_asked_about_says_that_it_waits(bench: Bench) -> None:
    done = asyncio.run(go(Chalie(bench.host), bench, an_agent(script(FIND, BOTH))))
    assert done.final_output == "done" and done.interruptions == []
    assert parse(results(done)["send_mail"]).code == "approval-pending"
    assert bench.ran == ["roll_dice one"]


def test_a_token_that_the_home_does_not_know_ends_the_run_before_it_begins(bench: Bench) -> None:
    model = script(FIND)
    with pytest.raises(NotAuthorised, match="not known to this home"):
        asyncio.run(go(Chalie(bench.host, approver_token="made-up"), bench, an_agent(model)))
    assert model.calls == ()


def test_an_agent_without_a_turn_says_how_it_is_run(bench: Bench) -> None:
    with pytest.raises(UserError, match=r"run with Chalie\.run"):
        asyncio.run(Runner.run(an_agent(script()), "go", run_config=QUIET))


def test_runs_side_by_side_do_not_share_what_they_found(bench: Bench) -> None:
    finding = script([("find_tools", {"query": ["roll_dice"]})], [("roll_dice", {"text": "mine"})])
    other = script([("find_tools", {"query": ["send_mail"]})], [("roll_dice", {"text": "not mine"})])
    chalie = Chalie(bench.host)

    async def main() -> list[RunResult]:
        runs = (go(chalie, bench, an_agent(model)) for model in (finding, other))
        return list(await asyncio.gather(*runs))

    mine, theirs = asyncio.run(main())
    assert "send_mail" not in listed(finding)[1] and "roll_dice" in listed(finding)[1]
    assert "roll_dice" not in listed(other)[1] and "send_mail" in listed(other)[1]
    assert parse(results(mine)["roll_dice"]).status == "success"
    assert parse(results(theirs)["roll_dice"]).code == "not-active"
    assert bench.ran == ["roll_dice mine"]


def test_a_tool_that_blocks_does_not_block_the_loop(bench: Bench) -> None:
    agent = an_agent(script([("find_tools", {"query": ["wait_here"]})], [("wait_here", {})]))

    async def main() -> RunResult:
        return (await asyncio.gather(go(Chalie(bench.host), bench, agent), bench.opens_the_gate()))[0]

    assert parse(results(asyncio.run(main()))["wait_here"]).status == "success"


def test_an_unknown_tool_is_an_envelope(bench: Bench) -> None:
    done = asyncio.run(go(Chalie(bench.host), bench, an_agent(script([("nothing_like_it", {"x": 1})]))))
    assert done.final_output == "done"
    assert parse(results(done)["nothing_like_it"]).code == "unknown-tool"


def test_what_is_found_in_a_reply_is_not_run_in_the_same_reply_without_its_arguments(bench: Bench) -> None:
    both = [*FIND, ("roll_dice", {"text": "at once"})]
    done = asyncio.run(go(Chalie(bench.host), bench, an_agent(script(both))))
    assert parse(results(done)["roll_dice"]).code == "not-active"
    assert bench.ran == []


@pytest.mark.parametrize("token", [True, False], ids=["token", "no-token"])
def test_arguments_that_are_no_json_are_answered_by_the_host_or_asked_about(
    bench: Bench, token: bool
) -> None:
    model = script(FIND)
    broken = function_call("roll_dice", '{"text": ', call_id="broken")
    model = ScriptedModel([[function_call(*FIND[0], call_id="f")], [broken], [assistant_message("done")]])
    chalie = Chalie(bench.host, approver_token=bench.token if token else None)
    done = asyncio.run(go(chalie, bench, an_agent(model)))
    if token:  # the SDK asks about what it cannot read, and so do we not run it
        assert [item.tool_name for item in done.interruptions] == ["roll_dice"]
    else:
        assert parse(results(done)["roll_dice"]).status == "error"
    assert bench.ran == []


def test_other_tools_of_the_agent_stay_as_they_are_and_keep_their_names(bench: Bench) -> None:
    @function_tool
    def roll_dice(text: str) -> str:
        """Roll the agent's own dice."""
        return f"own {text}"

    model = script(FIND, [BOTH[0]])
    done = asyncio.run(go(Chalie(bench.host), bench, an_agent(model, tools=[roll_dice])))
    assert results(done)["roll_dice"] == "own one"
    assert listed(model)[1].count("roll_dice") == 1
    assert bench.ran == []


def test_a_streamed_run_has_a_turn_too(bench: Bench) -> None:
    async def main() -> Any:
        chalie = Chalie(bench.host)
        async with chalie.exchange(conversation=bench.day, principal="ada", run_config=QUIET) as config:
            streamed = Runner.run_streamed(an_agent(script(FIND, [BOTH[0]])), "go", run_config=config)
            async for _ in streamed.stream_events():
                pass
        return streamed.final_output

    assert asyncio.run(main()) == "done"
    assert bench.ran == ["roll_dice one"]


def test_the_code_of_its_page_runs(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHALIE_APPROVER_TOKEN", bench.token)  # as where the home was made before
    model = ScriptedModel()
    page = pages.run(
        "use-with-openai-agents.md",
        {'"gpt-5"': "MODEL", "Host.open()": "HOST"},
        MODEL=model,
        HOST=bench.host,
    )
    asked: list[Any] = []

    def person(*shown: Any) -> bool:
        asked.append(shown)
        return True

    model.extend(steps(FIND, [BOTH[0]]))
    assert asyncio.run(page["answer"]("go", bench.day)) == "done"
    model.extend(steps(FIND, BOTH))
    assert asyncio.run(page["answer_with_approvals"]("go", bench.day, person)) == "done"
    assert asked == [("send_mail", '{"text":"hi ada"}')]
    assert bench.ran == ["roll_dice one", "roll_dice one", "send_mail hi ada"]

    async def stored() -> str:
        done = await go(page["asking"], bench, page["agent"])
        return str(done.to_state().to_string())

    model.extend(steps(FIND, [BOTH[1]]))
    assert asyncio.run(page["go_on"](asyncio.run(stored()), bench.day, person)) == "done"
    assert bench.ran[3:] == ["send_mail hi ada"]
    model.extend(steps(FIND, [BOTH[0]]))
    assert asyncio.run(page["stream"]("go", bench.day)) == "done"
    assert bench.ran[4:] == ["roll_dice one"]
