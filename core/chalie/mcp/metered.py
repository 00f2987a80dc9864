"""A server's messages, up to as many unasked ones as any honest server sends."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from mcp_types import JSONRPCNotification, JSONRPCRequest

__all__ = ["BURST", "PER_S", "Metered"]

#: messages that a server may send unasked at once, and every second from then on.
BURST: Final = 5_000
PER_S: Final = 500.0


class Metered:
    """A stream that ends where a server floods it: each message costs work, and answers wait behind them.

    Args:
        stream: the transport's.
        blame: told why it ended.
        clock: monotonic seconds.
    """

    def __init__(
        self, stream: Any, blame: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream
        self._blame = blame
        self._clock = clock
        self._left = float(BURST)
        self._looked = clock()

    async def __aenter__(self) -> Metered:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._stream.__aexit__(*error)

    def __aiter__(self) -> Metered:
        return self

    async def __anext__(self) -> Any:
        item = await self._stream.__anext__()
        if isinstance(getattr(item, "message", None), JSONRPCNotification | JSONRPCRequest):
            now = self._clock()
            self._left = min(BURST, self._left + (now - self._looked) * PER_S) - 1
            self._looked = now
            if self._left < 0:
                self._blame(f"it sent over {BURST} messages that nobody asked for")
                raise StopAsyncIteration
        return item

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
