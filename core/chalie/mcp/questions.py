"""Asking the person at the client about one call, in each era's own way."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, Final

from ..calls import Answer, AnswerKind, HoldView
from ..errors import NotAuthorised
from ..gate.approvers import prompt_lines, settled

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp_types import ElicitResult

    from .doors import Caller

__all__ = ["ANSWER", "AskedAtClient", "AskedByRequest", "can_ask", "form"]

#: the one field of the form, and the name of the question among the requests of an answer.
ANSWER: Final = "answer"
_COLUMNS: Final = 100
_LOOK_S: Final = 0.25
_KINDS: Final = {
    "once": AnswerKind.ONCE,
    "always": AnswerKind.ALWAYS,
    "decline": AnswerKind.DECLINE,
}


def can_ask(context: ServerRequestContext[Any, Any]) -> bool:
    """Tell whether the client says that it can put a form to its person."""
    capabilities = context.session.client_capabilities
    asks = capabilities.elicitation if capabilities is not None else None
    # a client of the years before there were two kinds says neither, and means a form
    return asks is not None and (asks.form is not None or asks.url is None)


def form(hold: HoldView) -> tuple[str, dict[str, Any]]:
    """Return the question about a call, whole and with secrets masked, and the schema of its answer."""
    kinds = ["once", "decline"] if hold.must_ask else ["once", "always", "decline"]
    schema = {
        "type": "object",
        "properties": {
            ANSWER: {
                "type": "string",
                "title": f"May {hold.name} run?",
                "description": "once: this call runs. "
                + ("" if hold.must_ask else "always: it runs, and is not asked about again. ")
                + "decline: it does not run.",
                "enum": kinds,
            }
        },
        "required": [ANSWER],
    }
    return "\n".join(prompt_lines(hold, _COLUMNS)).strip("\n"), schema


def answer_of(result: ElicitResult, by: str) -> Answer:
    """Return what the person said.

    Raises:
        NotAuthorised: nothing that could be taken for an answer.
    """
    if result.action == "decline":
        return Answer(AnswerKind.DECLINE, by)
    said = (result.content or {}).get(ANSWER) if result.action == "accept" else None
    kind = _KINDS.get(said) if isinstance(said, str) else None
    if kind is None:
        raise NotAuthorised("the person at the client gave no answer")
    return Answer(kind, by)


def who(caller: Caller) -> str:
    """Return whose the answers are that come through a caller's client, as they stand on the trail."""
    return f"client:{caller.label}"


class AskedAtClient:
    """Asks by a request of ours over the client's own connection, and waits (handshake era).

    Args:
        context: of the request that made the call.
        caller: who made it.
        loop: the one that serves the connection.
    """

    def __init__(
        self, context: ServerRequestContext[Any, Any], caller: Caller, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._context = context
        self._caller = caller
        self._loop = loop
        self._given_up = threading.Event()

    def give_up(self) -> None:
        """Take the question back: the client waits for the call no longer."""
        self._given_up.set()

    def ask(self, hold: HoldView) -> Answer:
        """Return the person's answer.

        Raises:
            NotAuthorised: there is none.
            TimeoutError: it was answered elsewhere, or nobody waits any more.
        """
        message, schema = form(hold)
        context = self._context
        asking = asyncio.run_coroutine_threadsafe(
            context.session.elicit_form(message, schema, related_request_id=context.request_id), self._loop
        )
        over = settled.get() or threading.Event()
        while True:
            try:
                return answer_of(asking.result(_LOOK_S), who(self._caller))
            except TimeoutError:
                if asking.done():
                    raise
                if over.is_set() or self._given_up.is_set():
                    asking.cancel()
                    raise TimeoutError("it was answered elsewhere, or too late") from None


class AskedByRequest:
    """Takes the question along in the answer, and the answer in the next request (2026-07-28).

    Args:
        caller: who made the call.
        hold_id: which hold the answer is to, or None where there is no answer yet.
        answer: what the client brought, or None.

    Attributes:
        question: what is to be asked, once the gate has asked.
    """

    def __init__(
        self, caller: Caller, hold_id: str | None = None, answer: ElicitResult | None = None
    ) -> None:
        self._caller = caller
        self._hold_id = hold_id
        self._answer = answer
        self.question: HoldView | None = None

    def ask(self, hold: HoldView) -> Answer:
        """Return the answer to this very hold; of any other, remember the question.

        Raises:
            NotAuthorised: there is no answer yet, so that the call stays among the holds.
        """
        if self._answer is not None and hold.id == self._hold_id:
            return answer_of(self._answer, who(self._caller))
        self.question = hold
        raise NotAuthorised("the question is on its way to the client")
