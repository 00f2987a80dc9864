"""One chain and its turn: its tools, and what becomes of their calls."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import llm
from chalie import AnswerKind, HoldView, Turn
from chalie.envelope import parse

__all__ = ["DOOR", "Answers", "Exchange", "Held"]

#: by the id of a tool call: what was asked about, and whether the person said yes.
Answers = Mapping[str, tuple[str, bool]]

#: the tool that calls what was found, where llm cannot list it.
DOOR = "call_tool"
_DOOR_SAYS = "Call a tool that find_tools found, by its name and with its own arguments."
_DOOR_TAKES = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
    "required": ["name"],
    "additionalProperties": False,
}


class Held(llm.PauseChain):
    """The chain paused, since a call waits for a person.

    Attributes:
        hold: what waits; the approval binds to its arguments.
        tool_call: the model's call.
        messages: the history to go on with, where `chain` or `achain` was running.
    """

    def __init__(self, hold: HoldView) -> None:
        super().__init__(f"{hold.permission} waits for a person's yes (hold {hold.id})")
        self.hold = hold
        self.messages: list[Any] = []

    def answer(self, yes: bool) -> Answers:
        """Return the person's answer, for the toolbox that the chain goes on with."""
        call_id = self.tool_call.tool_call_id if self.tool_call is not None else None
        return {call_id or "": (self.hold.id, yes)}


class Exchange:
    """One chain.

    Args:
        turn: its turn.
        token: an approver token; None leaves asking to the host's approver.
        answers: what the person said to calls that a chain before this one paused for.
        awaits: whether calls are made on the event loop.
    """

    def __init__(self, turn: Turn, token: str | None, answers: Answers, awaits: bool) -> None:
        self._turn = turn
        self._token = token
        self._answers = answers
        self._awaits = awaits
        #: tools that only stand for a name nobody has, by their identity.
        self._covers: dict[int, llm.Tool] = {}
        self._pinned = frozenset(turn.names)
        self._door = llm.Tool(DOOR, _DOOR_SAYS, dict(_DOOR_TAKES), self._through_door(), "chalie_llm")

    def tools(self) -> list[llm.Tool]:
        """Return what can be called now."""
        return [
            llm.Tool(
                shown["name"],
                shown["description"],
                shown["input_schema"],
                self._calling(shown["name"]),
                "chalie_llm",
            )
            for shown in self._turn.tools("anthropic")
        ]

    def tools_and_door(self) -> list[llm.Tool]:
        """Return what can be called now, and the tool that calls what will be found."""
        return [*self.tools(), self._door]

    def join(self, listed: list[Any]) -> None:
        """Add to a prompt's tools what was found before it, and take out what `cover` added."""
        listed[:] = [tool for tool in listed if id(tool) not in self._covers]
        known = {tool.name for tool in listed}
        listed.extend(tool for tool in self.tools() if tool.name not in known)

    def cover(self, listed: list[Any], calls: Iterable[llm.ToolCall]) -> None:
        """Add to a prompt's tools what is called without being listed, so that the host answers it."""
        for call in calls:
            if call.name not in {tool.name for tool in listed}:
                cover = llm.Tool(call.name, None, {}, self._calling(call.name), "chalie_llm")
                self._covers[id(cover)] = cover
                listed.append(cover)

    def _calling(self, name: str) -> Any:
        def call(llm_tool_call: llm.ToolCall, **arguments: Any) -> Any:
            return self._call(name, arguments, llm_tool_call)

        return call

    def _through_door(self) -> Any:
        def call(llm_tool_call: llm.ToolCall, name: str = "", arguments: Any = None, **more: Any) -> Any:
            return self._call(str(name), arguments if arguments is not None else more, llm_tool_call)

        return call

    def _call(self, name: str, arguments: Any, call: llm.ToolCall) -> Any:
        """Return the envelope of a call, or what can be awaited for it.

        Raises:
            Held: it waits for a person.
        """
        if self._awaits:
            return self._acall(name, arguments, call)
        if self._token is None:
            text = self._turn.call(name, arguments)
        else:
            text, hold = self._turn.attempt(name, arguments, **self._answer(call))
            if hold is not None:
                raise Held(hold)
        self._tell(text)
        return text

    async def _acall(self, name: str, arguments: Any, call: llm.ToolCall) -> str:
        if self._token is None:
            text = await self._turn.acall(name, arguments)
        else:
            text, hold = await self._turn.aattempt(name, arguments, **self._answer(call))
            if hold is not None:
                raise Held(hold)
        self._tell(text)
        return text

    def _answer(self, call: llm.ToolCall) -> dict[str, Any]:
        answer = self._answers.get(call.tool_call_id or "")
        if answer is None:
            return {}
        hold, yes = answer
        return {
            "hold": hold,
            "answer": AnswerKind.ONCE if yes else AnswerKind.DECLINE,
            "token": self._token,
        }

    def _tell(self, text: str) -> None:
        """Describe in the door what can be called through it, once a search may have found more."""
        if parse(text).name != "find_tools":
            return
        lines = [
            f"- {shown['name']}: {shown['description']} Its arguments: "
            + json.dumps(shown["input_schema"], ensure_ascii=False)
            for shown in self._turn.tools("anthropic")
            if shown["name"] not in self._pinned
        ]
        self._door.description = "\n".join([_DOOR_SAYS, *lines])
