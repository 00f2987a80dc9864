"""The transport to a server that is a program: its standard input and output, and a guard that ends it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO, Any, Final

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from ..catalogue.server_file import Server
from ..catalogue.server_secrets import masked
from .guard import GONE_S

__all__ = ["Child", "Streams"]

Streams = tuple[Any, Any]

#: bytes of one message: a longer one ends the connection, since what follows it cannot be told apart.
MOST_LINE: Final = 32 * 1024 * 1024
#: bytes that are no messages, after which a server is given up.
MOST_GARBAGE: Final = 1024 * 1024
_TAIL: Final = 4096
#: an escape that may be one half of a character beyond the first 65,536.
_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_SHOWN: Final = 160
#: what a program gets of this process's environment, as the MCP SDKs do it; its entry adds the rest.
_PLAIN: Final = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")

# The SDK tells its logger of every unreadable line, with traceback; without a handler Python prints that.
for _name in ("client", "mcp"):
    logging.getLogger(_name).addHandler(logging.NullHandler())


class Child:
    """One run of a server's program.

    Args:
        server: its entry, with variables put in.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._process: subprocess.Popen[bytes] | None = None
        self._life = -1
        self._tail = b""
        self._garbage = 0
        self._first_garbage = ""
        self._fault = ""

    @contextlib.asynccontextmanager
    async def streams(self) -> AsyncIterator[Streams]:
        """Start the program and yield the streams to read from it and to write to it; end it afterwards.

        Raises:
            OSError: it cannot be started.
        """
        incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        self._start()
        process = self._process
        assert process is not None and process.stdout and process.stderr and process.stdin
        pipes = [
            asyncio.create_task(self._read(process.stdout, incoming)),
            asyncio.create_task(self._write(process.stdin, outgoing, incoming)),
            asyncio.create_task(self._listen(process.stderr)),
        ]
        try:
            yield read, write
        finally:
            for stream in (read, write):
                stream.close()
            await asyncio.shield(asyncio.ensure_future(self._end(pipes)))

    @property
    def pid(self) -> int:
        """The guard's process id; 0 where there is none."""
        return 0 if self._process is None else self._process.pid

    def reason(self) -> str:
        """Return why the program is not there any more, or has not answered, in one line without secrets."""
        status = None if self._process is None else self._process.poll()
        said = self._tail.decode("utf-8", "replace").strip().splitlines()
        parts = []
        if self._fault:
            parts.append(self._fault)
        elif status is not None:
            how = f"by signal {status - 128}" if 128 < status < 160 else f"with status {status}"
            parts.append(f"it ended {how}")
        if self._garbage:
            parts.append(f"it wrote what is no JSON-RPC on standard output: {self._first_garbage!r}")
        if said:
            parts.append(f"it said: {said[-1][:_SHOWN]}")
        return self.masked("; ".join(parts))

    def blame(self, fault: str) -> None:
        """Say why the program is given up, in place of how it ended."""
        self._fault = self._fault or fault

    def let_go(self) -> None:
        """Have the guard end the program, from any thread and without waiting."""
        life, self._life = self._life, -1
        if life >= 0:
            os.close(life)

    def _start(self) -> None:
        server = self._server
        watched, self._life = os.pipe()
        environment = {name: os.environ[name] for name in _PLAIN if name in os.environ} | dict(server.env)
        guard = [sys.executable, "-I", "-S", str(Path(__file__).with_name("guard.py")), str(watched), "--"]
        try:
            self._process = subprocess.Popen(
                [*guard, server.command, *server.args],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(watched,),
                env=environment,
                cwd=os.path.expanduser(server.cwd) if server.cwd else None,  # noqa: PTH111
                start_new_session=True,
                bufsize=0,
            )
        except BaseException:
            self.let_go()
            raise
        finally:
            os.close(watched)

    async def _read(self, pipe: IO[bytes], incoming: Any) -> None:
        reader, transport = await _reader(pipe)
        try:
            async with incoming:
                while line := await self._line(reader):
                    message = self._message(line)
                    if self._garbage > MOST_GARBAGE:
                        self._fault = "it does not speak MCP"
                        return
                    if message is not None:
                        await incoming.send(message)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError):
            pass  # nobody listens any more
        finally:
            transport.close()
            if self._fault:
                self.let_go()

    async def _line(self, reader: asyncio.StreamReader) -> bytes:
        try:
            return await reader.readline()
        except ValueError:
            self._fault = f"it wrote a line of over {MOST_LINE} bytes"
            return b""

    def _message(self, line: bytes) -> SessionMessage | None:
        if not line.strip():
            return None
        for read in (bytes, _mended):
            try:
                return SessionMessage(jsonrpc_message_adapter.validate_json(read(line), by_name=False))
            except (ValidationError, ValueError, RecursionError):
                if not _HALF.search(line):
                    break
        self._garbage += len(line)
        self._first_garbage = self._first_garbage or line[:_SHOWN].decode("utf-8", "replace").strip()
        return None

    async def _write(self, pipe: IO[bytes], outgoing: Any, incoming: Any) -> None:
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, pipe)
        writer = asyncio.StreamWriter(transport, protocol, None, loop)
        try:
            async with outgoing:
                async for message in outgoing:
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    writer.write(text.encode("utf-8") + b"\n")
                    await writer.drain()
        except (ConnectionError, anyio.ClosedResourceError):
            await incoming.aclose()  # it takes nothing any more, so nothing that was asked will be answered
        finally:
            transport.close()

    async def _listen(self, pipe: IO[bytes]) -> None:
        """Keep the end of what the program says on standard error, which it must never wait for."""
        reader, transport = await _reader(pipe)
        try:
            while said := await reader.read(65_536):
                self._tail = (self._tail + said)[-_TAIL:]
        except ConnectionError:
            pass
        finally:
            transport.close()

    async def _end(self, pipes: list[asyncio.Task[None]]) -> None:
        """Close its standard input, let the guard end it, and wait for that."""
        reading, writing, listening = pipes
        with contextlib.suppress(TimeoutError):  # what was accepted goes out, a cancellation above all
            await asyncio.wait_for(asyncio.shield(writing), 0.2)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        self.let_go()
        process = self._process
        assert process is not None
        deadline = asyncio.get_running_loop().time() + GONE_S
        while process.poll() is None and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.01)
        if process.poll() is None:
            process.kill()
            await asyncio.to_thread(process.wait)
        for task in (reading, listening):
            task.cancel()
        await asyncio.gather(reading, listening, return_exceptions=True)

    def masked(self, text: str) -> str:
        """Return a text without the secrets of the server's entry."""
        return masked(self._server, text)


def _mended(line: bytes) -> bytes:
    """Return a line with `?` for every half of a character: programs that cut a text send such."""
    return json.dumps(json.loads(line), ensure_ascii=False).encode("utf-8", "replace")


async def _reader(pipe: IO[bytes]) -> tuple[asyncio.StreamReader, asyncio.ReadTransport]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=MOST_LINE)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader, transport
