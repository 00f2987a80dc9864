"""The capability: the toolset, and an envelope for a call of what is not listed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from chalie import Host
from pydantic_ai import ModelResponse, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.toolsets import AbstractToolset

from .toolset import MARK, ChalieToolset

__all__ = ["Chalie"]


class Chalie(AbstractCapability[Any]):
    """Chalie's tools for an agent: `Agent(model, capabilities=[Chalie(host)])`.

    It is a `ChalieToolset` and one thing more: a model that calls a name which is not listed is answered by
    the host, in an envelope that says how to go on, and what was found in the same reply can be called.

    Args:
        host: an open host.
        channel, principal, approver_token: as in `ChalieToolset`.
    """

    def __init__(
        self,
        host: Host,
        *,
        channel: str = "chat",
        principal: str | Callable[[RunContext[Any]], str] | None = None,
        approver_token: str | None = None,
    ) -> None:
        self._toolset = ChalieToolset(
            host, channel=channel, principal=principal, approver_token=approver_token
        )

    def get_toolset(self) -> AbstractToolset[Any]:
        """Return the toolset."""
        return self._toolset

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Let the host answer the calls of names that no tool of the run has."""
        tools = ctx.tool_manager.tools if ctx.tool_manager is not None else None
        ours = next(
            (tool for tool in (tools or {}).values() if (tool.tool_def.metadata or {}).get(MARK)), None
        )
        if tools is not None and ours is not None:
            for call in response.tool_calls:
                if call.tool_name not in tools:
                    definition = replace(ours.tool_def, name=call.tool_name, sequential=False)
                    tools[call.tool_name] = replace(ours, tool_def=definition)
        return response
