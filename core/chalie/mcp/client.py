"""The host's side of MCP: sessions with the servers of a home, and their tools as abilities."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ..ability import Ability, Context
from ..catalogue.descriptor import Descriptor
from ..catalogue.server_file import FILE, Server, configured
from ..catalogue.servers import Availability, Listing, note_availability
from ..errors import ChalieError, ConfigError, NotReady
from ..result import ToolResult
from .sdk import require

if TYPE_CHECKING:
    from concurrent.futures import Future

    from ..catalogue.snapshot import Snapshot
    from .connection import Connection

__all__ = ["CLOSE_S", "Client"]

T = TypeVar("T")

#: seconds after which `close` leaves what has not ended to the guards of the programs.
CLOSE_S: Final = 5.0
#: servers that are reached at a time where several are asked.
_AT_ONCE: Final = 8
#: classes that are kept, one for each tool that was called.
_CLASSES: Final = 512


class Client:
    """Reaches the servers of one home, each when it is first needed, from one thread of its own.

    Args:
        home: the home's folder.
        connect_s: seconds until a server must have answered and listed its tools.
        call_s: seconds that a call may take where neither the server's entry nor the home says otherwise.
    """

    def __init__(self, home: Path, *, connect_s: float, call_s: float) -> None:
        self._home = home
        self._connect_s = connect_s
        self._call_s = call_s
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._connections: dict[str, Connection] = {}
        self._retiring: set[asyncio.Task[None]] = set()
        self._file: tuple[tuple[int, int, int] | None, dict[str, Server]] = (None, {})
        self._classes: dict[tuple[tuple[str, str], str, Server], type[Ability]] = {}
        self._closed = False
        self._pid = os.getpid()

    def ability(self, descriptor: Descriptor, snapshot: Snapshot) -> type[Ability]:
        """Return a server's tool as an ability; nothing is reached before it runs.

        Raises:
            NotReady: the server's entry is another one than that of the catalogue.
            ChalieError: `extra-missing`.
        """
        require()
        row = snapshot.distribution(descriptor.dist)
        server = self._configured().get(descriptor.namespace)
        if row is None or server is None:
            raise NotReady(
                f"the server {descriptor.namespace} is not in {FILE} any more", hint="find another tool."
            )
        if server.hash != row.files_hash or row.state != "ready":
            why = row.reason or f"its entry in {FILE} changed"
            raise NotReady(
                f"the server {server.slug} is not ready: {why}", hint="wait a moment and call it again"
            )
        key = (descriptor.key, descriptor.hash, server)
        found = self._classes.get(key)
        if found is None:
            if len(self._classes) >= _CLASSES:
                self._classes.clear()
            facts = {"client": self, "server": server, "descriptor": descriptor}
            found = self._classes[key] = type("ServerTool", (_ServerTool,), facts)
        return found

    async def run(
        self, server: Server, descriptor: Descriptor, arguments: Mapping[str, Any], context: Context
    ) -> ToolResult:
        """Call a server's tool on behalf of an ability, whichever event loop that runs on."""
        from .results import result_of

        here = asyncio.get_running_loop()

        def progressed(progress: float, total: float | None, message: str | None) -> None:
            fraction = progress / total if total else None
            here.call_soon_threadsafe(context.progress, fraction, message or "")

        async def call() -> Mapping[str, Any]:
            connection = await self._connection(server)
            limit_s = server.timeout_s or self._call_s
            return await connection.call(descriptor.bare, descriptor.hash, arguments, limit_s, progressed)

        try:
            raw = await asyncio.wrap_future(self._submit(call))
        except ChalieError as error:
            return ToolResult.error(error.message, code=error.code, hint=error.hint, source=server.dist)
        return result_of(descriptor, raw)

    def refresh(self, slug: str) -> Listing:
        """Reach a server now and read its tools again.

        Raises:
            ChalieError: `unknown-server`, `not-connected`, `extra-missing`; or `bad-config`.
        """
        require()
        server = self._configured().get(slug)
        if server is None:
            raise ChalieError(
                f"no server {slug} is in {self._home / FILE}", code="unknown-server", hint="chalie mcp list"
            )

        async def refresh() -> Listing:
            return await (await self._connection(server)).refresh()

        try:
            return self._submit(refresh).result()
        except ConfigError as error:
            note_availability(self._home, slug, Availability("not_allowed", error.message))
            raise

    def ask(self, slugs: Sequence[str] | None = None) -> dict[str, ChalieError | None]:
        """Reach servers now, some at a time, and return for each why it could not be reached.

        Args:
            slugs: which; all that are configured where left out.
        """
        chosen = list(self._configured()) if slugs is None else list(slugs)
        found: dict[str, ChalieError | None] = {}

        def one(slug: str) -> None:
            try:
                self.refresh(slug)
                found[slug] = None
            except ChalieError as error:
                found[slug] = error

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(one, chosen))
        return {slug: found[slug] for slug in chosen if slug in found}

    def close(self) -> None:
        """End every session and every program, at most `CLOSE_S` long. Safe to call twice."""
        with self._lock:
            self._closed = True
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None or os.getpid() != self._pid:
            return
        closing = asyncio.run_coroutine_threadsafe(self._close(), loop)
        try:
            closing.result(CLOSE_S)
        except TimeoutError:
            closing.cancel()
        loop.call_soon_threadsafe(loop.stop)
        thread.join(1.0)

    async def _close(self) -> None:
        open_ones = list(self._connections.values())
        self._connections.clear()
        await asyncio.gather(*(connection.close() for connection in open_ones), return_exceptions=True)
        running = asyncio.all_tasks() - {asyncio.current_task()}
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _connection(self, server: Server) -> Connection:
        """Return the connection of a server; one that was made for another entry is ended."""
        from .connection import Connection

        found = self._connections.get(server.slug)
        if found is None or found.server != server:
            made = self._connections[server.slug] = Connection(server, self._home, self._connect_s)
            if found is not None:  # what runs there was admitted with the old entry, and ends on it
                retiring = asyncio.create_task(found.retire())
                self._retiring.add(retiring)
                retiring.add_done_callback(self._retiring.discard)
            return made
        return found

    def _configured(self) -> dict[str, Server]:
        """Return the servers of `mcp.json`, read again where the file changed."""
        try:
            status = (self._home / FILE).stat()
            stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
        except OSError:
            return {}
        before, servers = self._file
        if before != stamp:
            servers = configured(self._home)[0]
            self._file = (stamp, servers)
        return servers

    def _submit(self, start: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        with self._lock:
            if self._closed or os.getpid() != self._pid:
                raise ChalieError("the host is closed", code="not-connected")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_serve, args=(self._loop,), name="chalie-mcp", daemon=True
                )
                self._thread.start()
            return asyncio.run_coroutine_threadsafe(start(), self._loop)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


class _ServerTool(Ability):
    """A server's tool. Its facts are the descriptor's; these are asked by nobody."""

    client: Client
    server: Server
    descriptor: Descriptor

    def name(self) -> str:
        return self.descriptor.name

    def summary(self) -> str:
        return self.descriptor.summary

    def examples(self) -> Sequence[str]:
        return self.descriptor.examples

    def search_tooltip(self) -> str:
        return self.descriptor.search_tooltip

    def parameters(self) -> Mapping[str, Any]:
        return self.descriptor.parameters

    async def run(self, params: Any) -> ToolResult:
        return await self.client.run(self.server, self.descriptor, params, self.context)
