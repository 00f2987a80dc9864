"""The loops of the documentation, with clients that check each message as the real APIs do."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from chalie import Answer, AnswerKind, Host
from chalie.envelope import parse

from tests.support import packages

PAGE = Path(__file__).resolve().parents[1] / "docs" / "embedding.md"

#: what the scripted model does: the calls of each reply, then its closing words.
REPLIES = [
    [("find_tools", {"query": ["dice", "coin"]})],
    [("dice", {"text": "first"}), ("coin", {"text": "second"}), ("nothing_like_it", {})],
    "Both are thrown.",
]


def documented(name: str) -> Callable[..., Any]:
    """Return a function that the page defines."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (block,) = (block for block in blocks if block.removeprefix("async ").startswith(f"def {name}("))
    scope: dict[str, Any] = {}
    exec(compile(block, str(PAGE), "exec"), scope)
    found: Callable[..., Any] = scope[name]
    return found


class Anthropic:
    """Answers like the Messages API, and refuses what it would refuse."""

    def __init__(self) -> None:
        self.messages = self
        self.results: list[str] = []
        self._replies = iter(REPLIES)
        self._ids: list[str] = []

    def create(self, *, model: str, max_tokens: int, messages: Sequence[Any], tools: Sequence[Any]) -> Any:
        assert model and max_tokens
        assert all(set(tool) == {"name", "description", "input_schema"} for tool in tools)
        roles = [message["role"] for message in messages]
        assert roles == ["user" if at % 2 == 0 else "assistant" for at in range(len(roles))]
        if self._ids:
            answers = messages[-1]["content"]
            assert [answer["type"] for answer in answers] == ["tool_result"] * len(self._ids)
            assert [answer["tool_use_id"] for answer in answers] == self._ids
            self.results += [answer["content"] for answer in answers]
        reply = next(self._replies)
        if isinstance(reply, str):
            self._ids = []
            return SimpleNamespace(content=[SimpleNamespace(type="text", text=reply)])
        self._ids = [f"toolu_{len(messages)}_{at}" for at in range(len(reply))]
        text = SimpleNamespace(type="text", text="Let me see.")
        calls = [
            SimpleNamespace(type="tool_use", id=number, name=name, input=arguments)
            for number, (name, arguments) in zip(self._ids, reply, strict=True)
        ]
        return SimpleNamespace(content=[text, *calls])


class OpenAI:
    """Answers like chat completions, and refuses what they would refuse."""

    def __init__(self) -> None:
        self.chat = SimpleNamespace(completions=self)
        self.results: list[str] = []
        self._replies = iter(REPLIES)
        self._ids: list[str] = []

    def create(self, *, model: str, messages: Sequence[Any], tools: Sequence[Any]) -> Any:
        assert model
        assert all(tool["type"] == "function" and tool["function"]["parameters"] for tool in tools)
        if self._ids:
            answers = messages[-len(self._ids) :]
            assert [answer["role"] for answer in answers] == ["tool"] * len(self._ids)
            assert [answer["tool_call_id"] for answer in answers] == self._ids
            self.results += [answer["content"] for answer in answers]
        reply = next(self._replies)
        if isinstance(reply, str):
            message = SimpleNamespace(role="assistant", content=reply, tool_calls=None)
        else:
            self._ids = [f"call_{len(messages)}_{at}" for at in range(len(reply))]
            calls = [
                SimpleNamespace(
                    id=number,
                    type="function",
                    function=SimpleNamespace(name=name, arguments=json.dumps(arguments)),
                )
                for number, (name, arguments) in zip(self._ids, reply, strict=True)
            ]
            message = SimpleNamespace(role="assistant", content=None, tool_calls=calls)
        return SimpleNamespace(choices=[SimpleNamespace(message=message)])


class Responses:
    """Answers like the Responses API's async client, and refuses what it would refuse."""

    def __init__(self) -> None:
        self.responses = self
        self.results: list[str] = []
        self._replies = iter(REPLIES)
        self._ids: list[str] = []

    async def create(self, *, model: str, input: Sequence[Any], tools: Sequence[Any]) -> Any:
        assert model
        assert all(set(tool) == {"type", "strict", "name", "description", "parameters"} for tool in tools)
        if self._ids:
            answers = input[-len(self._ids) :]
            assert [answer["type"] for answer in answers] == ["function_call_output"] * len(self._ids)
            assert [answer["call_id"] for answer in answers] == self._ids
            self.results += [answer["output"] for answer in answers]
        reply = next(self._replies)
        if isinstance(reply, str):
            return SimpleNamespace(output=[SimpleNamespace(type="message")], output_text=reply)
        self._ids = [f"call_{len(input)}_{at}" for at in range(len(reply))]
        calls = [
            SimpleNamespace(type="function_call", call_id=number, name=name, arguments=json.dumps(arguments))
            for number, (name, arguments) in zip(self._ids, reply, strict=True)
        ]
        return SimpleNamespace(output=[SimpleNamespace(type="reasoning"), *calls], output_text="")


class Yes:
    """Approves whatever is asked."""

    def ask(self, hold: Any) -> Answer:
        return Answer(AnswerKind.ONCE, by="test")


@pytest.fixture
def host(home: Path, site: Path) -> Iterator[Host]:
    for name in ("dice", "coin"):
        packages.install(site, packages.ability_package(name))
    with Host.open(home, approver=Yes()) as host:
        host.upkeep.refresh(None)
        yield host


@pytest.mark.parametrize(
    ("name", "client"),
    [("answer_anthropic", Anthropic), ("answer_openai", OpenAI), ("answer_responses", Responses)],
)
def test_a_documented_loop_answers_every_call_of_a_reply_under_its_id(
    host: Host, name: str, client: Callable[[], Any]
) -> None:
    api = client()
    said = documented(name)(host, api, "Throw a die and a coin.")
    assert (asyncio.run(said) if asyncio.iscoroutine(said) else said) == "Both are thrown."
    frames = [parse(text) for text in api.results]
    assert [(frame.name, frame.status) for frame in frames] == [
        ("find_tools", "success"),
        ("dice", "success"),
        ("coin", "success"),
        ("nothing_like_it", "error"),
    ]
    assert json.loads(frames[2].body) == {"echo": {"text": "second"}}
