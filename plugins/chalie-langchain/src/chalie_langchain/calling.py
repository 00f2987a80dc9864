"""One call of a turn inside a graph: its envelope, or an interrupt while it waits for a person."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from chalie import AnswerKind, HoldView, Host, ToolResult, Turn
from chalie.envelope import parse, render
from langgraph.types import interrupt

from .decisions import Decision, question, read

__all__ = ["Calls"]

#: calls whose holds are kept in mind.
_MOST_ASKED = 1000


class Calls:
    """Calls tools of turns, and asks through interrupts where there is a token to answer with.

    LangGraph runs the work of a task again from its start when it is resumed. So each call is made again, is
    found to be the one that waits, and is then answered with what the interrupt brought.

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
        key = f"{turn.id} {call_id}"
        known = {view.id for view in turn.waiting()}
        text, hold = turn.attempt(name, arguments, hold=self._asked.get(key))
        problem = ""
        while hold is not None:
            decision = self._ask(key, hold, call_id, problem)
            if hold.id not in known:
                return self._unasked(name, hold)
            if isinstance(decision, Decision):
                text, hold = turn.attempt(
                    name, arguments, hold=hold.id, answer=decision.kind, token=self._token
                )
                text = _told(text, decision)
            else:
                problem = decision
        self._asked.pop(key, None)
        return text

    async def acall(self, turn: Turn, name: str, arguments: Mapping[str, Any], call_id: str) -> str:
        """Do what `call` does without blocking the event loop."""
        if not self._token:
            return await turn.acall(name, arguments)
        key = f"{turn.id} {call_id}"
        known = {view.id for view in await asyncio.to_thread(turn.waiting)}
        text, hold = await turn.aattempt(name, arguments, hold=self._asked.get(key))
        problem = ""
        while hold is not None:
            decision = self._ask(key, hold, call_id, problem)
            if hold.id not in known:
                return await asyncio.to_thread(self._unasked, name, hold)
            if isinstance(decision, Decision):
                text, hold = await turn.aattempt(
                    name, arguments, hold=hold.id, answer=decision.kind, token=self._token
                )
                text = _told(text, decision)
            else:
                problem = decision
        self._asked.pop(key, None)
        return text

    def _ask(self, key: str, hold: HoldView, call_id: str, problem: str) -> Decision | str:
        """Return the decision that a resumed interrupt brings; where none was made yet, interrupt."""
        self._asked[key] = hold.id
        if len(self._asked) > _MOST_ASKED:
            self._asked.pop(next(iter(self._asked)))
        return read(interrupt(question(hold, call_id, problem)))

    def _unasked(self, name: str, hold: HoldView) -> str:
        """Return the refusal of a call that was opened just now, while the answer is another one's."""
        self._host.holds.void(self._host.holds.get(hold.id), "the answer was for a call that waits no more")
        message = f"{hold.permission} was not run: the call that was answered waits no more"
        hint = "its result, if it ran, came to this conversation; call it again only if it is still wanted."
        return render(name, ToolResult.error(message, code="already-decided", hint=hint))


def _told(text: str, decision: Decision) -> str:
    """Return the envelope with what a person said to a no, which is for the model."""
    frame = parse(text)
    if decision.kind is not AnswerKind.DECLINE or not decision.message or frame.code != "declined":
        return text
    message = f"{frame.body} The person says: {decision.message}"
    return render(frame.name, ToolResult.error(message, code="declined", hint=frame.hint))
