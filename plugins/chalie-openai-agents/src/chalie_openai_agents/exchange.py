"""One run and its turn: the tools it can call now, and what became of what it asked about."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import MutableMapping, Sequence
from typing import Any

from agents import FunctionTool, RunContextWrapper, ToolErrorFormatterArgs
from agents.items import ToolApprovalItem
from agents.tool_context import ToolContext
from chalie import AnswerKind, HoldView, Host, ToolResult, Turn
from chalie.calls import Setting
from chalie.envelope import render

__all__ = ["CURRENT", "Exchange"]

#: calls whose holds are kept in mind.
_MOST_ASKED = 1000
#: the exchange that the running task belongs to.
CURRENT: contextvars.ContextVar[Exchange | None] = contextvars.ContextVar("chalie_exchange", default=None)


class Exchange:
    """One run.

    Args:
        host: an open host.
        turn: its turn.
        token: an approver token; None leaves asking to the host's approver.
        asked: what was asked about, by conversation and call, for all runs of the program.
        items: what the run was interrupted for, where it goes on.
    """

    def __init__(
        self,
        host: Host,
        turn: Turn,
        token: str | None,
        asked: MutableMapping[str, str],
        items: Sequence[ToolApprovalItem],
    ) -> None:
        self._host = host
        self._turn = turn
        self._token = token
        self._asked = asked
        self._items = {item.call_id: item for item in items if item.call_id}
        self._tools: dict[str, FunctionTool] = {}
        #: envelopes of calls that were made when it was looked whether they need approval.
        self._made: dict[str, str] = {}
        #: envelopes of calls that were rejected.
        self._declined: dict[str, str] = {}

    async def tools(self, context: RunContextWrapper[Any]) -> list[FunctionTool]:
        """Return what can be called now; first note what the person rejected."""
        for call_id, item in self._items.items():
            if self._status(context, item, call_id) is False:
                await self._decline(call_id)
        for shown in self._turn.tools("anthropic"):
            if shown["name"] not in self._tools:
                self._tools[shown["name"]] = self._tool(shown)
        return list(self._tools.values())

    async def explain(self, error: ToolErrorFormatterArgs[Any]) -> str | None:
        """Return the envelope of a call that the SDK does not make: of an unknown tool, or rejected."""
        if error.kind == "approval_rejected":
            return await self._decline(error.call_id) if error.call_id in self._items else None
        if error.kind != "tool_not_found":
            return None
        if error.tool_name not in self._turn.names:
            _, text = await self._turn.aforesee(error.tool_name)
            return text
        message = f"{error.tool_name} was found while this reply was already made"
        hint = "call it in your next reply; it is listed from now on."
        return render(error.tool_name, ToolResult.error(message, code="not-active", hint=hint))

    def _tool(self, shown: dict[str, Any]) -> FunctionTool:
        name = shown["name"]

        async def asks(context: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str) -> bool:
            return await self._asks(context, name, arguments, call_id)

        async def invoke(context: ToolContext[Any], arguments: str) -> str:
            return await self._call(context, name, arguments)

        return FunctionTool(
            name=name,
            description=shown["description"],
            params_json_schema=shown["input_schema"],
            on_invoke_tool=invoke,
            strict_json_schema=False,
            needs_approval=asks if self._token else False,
        )

    async def _asks(
        self, context: RunContextWrapper[Any], name: str, arguments: dict[str, Any], call_id: str
    ) -> bool:
        """Tell whether a call waits for a person, and store it before anybody is asked."""
        item = self._items.get(call_id)
        if item is not None and self._status(context, item, call_id) is not None:
            return True  # it was asked about and answered; whether that counts is seen when it is called
        setting, _ = await self._turn.aforesee(name, arguments)
        if setting is not Setting.ASK:
            return False
        text, hold = await self._turn.aattempt(name, arguments)
        if hold is None:  # the person had said something to it by now
            self._made[call_id] = text
            return False
        self._asked[self._key(call_id)] = hold.id
        if len(self._asked) > _MOST_ASKED:  # of what nobody came back to
            self._asked.pop(next(iter(self._asked)))
        return True

    async def _call(self, context: ToolContext[Any], name: str, arguments: str) -> str:
        call_id = context.tool_call_id
        made = self._made.pop(call_id, None)
        if made is not None:
            return made
        item = self._items.get(call_id)
        if not self._token:
            return await self._turn.acall(name, arguments)
        if item is None or self._status(context, item, call_id) is not True:
            # a standing approval in the run's state is no answer to this very call
            text, _ = await self._turn.aattempt(name, arguments)
            return text
        asked = self._asked.get(self._key(call_id))
        if asked is None:
            waiting = await asyncio.to_thread(self._turn.waiting, name, arguments)
            asked = next((view.id for view in waiting), None)
        if asked is None:  # nor is it made anew: a row may allow by now what was run long ago
            return _over(name)
        text, hold = await self._turn.aattempt(
            name, arguments, hold=asked, answer=AnswerKind.ONCE, token=self._token
        )
        if hold is None:
            return text
        await asyncio.to_thread(self._void, hold)
        return _over(name)

    def _void(self, hold: HoldView) -> None:
        """End what was opened just now, while the answer is another call's."""
        self._host.holds.void(self._host.holds.get(hold.id), "the answer was for a call that waits no more")

    async def _decline(self, call_id: str) -> str:
        """Decline in the home what the person rejected here, so that nobody approves it later."""
        if call_id not in self._declined:
            item = self._items[call_id]
            name = item.tool_name or ""
            if self._token:
                text, _ = await self._turn.aattempt(
                    name,
                    item.arguments,
                    hold=self._asked.get(self._key(call_id)),
                    answer=AnswerKind.DECLINE,
                    token=self._token,
                )
            else:
                result = ToolResult.error("it was declined by the person; do not retry.", code="declined")
                text = render(name, result)
            self._declined[call_id] = text
        return self._declined[call_id]

    def _status(self, context: RunContextWrapper[Any], item: ToolApprovalItem, call_id: str) -> bool | None:
        return context.get_approval_status(item.tool_name or "", call_id, existing_pending=item)

    def _key(self, call_id: str) -> str:
        return f"{self._turn.conversation} {call_id}"


def _over(name: str) -> str:
    """Return the refusal of a call whose question is over, where it is not known what became of it."""
    message = f"{name} was not run: the call that was answered waits no more"
    hint = "its result, if it ran, came to this conversation; call it again only if it is still wanted."
    return render(name, ToolResult.error(message, code="already-decided", hint=hint))
