"""A proxy that adds a bearer token to every request, for clients that cannot send one."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def with_bearer(url: str, token: str) -> Iterator[str]:
    """Give the address at which every request is passed on with the token, and as it came otherwise."""
    host, _, rest = url.removeprefix("http://").partition(":")
    port, _, path = rest.partition("/")
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()

    async def start() -> asyncio.Server:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await _passed_on(reader, writer, (host, int(port)), token)
            writer.close()

        return await asyncio.start_server(serve, "127.0.0.1", 0)

    server = asyncio.run_coroutine_threadsafe(start(), loop).result()
    try:
        yield f"http://localhost:{server.sockets[0].getsockname()[1]}/{path}"
    finally:
        loop.call_soon_threadsafe(loop.stop)


async def _passed_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: tuple[str, int], token: str
) -> None:
    """Pass requests on one after the other, and whatever comes back as it comes."""
    back, forth = await asyncio.open_connection(*address)
    answering = asyncio.create_task(_copied(back, writer))
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            lines = head.split(b"\r\n")
            forth.write(b"\r\n".join([lines[0], b"Authorization: Bearer " + token.encode(), *lines[1:]]))
            length = next((line for line in lines if line.lower().startswith(b"content-length:")), b":0")
            body = await reader.readexactly(int(length.partition(b":")[2]))
            forth.write(body)
            await forth.drain()
    finally:
        answering.cancel()
        forth.close()


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()
