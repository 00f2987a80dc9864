"""The middleware: Chalie's tools for `create_agent`, listed anew before each model request."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, NotRequired

from chalie import Host, Turn
from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.config import get_config
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import Runtime
from langgraph.types import Command

from .calling import Calls
from .decisions import names
from .tools import listed, message

__all__ = ["ChalieMiddleware"]

#: turns that are kept open for runs that were interrupted; a run beyond opens its turn anew.
_MOST_TURNS = 256


class ChalieState(AgentState[Any]):
    """The agent's state, with the name of the exchange that a turn belongs to."""

    chalie_exchange: NotRequired[Annotated[str, PrivateStateAttr]]


class ChalieMiddleware(AgentMiddleware[Any, Any, Any]):
    """Chalie's tools for an agent: the pinned ones at first, then what is found. One turn for each run.

    With an approver token, what must be asked about interrupts the graph, which needs a checkpointer; it goes
    on with `Command(resume={"type": "approve"})` or `{"type": "reject"}`. Without one the host's own approver
    is asked, and a call that nobody answers returns `approval-pending`.

    Args:
        host: an open host.
        channel: where the runs happen.
        principal: on whose behalf, or what says so of a run; default: the account's login name.
        approver_token: stands for the person whose answers resume the graph; default:
            `CHALIE_APPROVER_TOKEN`.
    """

    state_schema = ChalieState

    def __init__(
        self,
        host: Host,
        *,
        channel: str = "chat",
        principal: str | Callable[[Runtime[Any]], str] | None = None,
        approver_token: str | None = None,
    ) -> None:
        super().__init__()
        self.tools = []
        self._host = host
        self._channel = channel
        self._principal = principal
        self._calls = Calls(host, approver_token)
        self._turns: dict[str, Turn] = {}

    def before_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        """Name the exchange that begins.

        Raises:
            NotAuthorised: the home does not know the approver token.
        """
        self._calls.prove()
        return {"chalie_exchange": secrets.token_hex(8)}

    async def abefore_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        """Do what `before_agent` does without blocking the event loop."""
        return await asyncio.to_thread(self.before_agent, state, runtime)

    def after_agent(self, state: Any, runtime: Runtime[Any]) -> None:
        """Let go of the exchange's turn."""
        self._turns.pop(state.get("chalie_exchange", ""), None)

    async def aafter_agent(self, state: Any, runtime: Runtime[Any]) -> None:
        """Do what `after_agent` does."""
        self.after_agent(state, runtime)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | AIMessage:
        """List the tools that can be called now beside the agent's own."""
        turn = self._known(request.state) or self._keep(
            request.state, self._host.turn(**self._facts(request.state, request.runtime))
        )
        return handler(self._listing(request, turn))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any] | AIMessage:
        """Do what `wrap_model_call` does without blocking the event loop."""
        turn = self._known(request.state) or self._keep(
            request.state, await self._host.aturn(**self._facts(request.state, request.runtime))
        )
        return await handler(self._listing(request, turn))

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Call what the agent has no tool of its own for, also what nobody has."""
        if request.tool is not None:
            return handler(request)
        turn = self._known(request.state) or self._keep(
            request.state, self._host.turn(**self._facts(request.state, request.runtime))
        )
        name, arguments, call_id = _parts(request)
        return message(name, call_id, self._calls.call(turn, name, arguments, call_id))

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """Do what `wrap_tool_call` does without blocking the event loop."""
        if request.tool is not None:
            return await handler(request)
        turn = self._known(request.state) or self._keep(
            request.state, await self._host.aturn(**self._facts(request.state, request.runtime))
        )
        name, arguments, call_id = _parts(request)
        return message(name, call_id, await self._calls.acall(turn, name, arguments, call_id))

    # the turn of an exchange

    def _known(self, state: Any) -> Turn | None:
        return self._turns.get(state["chalie_exchange"])

    def _keep(self, state: Any, turn: Turn) -> Turn:
        """Return the exchange's one turn, which this is unless another task was faster."""
        turn = self._turns.setdefault(state["chalie_exchange"], turn)
        while len(self._turns) > _MOST_TURNS:
            self._turns.pop(next(iter(self._turns)))
        return turn

    def _facts(self, state: Any, runtime: Any) -> dict[str, Any]:
        """Return what a turn of an exchange is opened with, also where another process began it."""
        thread = get_config().get("configurable", {}).get("thread_id")
        return {
            "channel": self._channel,
            "principal": self._principal(runtime) if callable(self._principal) else self._principal,
            "conversation": str(thread) if thread is not None else state["chalie_exchange"],
            "active": names(state["messages"]),
        }

    def _listing(self, request: ModelRequest[Any], turn: Turn) -> ModelRequest[Any]:
        own = {
            tool["name"] if isinstance(tool, dict) and "name" in tool else getattr(tool, "name", None)
            for tool in request.tools
        }
        found = [tool for tool in listed(self._calls, turn) if tool.name not in own]
        return request.override(tools=[*request.tools, *found])


def _parts(request: ToolCallRequest) -> tuple[str, dict[str, Any], str]:
    call = request.tool_call
    return call["name"], call["args"], call["id"] or ""
