"""The transport to a server that is reached by streamable HTTP."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncIterator
from typing import Any, Final

import httpx2
from mcp.client.streamable_http import streamable_http_client

from ..catalogue.server_file import Server
from ..catalogue.server_secrets import masked
from .child import MOST_LINE, Streams

__all__ = ["Remote"]

#: the bound on one event of a stream, which the first versions of the SDK do not take.
_LARGEST: Final[dict[str, Any]] = (
    {"max_sse_event_size": MOST_LINE}
    if "max_sse_event_size" in inspect.signature(streamable_http_client).parameters
    else {}
)
_CONNECT_S: Final = 15.0
#: seconds without a byte of an answer; longer than any call's limit, which is kept elsewhere.
_SILENT_S: Final = 3_600.0


class Remote:
    """One connection to a server's address.

    What the entry says is sent to that address alone: a redirect to another origin is not followed.

    Args:
        server: its entry, with variables put in.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._status = 0
        self._fault = ""

    @contextlib.asynccontextmanager
    async def streams(self) -> AsyncIterator[Streams]:
        """Yield the streams to read from the server and to write to it."""
        timeout = httpx2.Timeout(_CONNECT_S, read=_SILENT_S)
        hooks: dict[str, list[Any]] = {"response": [self._answered]}
        client = httpx2.AsyncClient(
            headers=dict(self._server.headers),
            timeout=timeout,
            event_hooks=hooks,
            transport=_Bounded(httpx2.AsyncHTTPTransport()),
        )
        url = self._server.url
        async with client, streamable_http_client(url, http_client=client, **_LARGEST) as streams:
            yield streams

    @property
    def refused(self) -> bool:
        """Whether the last answer was that it wants to know who asks."""
        return self._status in (401, 403)

    @property
    def broken(self) -> bool:
        """Whether the last answer was that the server, or what stands before it, has failed."""
        return self._status >= 500

    @property
    def lost(self) -> bool:
        """Whether the last answer was that it does not know this session any more."""
        return self._status == 404

    def reason(self) -> str:
        """Return what the last answer's status says; empty where that was well."""
        if self._fault:
            return self._fault
        if self.refused:
            return f"it answers with status {self._status}: it wants to know who asks"
        return f"it answers with status {self._status}" if self._status >= 400 else ""

    def blame(self, fault: str) -> None:
        """Say why the server is given up."""
        self._fault = fault

    def masked(self, text: str) -> str:
        """Return a text without the secrets of the server's entry."""
        return masked(self._server, text)

    def let_go(self) -> None:
        """There is nothing that outlives this process."""

    async def _answered(self, response: Any) -> None:
        self._status = response.status_code


class _Bounded(httpx2.AsyncBaseTransport):
    """A transport that ends an answer which is no stream of events at `MOST_LINE` bytes."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        if "text/event-stream" not in response.headers.get("content-type", ""):
            response.stream = _Stream(response.stream)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Stream(httpx2.AsyncByteStream):
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > MOST_LINE:
                raise httpx2.StreamError(f"the answer has over {MOST_LINE} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
