"""llm's chains and its command line with Chalie's tools, driven by a fake model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import llm
import pytest
from chalie import AnswerKind, NotAuthorised
from chalie.envelope import parse
from chalie_llm import AsyncChalie, Chalie, Held, achain, chain
from click.testing import CliRunner
from llm.cli import cli
from llm.plugins import pm

from . import pages
from .conftest import Bench

Call = tuple[str, dict[str, Any]]
FIND: list[Call] = [("find_tools", {"query": ["roll_dice", "send_mail"]})]
BOTH: list[Call] = [("roll_dice", {"text": "one"}), ("send_mail", {"text": "hi ada"})]


class Script:
    """What a model says: these calls, one list for each reply, and "done" after the last."""

    def __init__(self, *replies: Sequence[Call]) -> None:
        self._replies = [list(reply) for reply in replies]
        self.listed: list[list[str]] = []
        self.described: list[dict[str, str]] = []
        self.results: dict[str, str] = {}
        self._made = 0

    def reply(self, prompt: Any, response: Any) -> str:
        self.listed.append([tool.name for tool in prompt.tools])
        self.described.append({tool.name: tool.description for tool in prompt.tools})
        self.results.update({result.name: result.output for result in prompt.tool_results})
        if not self._replies:
            return "done"
        for name, arguments in self._replies.pop(0):
            self._made += 1
            response.add_tool_call(llm.ToolCall(name, arguments, f"call-{self._made}"))
        return ""


class Fake(llm.Model):
    """A sync model."""

    model_id = "fake"
    supports_tools = True

    def __init__(self, script: Script) -> None:
        self.script = script

    def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> Iterator[str]:
        yield self.script.reply(prompt, response)


class AsyncFake(llm.AsyncModel):
    """An async one."""

    model_id = "fake"
    supports_tools = True

    def __init__(self, script: Script) -> None:
        self.script = script

    async def execute(
        self, prompt: Any, stream: bool, response: Any, conversation: Any
    ) -> AsyncGenerator[str, None]:
        yield self.script.reply(prompt, response)


def a_toolbox(bench: Bench, **more: Any) -> Chalie:
    return Chalie(host=bench.host, principal="ada", conversation=bench.day, **more)


def test_a_chain_finds_two_tools_calls_both_pauses_is_approved_and_finishes(bench: Bench) -> None:
    script = Script(FIND, BOTH)
    with pytest.raises(Held) as paused:
        chain(Fake(script), "go", chalie=a_toolbox(bench, approver_token=bench.token))
    held = paused.value
    assert (held.hold.name, dict(held.hold.arguments)) == ("send_mail", {"text": "hi ada"})
    assert bench.ran == ["roll_dice one"]
    answered = a_toolbox(bench, approver_token=bench.token, answers=held.answer(True))
    assert chain(Fake(script), chalie=answered, messages=held.messages) == "done"
    assert json.loads(parse(script.results["send_mail"]).body)["did"] == "send_mail"
    assert bench.ran == ["roll_dice one", "send_mail hi ada"]
    assert "roll_dice" not in script.listed[0] and "find_tools" in script.listed[0]
    assert {"roll_dice", "send_mail"} <= set(script.listed[1])
    assert {"roll_dice", "send_mail"} <= set(script.listed[2]), "the chain that goes on lists them too"


def test_it_is_the_same_with_asyncio(bench: Bench) -> None:
    script = Script(FIND, BOTH)

    def toolbox(**more: Any) -> AsyncChalie:
        return AsyncChalie(
            host=bench.host, principal="ada", conversation=bench.day, approver_token=bench.token, **more
        )

    async def main() -> str:
        with pytest.raises(Held) as paused:
            await achain(AsyncFake(script), "go", chalie=toolbox())
        held = paused.value
        assert bench.ran == ["roll_dice one"]
        answered = toolbox(answers=held.answer(True))
        return await achain(AsyncFake(script), chalie=answered, messages=held.messages)

    assert asyncio.run(main()) == "done"
    assert parse(script.results["send_mail"]).status == "success"
    assert bench.ran == ["roll_dice one", "send_mail hi ada"]


def test_what_is_declined_never_runs(bench: Bench) -> None:
    script = Script(FIND, BOTH)
    with pytest.raises(Held) as paused:
        chain(Fake(script), "go", chalie=a_toolbox(bench, approver_token=bench.token))
    held = paused.value
    answered = a_toolbox(bench, approver_token=bench.token, answers=held.answer(False))
    assert chain(Fake(script), chalie=answered, messages=held.messages) == "done"
    assert parse(script.results["send_mail"]).code == "declined"
    assert bench.host.holds.get(held.hold.id).state == "declined"
    assert bench.ran == ["roll_dice one"]


def test_without_an_answer_the_chain_pauses_again_for_the_same_hold(bench: Bench) -> None:
    script = Script(FIND, BOTH)
    with pytest.raises(Held) as paused:
        chain(Fake(script), "go", chalie=a_toolbox(bench, approver_token=bench.token))
    held = paused.value
    with pytest.raises(Held) as again:
        chain(Fake(script), chalie=a_toolbox(bench, approver_token=bench.token), messages=held.messages)
    assert again.value.hold.id == held.hold.id
    assert bench.ran == ["roll_dice one"]


def test_what_was_approved_at_a_terminal_meanwhile_is_not_run_again(bench: Bench) -> None:
    script = Script(FIND, BOTH)
    with pytest.raises(Held) as paused:
        chain(Fake(script), "go", chalie=a_toolbox(bench, approver_token=bench.token))
    held = paused.value
    bench.host.answer(held.hold.id, AnswerKind.ONCE, token=bench.token)
    answered = a_toolbox(bench, approver_token=bench.token, answers=held.answer(True))
    assert chain(Fake(script), chalie=answered, messages=held.messages) == "done"
    assert parse(script.results["send_mail"]).status == "success"
    assert bench.ran == ["roll_dice one", "send_mail hi ada"]


def test_without_a_token_a_call_that_is_asked_about_says_that_it_waits(bench: Bench) -> None:
    script = Script(FIND, BOTH)
    assert chain(Fake(script), "go", chalie=a_toolbox(bench)) == "done"
    assert parse(script.results["send_mail"]).code == "approval-pending"
    assert bench.ran == ["roll_dice one"]


def test_a_token_that_the_home_does_not_know_makes_no_toolbox(bench: Bench) -> None:
    with pytest.raises(NotAuthorised, match="not known to this home"):
        a_toolbox(bench, approver_token="made-up")


def test_chains_side_by_side_with_one_toolbox_do_not_share_what_they_found(bench: Bench) -> None:
    finding = Script([("find_tools", {"query": ["roll_dice"]})], [("roll_dice", {"text": "mine"})])
    other = Script([("find_tools", {"query": ["send_mail"]})], [("roll_dice", {"text": "not mine"})])
    toolbox = a_toolbox(bench)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda script: chain(Fake(script), "go", chalie=toolbox), (finding, other)))
    assert "send_mail" not in finding.listed[1] and "roll_dice" in finding.listed[1]
    assert "roll_dice" not in other.listed[1] and "send_mail" in other.listed[1]
    assert parse(finding.results["roll_dice"]).status == "success"
    assert parse(other.results["roll_dice"]).code == "not-active"
    assert bench.ran == ["roll_dice mine"]


def test_a_tool_that_blocks_does_not_block_the_loop(bench: Bench) -> None:
    script = Script([("find_tools", {"query": ["wait_here"]})], [("wait_here", {})])
    chalie = AsyncChalie(host=bench.host, principal="ada")

    async def main() -> str:
        return (await asyncio.gather(achain(AsyncFake(script), "go", chalie=chalie), bench.opens_the_gate()))[
            0
        ]

    assert asyncio.run(main()) == "done"
    assert parse(script.results["wait_here"]).status == "success"


def test_an_unknown_tool_is_an_envelope_and_is_not_listed_for_it(bench: Bench) -> None:
    script = Script([("nothing_like_it", {"x": 1})])
    assert chain(Fake(script), "go", chalie=a_toolbox(bench)) == "done"
    assert parse(script.results["nothing_like_it"]).code == "unknown-tool"
    assert "nothing_like_it" not in script.listed[1]


def test_what_is_found_in_a_reply_can_be_called_in_the_same_reply(bench: Bench) -> None:
    script = Script([*FIND, ("roll_dice", {"text": "at once"})])
    assert chain(Fake(script), "go", chalie=a_toolbox(bench)) == "done"
    assert parse(script.results["roll_dice"]).status == "success"
    assert script.described[1]["roll_dice"], "it is listed as itself from now on"


def test_other_tools_of_the_program_stay_as_they_are(bench: Bench) -> None:
    def add(a: int, b: int) -> str:
        """Add."""
        return str(a + b)

    script = Script([("add", {"a": 1, "b": 2})])
    assert chain(Fake(script), "go", chalie=a_toolbox(bench), tools=[add]) == "done"
    assert script.results["add"] == "3"


def test_in_a_chain_of_llms_own_what_was_found_is_called_through_the_door(bench: Bench) -> None:
    through: list[Call] = [("call_tool", {"name": "roll_dice", "arguments": {"text": "through"}})]
    script = Script(FIND, through, [("call_tool", {"name": "nothing_like_it"})])
    assert Fake(script).chain("go", tools=[a_toolbox(bench)]).text() == "done"
    assert "roll_dice" not in script.described[0]["call_tool"]
    assert "roll_dice" in script.described[1]["call_tool"]
    assert '"text": {"type": "string"}' in script.described[1]["call_tool"]
    assert bench.ran == ["roll_dice through"]
    assert parse(script.results["call_tool"]).code == "unknown-tool"


@pytest.fixture
def command_line(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    """The script of the model `fake`, which the command line knows; its home is the bench's."""
    script = Script(FIND, [("call_tool", {"name": "send_mail", "arguments": {"text": "hi ada"}})])

    class Models:
        """A plugin of llm with one model."""

        __name__ = "fake_models"

        @llm.hookimpl
        def register_models(self, register: Any) -> None:
            register(Fake(script))

    plugin = Models()
    monkeypatch.setenv("LLM_USER_PATH", str(tmp_path))
    monkeypatch.setenv("CHALIE_HOME", str(bench.host.config.home))
    pm.register(plugin, name="fake-models")
    yield script
    pm.unregister(plugin)


