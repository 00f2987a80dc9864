"""One call of a turn inside a graph: its envelope, or an interrupt while it waits for a person."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from chalie import AnswerKind, HoldView, Host, ToolResult, Turn
from chalie.envelope import parse, render
from langgraph.errors import GraphInterrupt
from langgraph.types import interrupt

from .decisions import Decision, question, read

__all__ = ["Calls"]

#: calls whose holds are kept in mind.
_MOST_ASKED = 1000


class Calls:
    """Calls tools of turns, and asks through interrupts where there is a token to answer with.

    LangGraph runs a task again from its start when it is resumed. So it is looked first whether there is an
    answer: what was asked about is then answered and never made anew, whatever may be allowed by now.

    Args:
        host: the turns' own.
        token: an approver token; None leaves asking to the host's approver.
    """

    def __init__(self, host: Host, token: str | None) -> None:
        self._host = host
        self._token = token or host.config.approver_token
        self._asked: dict[str, str] = {}

    def prove(self) -> None:
        """Raise `NotAuthorised` where the home does not know the token."""
        if self._token:
            self._host.authority.prove(self._token)

    def call(self, turn: Turn, name: str, arguments: Mapping[str, Any], call_id: str) -> str:
        """Return the envelope of a call.

        Args:
            call_id: the id of the model's tool call.

        Raises:
            GraphInterrupt: it waits for a person.
        """
        if not self._token:
            return turn.call(name, arguments)
        key, decision = f"{turn.id} {call_id}", _answered()
        if decision is None:
            text, hold = turn.attempt(name, arguments, hold=self._asked.get(key))
            if hold is None:
                return text
            decision = read(self._ask(key, hold, call_id))
        while True:
            waits = next(iter(turn.waiting(name, arguments)), None)
            held = self._asked.get(key) or (waits.id if waits is not None else None)
            if held is None:
                return _over(name, decision)
            if isinstance(decision, Decision):
                text, hold = turn.attempt(name, arguments, hold=held, answer=decision.kind, token=self._token)
                return _told(text, decision) if hold is None else self._unasked(name, hold, decision)
            if waits is None:  # it was answered elsewhere meanwhile
                return _over(name, decision)
            decision = read(self._ask(key, waits, call_id, decision))

    async def acall(self, turn: Turn, name: str, arguments: Mapping[str, Any], call_id: str) -> str:
        """Do what `call` does without blocking the event loop."""
        if not self._token:
            return await turn.acall(name, arguments)
        key, decision = f"{turn.id} {call_id}", _answered()
        if decision is None:
            text, hold = await turn.aattempt(name, arguments, hold=self._asked.get(key))
            if hold is None:
                return text
            decision = read(self._ask(key, hold, call_id))
        while True:
            waits = next(iter(await asyncio.to_thread(turn.waiting, name, arguments)), None)
            held = self._asked.get(key) or (waits.id if waits is not None else None)
            if held is None:
                return _over(name, decision)
            if isinstance(decision, Decision):
                text, hold = await turn.aattempt(
                    name, arguments, hold=held, answer=decision.kind, token=self._token
                )
                return (
                    _told(text, decision)
                    if hold is None
                    else await asyncio.to_thread(self._unasked, name, hold, decision)
                )
            if waits is None:  # it was answered elsewhere meanwhile
                return _over(name, decision)
            decision = read(self._ask(key, waits, call_id, decision))

    def _ask(self, key: str, hold: HoldView, call_id: str, problem: str = "") -> Any:
        """Interrupt the graph with a question; return what an interrupt after this one was resumed with."""
        self._asked[key] = hold.id
        if len(self._asked) > _MOST_ASKED:
            self._asked.pop(next(iter(self._asked)))
        return interrupt(question(hold, call_id, problem))

    def _unasked(self, name: str, hold: HoldView, decision: Decision) -> str:
        """Return the refusal of a call that was opened just now, while the answer is another one's."""
        self._host.holds.void(self._host.holds.get(hold.id), "the answer was for a call that waits no more")
        return _over(name, decision)


def _answered() -> Decision | str | None:
    """Return what the person said to the call of this task, or why that is no answer; None if it is new."""
    try:
        return read(interrupt(None))
    except GraphInterrupt:
        return None


def _over(name: str, decision: Decision | str) -> str:
    """Return the refusal of a call whose question is over, where it is not known what became of it."""
    if isinstance(decision, Decision) and decision.kind is AnswerKind.DECLINE:
        result = ToolResult.error("it was declined by the person; do not retry.", code="declined")
        return _told(render(name, result), decision)
    message = f"{name} was not run: the call that was answered waits no more"
    hint = "its result, if it ran, came to this conversation; call it again only if it is still wanted."
    return render(name, ToolResult.error(message, code="already-decided", hint=hint))


def _told(text: str, decision: Decision) -> str:
    """Return the envelope with what a person said to a no, which is for the model."""
    frame = parse(text)
    if decision.kind is not AnswerKind.DECLINE or not decision.message or frame.code != "declined":
        return text
    message = f"{frame.body} The person says: {decision.message}"
    return render(frame.name, ToolResult.error(message, code="declined", hint=frame.hint))
