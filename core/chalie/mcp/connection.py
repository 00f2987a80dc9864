"""One server: reached when first needed, listed, kept, and reached again after it was gone."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from attrs import frozen

from .. import __version__
from ..catalogue.server_file import Server
from ..catalogue.servers import Availability, Listing, Reach, listing, note_availability, store_listing
from ..errors import ChalieError
from .failures import Unreachable, exception_of, hung_up, look_at, said
from .listed import Listed

if TYPE_CHECKING:
    from mcp import ClientSession

    from .child import Streams
    from .negotiation import First

__all__ = ["Connection", "Progressed"]

#: told (progress, total or None, message or None)
Progressed = Callable[[float, float | None, str | None], None]

#: seconds after which a listing is read again before a call: a server need not say that it changed.
LISTED_S: Final = 60.0
#: seconds that changes are gathered for before they are read.
_GATHER_S: Final = 0.1
#: the protocol of one request at a time; older ones begin with a handshake.
_MODERN: Final = "2026-07-28"
_LOOK: Final = "whether the call had an effect is not known; look before you call it again."


class _Transport(Protocol):
    def streams(self) -> contextlib.AbstractAsyncContextManager[Streams]: ...
    def reason(self) -> str: ...
    def masked(self, text: str) -> str: ...
    def blame(self, fault: str) -> None: ...
    def let_go(self) -> None: ...


@frozen
class _Session:
    """A session that is open, and the listing it was opened with."""

    client: ClientSession
    transport: _Transport
    ended: asyncio.Event


class Connection:
    """Keeps one session with one server. Everything happens on one event loop.

    Args:
        server: its entry.
        home: where its listing and state are kept.
        connect_s: seconds until it must have answered and listed its tools.
    """

    def __init__(self, server: Server, home: Path, connect_s: float) -> None:
        self.server = server
        self._home = home
        self._connect_s = connect_s
        self._opening = asyncio.Lock()
        self._session: _Session | None = None
        self._owner: asyncio.Task[None] | None = None
        self._listed = Listed(server.slug)
        self._listed_at = 0.0
        self._changes: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False

    async def call(
        self,
        tool: str,
        digest: str,
        arguments: Mapping[str, Any],
        limit_s: float,
        progressed: Progressed | None = None,
    ) -> Mapping[str, Any]:
        """Call a tool, if it still is the one that the call was admitted with, and return the raw answer.

        Args:
            tool: the name its server gave it.
            digest: the descriptor's hash.
            arguments: as they are sent.
            limit_s: seconds the call may take, beside what reaching the server takes.
            progressed: told how far it is.

        Raises:
            Unreachable: the server cannot be reached; nothing was sent.
            NotReady: its tools are others now; nothing was sent.
            ChalieError: `timed-out`; `connection-lost`: it was gone before it answered; `server-error`: it
                refused.
        """
        self._running += 1
        self._idle.clear()
        try:
            return await self._called(tool, digest, arguments, limit_s, progressed)
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()

    async def _called(
        self,
        tool: str,
        digest: str,
        arguments: Mapping[str, Any],
        limit_s: float,
        progressed: Progressed | None,
    ) -> Mapping[str, Any]:
        session = await self._current()
        self._listed.expect(tool, digest)
        try:
            async with asyncio.timeout(limit_s):
                return await self._asked(session, tool, arguments, progressed)
        except TimeoutError as error:
            message = f"the server {self.server.slug} did not answer within {limit_s:g} s"
            raise ChalieError(message, code="timed-out", hint=_LOOK) from error
        except _Lost:
            # the server does not know the session any more, so it has not done anything
            await self._drop(session)
        session = await self._current()
        self._listed.expect(tool, digest)
        async with asyncio.timeout(limit_s):
            return await self._asked(session, tool, arguments, progressed)

    async def refresh(self) -> Listing:
        """Reach the server, read its listing again, keep it, and return it.

        Raises:
            Unreachable: it cannot be reached.
        """
        fresh = self._session is None
        session = await self._opened()
        if not fresh:
            try:
                await self._list(session)
            except Exception as error:
                raise await self._failed(session, error) from error
        known = listing(self._home, self.server.slug)
        if known is None:
            raise Unreachable(
                self.server.slug, Availability("not_connected", "its listing could not be kept")
            )
        return known

    async def retire(self) -> None:
        """Take no more calls, and end the session when those that run have ended."""
        await self._idle.wait()
        await self.close()

    async def close(self) -> None:
        """End the session, and the server's program with it; nothing is opened afterwards."""
        self._closed = True
        if self._session is not None:
            await self._drop(self._session)
        elif self._owner is not None:
            self._owner.cancel()
            await asyncio.gather(self._owner, return_exceptions=True)

    @property
    def open(self) -> bool:
        """Whether there is a session."""
        return self._session is not None

    # opening

    async def _current(self) -> _Session:
        """Return a session whose listing is not too old."""
        session = await self._opened()
        if asyncio.get_running_loop().time() - self._listed_at > LISTED_S:
            try:
                await self._list(session)
            except _Lost:
                await self._drop(session)
                session = await self._opened()
            except Exception as error:
                raise await self._failed(session, error) from error
        return session

    async def _opened(self) -> _Session:
        async with self._opening:
            if self._closed:
                raise Unreachable(self.server.slug, Availability("not_connected", "the host is closed"))
            if self._session is not None:
                return self._session
            try:
                found = await self._open()
            except asyncio.CancelledError:
                raise
            except Unreachable as error:
                note_availability(self._home, self.server.slug, error.found)
                raise
            note_availability(self._home, self.server.slug, Availability("ok"))
            return found

    async def _open(self) -> _Session:
        first: First = "discover"
        known = listing(self._home, self.server.slug)
        if known is not None and known.protocol and known.protocol < _MODERN:
            first = "handshake"
        try:
            return await self._attempt(first)
        except Unreachable as error:
            # a server that knows the handshake alone may hang up on anything else
            if (
                first == "handshake"
                or error.found.reach != "not_connected"
                or not error.found.reason.startswith("it ended")
            ):
                raise
        return await self._attempt("handshake")

    async def _attempt(self, first: First) -> _Session:
        transport = self._transport()
        ready: asyncio.Future[_Session] = asyncio.get_running_loop().create_future()
        owner = asyncio.create_task(self._serve(transport, first, ready))
        owner.add_done_callback(look_at)
        self._owner = owner
        try:
            either: tuple[asyncio.Future[Any], ...] = (ready, owner)
            done, _ = await asyncio.wait(either, timeout=self._connect_s, return_when="FIRST_COMPLETED")
            if ready in done:
                return ready.result()
            if owner in done:
                raise self._unreachable(transport, exception_of(owner))
            heard = transport.reason()
            reason = f"no answer within {self._connect_s:g} s" + (f"; {heard}" if heard else "")
            raise Unreachable(self.server.slug, Availability("not_connected", reason))
        finally:
            if self._session is None:
                owner.cancel()
                await asyncio.gather(owner, return_exceptions=True)

    def _transport(self) -> Any:
        server = self.server.expanded(os.environ)
        if server.command:
            from .child import Child

            return Child(server)
        from .remote import Remote

        return Remote(server)

    async def _serve(self, transport: _Transport, first: First, ready: asyncio.Future[_Session]) -> None:
        """Hold a session open, from one task, as the SDK wants it."""
        from mcp import ClientSession
        from mcp_types import Implementation

        from .metered import Metered
        from .negotiation import negotiate
        from .wire import Wire

        async with transport.streams() as (read, write):
            wire = Wire(Metered(read, transport.blame), write)
            info = Implementation(name="chalie", version=__version__)
            client = ClientSession(dispatcher=wire, client_info=info, message_handler=self._told)
            async with client:
                session = _Session(client, transport, asyncio.Event())
                await negotiate(client, first)
                await self._list(session)
                self._session = session
                if not ready.done():
                    ready.set_result(session)
                self._watching = asyncio.create_task(self._watch(session))
                try:
                    await _gone(wire, session.ended)
                finally:
                    self._session = None
                    for task in (self._watching, self._changes):
                        if task is not None:
                            task.cancel()

    async def _drop(self, session: _Session) -> None:
        """End a session, and wait until nothing of it is left."""
        owner = self._owner
        if self._session is session:
            self._session = None
        session.ended.set()
        if owner is not None:
            await asyncio.gather(asyncio.shield(owner), return_exceptions=True)

    def _unreachable(self, transport: _Transport, error: BaseException | None) -> Unreachable:
        reach: Reach = "not_allowed" if getattr(transport, "refused", False) else "not_connected"
        reason = (
            error.message
            if isinstance(error, ChalieError)
            else transport.reason() or transport.masked(said(error))
        )
        return Unreachable(self.server.slug, Availability(reach, reason[:500]))

    # listing

    async def _list(self, session: _Session) -> None:
        from .pages import read_listing

        try:
            known = await read_listing(session.client)
        except Exception as error:
            if _session_lost(session, error):
                raise _Lost from error
            raise
        self._listed.take(known)
        self._listed_at = asyncio.get_running_loop().time()
        with contextlib.suppress(OSError):  # a full disk costs the stored listing, not the session
            await asyncio.to_thread(store_listing, self._home, self.server.slug, known)

    async def _told(self, message: Any) -> None:
        from mcp_types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self._changed()

    def _changed(self) -> None:
        if self._changes is None or self._changes.done():
            self._changes = asyncio.create_task(self._relist())

    async def _relist(self) -> None:
        await asyncio.sleep(_GATHER_S)
        session = self._session
        if session is not None:
            self._changes = None  # what is announced from now on is read again
            try:
                await self._list(session)
            except Exception:  # the next call finds out, and says so
                self._listed_at = float("-inf")

    async def _watch(self, session: _Session) -> None:
        """Hear of changes where the protocol has a stream for them, opening it again when it breaks."""
        if session.client.discover_result is None:
            return
        from mcp.client.subscriptions import SubscriptionLost, listen

        while not session.ended.is_set():
            try:
                async with listen(session.client, tools_list_changed=True) as told:
                    if not told.honored.tools_list_changed:
                        return
                    async for _ in told:
                        self._changed()
            except SubscriptionLost:
                self._changed()
            except Exception:  # it does not offer it after all: the listing's age has to do
                return
            await asyncio.sleep(1.0)

    # calling

    async def _asked(
        self,
        session: _Session,
        tool: str,
        arguments: Mapping[str, Any],
        progressed: Progressed | None,
    ) -> Mapping[str, Any]:
        from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult

        from .wire import set_aside

        async def told(progress: float, total: float | None, message: str | None) -> None:
            if progressed is not None:
                progressed(progress, total, message)

        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=dict(arguments)))
        try:
            with set_aside() as answers:
                await session.client.send_request(
                    request, CallToolResult, progress_callback=told if progressed is not None else None
                )
            return answers[0]
        except Exception as error:
            if _session_lost(session, error):
                raise _Lost from error
            raise await self._failed(session, error) from error

    async def _failed(self, session: _Session, error: Exception) -> ChalieError:
        """Return what to tell of a request that failed, once the session has seen its own end."""
        from mcp import MCPError

        if isinstance(error, ChalieError):
            return error
        if isinstance(error, MCPError) and getattr(session.transport, "refused", False):
            refused = Availability("not_allowed", session.transport.reason())
            note_availability(self._home, self.server.slug, refused)
            return Unreachable(self.server.slug, refused)
        broken = getattr(session.transport, "broken", False)
        answered = isinstance(error, MCPError) and not hung_up(error) and not broken
        if answered and self._session is session:
            why = session.transport.masked(said(error))
            return ChalieError(f"the server {self.server.slug} refused the call: {why}", code="server-error")
        reason = session.transport.reason() or "it ended the connection"
        if self._session is session:
            await self._drop(session)
            reason = session.transport.reason() or reason
        note_availability(self._home, self.server.slug, Availability("not_connected", reason[:500]))
        return ChalieError(
            f"the server {self.server.slug} was gone before it answered: {reason}",
            code="connection-lost",
            hint=_LOOK,
        )


class _Lost(Exception):
    """The server does not know the session any more, and so did nothing."""


def _session_lost(session: _Session, error: Exception) -> bool:
    return bool(getattr(session.transport, "lost", False)) and "Session terminated" in str(error)


async def _gone(wire: Any, ended: asyncio.Event) -> None:
    """Wait until the session is to end, or the server has ended it."""
    closed = asyncio.create_task(wire.closed.wait())
    asked = asyncio.create_task(ended.wait())
    try:
        await asyncio.wait({closed, asked}, return_when="FIRST_COMPLETED")
    finally:
        for task in (closed, asked):
            task.cancel()
