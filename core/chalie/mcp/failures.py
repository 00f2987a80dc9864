"""How connections fail, in words."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ..catalogue.servers import Availability
from ..errors import ChalieError

if TYPE_CHECKING:
    from mcp import MCPError

__all__ = ["Unreachable", "exception_of", "hung_up", "look_at", "said"]

_CONNECTION_CLOSED: Final = -32000
#: how the SDK begins what it says itself under that code, which servers use for errors of any kind.
_ITS_WORDS: Final = ("Connection closed", "SSE stream ")


class Unreachable(ChalieError):
    """A server could not be reached, for the reason that its availability tells."""

    code = "not-connected"

    def __init__(self, slug: str, found: Availability) -> None:
        hint = "do not retry now; tell the person, or use another tool."
        if found.reach == "not_allowed":
            hint = "do not retry; a person must put what it asks for into its entry in mcp.json."
        super().__init__(f"the server {slug} cannot be reached: {found.reason}", hint=hint)
        self.found = found


def look_at(task: asyncio.Task[None]) -> None:
    """Look at how a task ended, so that asyncio does not report what whoever waits is told."""
    if not task.cancelled():
        task.exception()


def exception_of(task: asyncio.Task[None]) -> BaseException | None:
    """Return what a task ended with; None where that was nothing, or a cancellation."""
    return None if task.cancelled() else task.exception()


def said(error: BaseException | None) -> str:
    """Return the first plain error inside a group, in one line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if error is None:
        return "it ended the connection"
    text = " ".join(str(error).split())
    return (text or type(error).__name__)[:300]


def hung_up(error: MCPError) -> bool:
    """Tell whether the connection is gone, and not that the server answered with an error of that code."""
    return error.code == _CONNECTION_CLOSED and error.message.startswith(_ITS_WORDS)
