"""The SDK's dispatcher, except that one malformed part of an answer does not cost all of it.

The SDK validates an answer as a whole: one tool with a bad schema makes a listing unreadable, one odd block a
result. What is read here is the raw answer; the SDK is shown a part of it that it accepts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from mcp.shared.dispatcher import CallOptions
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import Tool
from pydantic import ValidationError

__all__ = ["Wire", "set_aside"]

_ASIDE: Final[ContextVar[list[dict[str, Any]] | None]] = ContextVar("answers set aside", default=None)
#: what the newer protocol wants of every answer besides; the older drops it.
_COMPLETE: Final = {"resultType": "complete"}


@contextmanager
def set_aside() -> Iterator[list[dict[str, Any]]]:
    """Yield a list that gets the raw answers to what this task asks meanwhile."""
    answers: list[dict[str, Any]] = []
    token = _ASIDE.set(answers)
    try:
        yield answers
    finally:
        _ASIDE.reset(token)


class Wire(JSONRPCDispatcher):
    """A dispatcher whose raw answers can be had (`set_aside`).

    Attributes:
        closed: set once nothing more will come from the server.
    """

    def __init__(self, read: Any, write: Any) -> None:
        super().__init__(read, write)
        self.closed = asyncio.Event()

    async def run(self, *args: Any, **more: Any) -> None:
        """Receive until the server, or this side, ends the connection."""
        try:
            await super().run(*args, **more)
        finally:
            self.closed.set()

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Ask, and return the answer, or where it is set aside what the SDK accepts of it."""
        raw = await super().send_raw_request(method, params, opts, **more)
        answers = _ASIDE.get()
        if answers is None:
            return raw
        answers.append(raw)
        if method == "tools/list":
            tools = raw.get("tools")
            good = [tool for tool in tools if _is_tool(tool)] if isinstance(tools, list) else []
            return {**_COMPLETE, "tools": good, "ttlMs": 0, "cacheScope": "private"}
        return {**_COMPLETE, "content": []}


def _is_tool(tool: Any) -> bool:
    try:
        Tool.model_validate(tool, by_name=False)
    except (ValidationError, RecursionError):
        return False
    return isinstance(tool.get("inputSchema"), dict) and tool["inputSchema"].get("type") == "object"
