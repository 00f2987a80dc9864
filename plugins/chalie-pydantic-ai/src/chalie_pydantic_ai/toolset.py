"""The toolset: what a turn offers, listed anew before each model request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping
from typing import Any

from chalie import AnswerKind, HoldView, Host, Turn
from pydantic_ai import RunContext
from pydantic_ai.exceptions import ApprovalRequired
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from . import history

__all__ = ["MARK", "ChalieToolset", "shown"]

#: the metadata of each tool of Chalie's.
MARK = "chalie"
#: searches run alone, so that what stands after one in a reply can be called.
_SEARCHES = frozenset({"find_tools", "find_skills"})
#: calls whose holds are kept in mind.
_MOST_ASKED = 1000
# Chalie heals and checks the arguments itself, and tells the model what is wrong in an envelope.
_ANYTHING = SchemaValidator(schema=core_schema.any_schema())


class ChalieToolset(AbstractToolset[Any]):
    """Chalie's tools: the pinned ones at first, then what `find_tools` finds. One turn for each run.

    With an approver token, what must be asked about is a deferred tool call that waits for approval. Without
    one the host's own approver is asked, and a call that nobody answers returns `approval-pending`.

    Args:
        host: an open host.
        channel: where the runs happen.
        principal: on whose behalf, or what says so of a run; default: the account's login name.
        approver_token: stands for the person whose answers `DeferredToolResults` brings; default:
            `CHALIE_APPROVER_TOKEN`.
        id: the toolset's id in its agent.
    """

    def __init__(
        self,
        host: Host,
        *,
        channel: str = "chat",
        principal: str | Callable[[RunContext[Any]], str] | None = None,
        approver_token: str | None = None,
        id: str = "chalie",
    ) -> None:
        self._host = host
        self._channel = channel
        self._principal = principal
        self._token = approver_token or host.config.approver_token
        self._id = id
        #: what was asked about, by conversation and tool call: beside the metadata, which not every program
        #: brings back.
        self._asked: MutableMapping[str, str] = {}

    @property
    def id(self) -> str:
        """The toolset's id in its agent."""
        return self._id

    async def for_run(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        """Return the toolset of one run, with a turn of its own.

        Raises:
            NotAuthorised: the home does not know the approver token.
        """
        if self._token:
            await asyncio.to_thread(self._host.authority.prove, self._token)
        unfinished = history.unfinished(ctx.messages)
        turn = await self._host.aturn(
            self._channel,
            principal=self._principal(ctx) if callable(self._principal) else self._principal,
            conversation=ctx.conversation_id,
            active=history.names(ctx.messages) if unfinished else (),
        )
        return _Run(turn, self._token, self._id, self._asked, unfinished)

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return nothing: tools belong to a run."""
        return {}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Refuse: tools belong to a run."""
        raise RuntimeError("this toolset is called through the one that for_run returns")


class _Run(AbstractToolset[Any]):
    """The toolset of one run."""

    def __init__(
        self,
        turn: Turn,
        token: str | None,
        id: str,
        asked: MutableMapping[str, str],
        unfinished: dict[str, history.Called],
    ) -> None:
        #: the calls that a person may still deny.
        self._open = unfinished
        self._turn = turn
        self._token = token
        self._id = id
        self._asked = asked

    @property
    def id(self) -> str:
        return self._id

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        await self._note_denied(ctx)
        return {
            tool["name"]: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=tool["name"],
                    description=tool["description"],
                    parameters_json_schema=tool["input_schema"],
                    strict=False,
                    sequential=tool["name"] in _SEARCHES,
                    metadata={MARK: True},
                ),
                max_retries=0,
                args_validator=_ANYTHING,
            )
            for tool in self._turn.tools("anthropic")
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> str:
        if not self._token:
            return await self._turn.acall(name, tool_args)
        key = self._key(ctx.tool_call_id)
        # a yes counts for the hold it is known to answer: no stored answer counts for a later question
        asked = self._hold_of(key, ctx.tool_call_metadata) if ctx.tool_call_approved else None
        text, hold = await self._turn.aattempt(
            name,
            tool_args,
            hold=asked,
            answer=AnswerKind.ONCE if asked else None,
            token=self._token,
        )
        if hold is not None:
            self._open[ctx.tool_call_id or ""] = (name, tool_args)
            self._asked[key] = hold.id
            if len(self._asked) > _MOST_ASKED:  # what nobody came back to; its metadata still tells
                self._asked.pop(next(iter(self._asked)))
            raise ApprovalRequired(metadata=shown(hold))
        return text

    def _key(self, call_id: str | None) -> str:
        """Return what tells a tool call from those of other conversations, whose ids may be the same."""
        return f"{self._turn.conversation} {call_id}"

    def _hold_of(self, key: str, metadata: Any) -> str | None:
        brought = metadata.get("hold") if isinstance(metadata, dict) else None
        return self._asked.get(key) or (brought if isinstance(brought, str) else None)

    async def _note_denied(self, ctx: RunContext[Any]) -> None:
        """Decline in the home what the person denied here, so that nobody approves it later."""
        if not self._token or not self._open:
            return
        for call_id in history.denied(ctx.messages) & self._open.keys():
            name, arguments = self._open.pop(call_id)
            hold = self._asked.get(self._key(call_id))
            await self._turn.aattempt(
                name, arguments, hold=hold, answer=AnswerKind.DECLINE, token=self._token
            )


def shown(hold: HoldView) -> dict[str, Any]:
    """Return what a person is shown of a held call, as metadata of its deferred tool call."""
    return {
        "hold": hold.id,
        "tool": hold.name,
        "package": hold.dist,
        "permission": hold.permission,
        "effect": hold.effect.value,
        "arguments": dict(hold.arguments),
        "reasons": list(hold.reasons),
        "model_says": hold.model_says,
        "expires_at": hold.expires_at.isoformat() if hold.expires_at else None,
    }