def test_on_the_command_line_a_call_that_nobody_can_be_asked_about_waits(
    bench: Bench, command_line: Script
) -> None:
    done = CliRunner().invoke(cli, ["-m", "fake", "-T", "Chalie", "--no-stream", "-n", "go"])
    assert (done.exit_code, done.output.strip()) == (0, "done")
    assert parse(command_line.results["call_tool"]).code == "approval-pending"
    assert bench.ran == []


def test_the_command_line_lists_the_toolbox(command_line: Script) -> None:
    done = CliRunner().invoke(cli, ["tools", "list"])
    assert done.exit_code == 0 and "Chalie" in done.output
    done = CliRunner().invoke(cli, ["plugins"])
    assert "chalie-llm" in done.output


def test_the_code_of_its_page_runs(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHALIE_APPROVER_TOKEN", bench.token)  # as where the home was made before
    models = {"script": Script(FIND, [BOTH[0]])}
    page = pages.run(
        "use-with-llm.md",
        {
            'llm.get_model("gpt-5")': "Fake(models['script'])",
            'llm.get_async_model("gpt-5")': "AsyncFake(models['script'])",
            "Host.open()": "HOST",
        },
        Fake=Fake,
        AsyncFake=AsyncFake,
        models=models,
        HOST=bench.host,
    )
    assert page["answer"]("go") == "done"
    page["model"].script = Script(FIND, BOTH)
    asked: list[Any] = []

    def person(*shown: Any) -> bool:
        asked.append(shown)
        return True

    assert page["answer_with_approvals"]("go", bench.day, person) == "done"
    assert asked == [("send_mail", {"text": "hi ada"})]
    assert bench.ran == ["roll_dice one", "roll_dice one", "send_mail hi ada"]
    models["script"] = Script(FIND, [BOTH[0]])
    assert asyncio.run(page["answer_async"]("go")) == "done"
    assert bench.ran[3:] == ["roll_dice one"]
