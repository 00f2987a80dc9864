"""The door on standard input and output: one client, which started this process."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import threading
from typing import TYPE_CHECKING, Any, Final, cast

from .ending import end_soon, on_signal
from .server import ToolServer

if TYPE_CHECKING:
    from .doors import Caller, Turns

__all__ = ["serve_stdio"]

#: messages that are read ahead of those being answered.
_AHEAD: Final = 64


async def serve_stdio(host: Turns, caller: Caller, *, person_at_client: bool = False) -> None:
    """Serve one client until it closes our input, or a signal ends us; its running calls are cancelled then.

    What tools print goes to standard error meanwhile, and what they read is nothing: both streams are the
    client's.

    Args:
        host: opens the turns.
        caller: the client.
        person_at_client: whether what the gate asks about may be answered there.
    """
    from mcp.server.stdio import stdio_server

    tools = ToolServer(host, lambda context: caller, person_at_client=person_at_client)
    server = tools.build()
    lines = _Lines(_taken_input(), asyncio.get_running_loop())
    whole = asyncio.current_task()
    assert whole is not None
    on_signal(whole.cancel)
    watching = asyncio.create_task(tools.watch())
    try:
        with contextlib.suppress(asyncio.CancelledError):
            async with stdio_server(stdin=cast(Any, lines)) as (incoming, outgoing):
                lines.start()
                await server.run(incoming, outgoing, server.create_initialization_options())
    finally:
        end_soon()
        watching.cancel()
        tools.close()
        lines.close()


def _taken_input() -> int:
    """Return a descriptor of standard input that nothing else has, and put nothing in its place."""
    taken = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return taken


class _Lines:
    """The client's messages, read on a thread that nobody has to wait for.

    The SDK's own reader cannot be given up while it waits, so that a signal would end nothing.

    Args:
        descriptor: to read from.
        loop: the one that iterates.
    """

    def __init__(self, descriptor: int, loop: asyncio.AbstractEventLoop) -> None:
        self._file = os.fdopen(descriptor, encoding="utf-8", errors="replace", newline="\n", closefd=False)
        self._loop = loop
        self._lines: asyncio.Queue[str] = asyncio.Queue(_AHEAD)
        self._closed = False

    def start(self) -> None:
        """Begin to read."""
        threading.Thread(target=self._read, name="chalie-mcp-input", daemon=True).start()

    def close(self) -> None:
        """Hand on nothing more."""
        self._closed = True

    def __aiter__(self) -> _Lines:
        return self

    async def __anext__(self) -> str:
        """Return the next message."""
        line = await self._lines.get()
        if not line:
            raise StopAsyncIteration
        return line

    def _read(self) -> None:
        while not self._closed:
            try:
                line = self._file.readline()
            except (OSError, ValueError):
                line = ""
            try:
                asyncio.run_coroutine_threadsafe(self._lines.put(line), self._loop).result()
            except (RuntimeError, asyncio.CancelledError):  # the loop has ended
                return
            if not line:
                return
