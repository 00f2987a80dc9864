"""A turn's tools as LangChain tools, for graphs of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chalie import Host, Turn
from chalie.envelope import parse
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.prebuilt.tool_node import ToolRuntime

from .calling import Calls

__all__ = ["message", "tools"]


def tools(host: Host, turn: Turn, *, approver_token: str | None = None) -> list[BaseTool]:
    """Return what can be called now in a turn. Ask again before each model request: a search adds to it.

    Args:
        host: an open host.
        turn: one of its turns.
        approver_token: with one, what must be asked about is an interrupt of the graph, where the call has a
            task of its own; default: `CHALIE_APPROVER_TOKEN`.
    """
    return listed(Calls(host, approver_token), turn)


def listed(calls: Calls, turn: Turn) -> list[BaseTool]:
    """Return a turn's tools, called through `calls`."""
    return [_tool(calls, turn, shown) for shown in turn.tools("anthropic")]


def message(name: str, call_id: str, text: str) -> ToolMessage:
    """Return an envelope as the message that answers a tool call."""
    status = parse(text).status
    return ToolMessage(content=text, name=name, tool_call_id=call_id, status=status)


def _tool(calls: Calls, turn: Turn, shown: dict[str, Any]) -> BaseTool:
    name = shown["name"]

    def run(runtime: ToolRuntime[Any, Any], **arguments: Any) -> ToolMessage:
        call_id, alone = runtime.tool_call_id or "", _is_alone(runtime.state)
        text = calls.call(turn, name, arguments, call_id) if alone else turn.call(name, arguments)
        return message(name, call_id, text)

    async def arun(runtime: ToolRuntime[Any, Any], **arguments: Any) -> ToolMessage:
        call_id, alone = runtime.tool_call_id or "", _is_alone(runtime.state)
        if alone:
            text = await calls.acall(turn, name, arguments, call_id)
        else:
            text = await turn.acall(name, arguments)
        return message(name, call_id, text)

    return StructuredTool(
        name=name,
        description=shown["description"],
        args_schema=shown["input_schema"],
        func=run,
        coroutine=arun,
    )


def _is_alone(state: Any) -> bool:
    """Tell whether a call is the only one of what its node was given.

    LangGraph hands the answers of one task out by their order alone. Where calls share a task, the yes to one
    could reach another.
    """
    messages = state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", state)
    last = messages[-1] if isinstance(messages, Sequence) and messages else None
    return len(getattr(last, "tool_calls", ())) == 1
