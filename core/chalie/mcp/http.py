"""The door on HTTP: bearer tokens, and who may even ask; no token, no call."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import ipaddress
import json
import socket
import time
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ..errors import ConfigError
from ..ledger.database import Database
from ..ledger.tokens import TokenRow, Tokens
from .doors import Caller
from .ending import on_signal
from .server import ToolServer

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from starlette.types import ASGIApp, Receive, Scope, Send

    from .doors import Turns

__all__ = ["PATH", "Doorkeeper", "address", "is_loopback", "listening", "serve_http"]

#: where the server is, below its address.
PATH: Final = "/mcp"
#: bytes of a request's body.
LARGEST_BODY: Final = 4 * 1024 * 1024
#: sessions of clients of the handshake era that are open at once, and seconds an unused one lives.
MOST_SESSIONS: Final = 1000
IDLE_S: Final = 1800.0
#: seconds that open streams are given at the end.
_ENDING_S: Final = 2
_CALLER: Final = "chalie.caller"
_LOCAL: Final = ("127.0.0.1", "localhost", "[::1]")


def address(text: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT`, as in `127.0.0.1:8321` or `[::1]:8321`.

    Raises:
        ConfigError: it is not that.
    """
    host, colon, port = text.rpartition(":")
    if colon and port.isascii() and port.isdecimal() and int(port) < 65_536 and host:
        return host.removeprefix("[").removesuffix("]"), int(port)
    raise ConfigError(f"{text!r} is not HOST:PORT", hint="as in 127.0.0.1:8321; port 0 takes any free one")


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens there.

    Raises:
        ConfigError: it cannot, as where another program does.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(
            f"{host}:{port} cannot be listened on: {reason}", hint="choose another port, or 0 for any"
        ) from error


class Doorkeeper:
    """Lets a request in: first by where it was sent to and from, then by its token.

    A page in a browser can send requests to this machine under a name of its own; so the names a request may
    be sent to, and the pages it may come from, are known ones.

    Args:
        app: whom a request is handed to that may come in.
        check: what a token is for, or None.
        hosts: what may stand in `Host`, with or without a port.
        origins: what may stand in `Origin`, besides this machine's own pages; a request without one does
            not come from a page.
        channel: the only channel whose tokens are let in; None for any.
    """

    def __init__(
        self,
        app: ASGIApp,
        check: Callable[[str], TokenRow | None],
        *,
        hosts: Collection[str] = _LOCAL,
        origins: Collection[str] = (),
        channel: str | None = None,
    ) -> None:
        self._app = app
        self._check = check
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)
        self._channel = channel

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand it on."""
        if scope["type"] != "http":
            return
        headers = scope["headers"]
        if not self._is_known_host(_values(headers, b"host")):
            await _refuse(send, 421, "this server is not known by that name", "start it with --allow-host")
            return
        if not self._is_known_origin(_values(headers, b"origin")):
            await _refuse(send, 403, "pages of that origin may not ask", "start it with --allow-origin")
            return
        if scope["path"].rstrip("/") != PATH:
            await _refuse(send, 404, f"there is nothing here; the server is at {PATH}", None)
            return
        row = self._row(_values(headers, b"authorization"))
        if row is None:
            hint = (
                "send it as: Authorization: Bearer TOKEN; the owner makes one with: chalie tokens add LABEL"
            )
            await _refuse(send, 401, "no token that is good here, no call", hint)
            return
        if self._channel not in (None, row.channel):
            await _refuse(send, 403, f"only tokens for {self._channel} are let in here", None)
            return
        # nothing behind this door sees the token itself, so that nothing can put it into a log
        kept = [(name, value) for name, value in headers if name != b"authorization"]
        caller = Caller(row.id, row.label, row.channel, row.principal, row.permissions)
        await self._app({**scope, "headers": kept, _CALLER: caller, "user": _user(row)}, receive, send)

    def _is_known_host(self, values: list[str]) -> bool:
        if len(values) != 1:
            return False
        name = values[0].lower()
        return name in self._hosts or _bare(name) in self._hosts

    def _is_known_origin(self, values: list[str]) -> bool:
        if len(values) != 1:
            return not values
        origin = values[0].lower().rstrip("/")
        scheme, _, name = origin.partition("://")
        return origin in self._origins or (scheme in ("http", "https") and _bare(name) in _LOCAL)

    def _row(self, values: list[str]) -> TokenRow | None:
        if len(values) != 1:
            return None
        scheme, _, token = values[0].partition(" ")
        return self._check(token.strip()) if scheme.lower() == "bearer" and token.strip() else None


def _bare(name: str) -> str:
    """Return a host without its port."""
    return name[: name.rfind("]") + 1] if name.startswith("[") else name.partition(":")[0]


def _values(headers: list[tuple[bytes, bytes]], name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in headers if key == name]


def _user(row: TokenRow) -> Any:
    """Return the caller in the form by which the SDK keeps one client out of another's session."""
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.auth.provider import AccessToken

    return AuthenticatedUser(AccessToken(token="", client_id=row.id, scopes=[]))


def _caller(context: ServerRequestContext[Any, Any]) -> Caller:
    """Return who the doorkeeper let in with a request."""
    assert context.request is not None
    caller = context.request.scope[_CALLER]
    assert isinstance(caller, Caller)
    return caller


async def _refuse(send: Send, status: int, message: str, hint: str | None) -> None:
    body = json.dumps({"error": message, **({"hint": hint} if hint else {})}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b'Bearer error="invalid_token"'))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def serve_http(
    host: Turns,
    bound: socket.socket,
    *,
    hosts: Collection[str] = (),
    origins: Collection[str] = (),
    channel: str | None = None,
    person_at_client: bool = False,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve every client that brings a token, until a signal ends us.

    Args:
        host: opens the turns.
        bound: a listening socket.
        hosts: further names this server is known by.
        origins: origins of pages that may ask.
        channel: the only channel whose tokens are let in; None for any.
        person_at_client: whether what the gate asks about may be answered at the clients.
        ready: told when requests are taken.
    """
    import uvicorn
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    tools = ToolServer(host, _caller, person_at_client=person_at_client)
    limits: dict[str, Any] = {
        "session_idle_timeout": IDLE_S,
        "max_request_body_size": LARGEST_BODY,
        "max_sessions": MOST_SESSIONS,
    }
    known = inspect.signature(StreamableHTTPSessionManager).parameters  # the first versions lack some
    manager = StreamableHTTPSessionManager(
        tools.build(), **{name: value for name, value in limits.items() if name in known}
    )
    # a connection of its own: a reader never waits for those who write, and revoking counts at once
    reading = Database(host.ledger.path, durable=False)
    tokens = Tokens(reading, lambda: reading, time.time)
    names = {*_LOCAL, *hosts}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await manager.handle_request(scope, receive, send)
        if scope["method"] == "DELETE":
            for session in _values(scope["headers"], b"mcp-session-id"):
                tools.forget(scope[_CALLER], session)

    door = Doorkeeper(app, tokens.check, hosts=names, origins=origins, channel=channel)

    class Signalled(uvicorn.Server):
        """A server that leaves the signals to us, since there is a host to close after it."""

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    config = uvicorn.Config(
        door,
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=_ENDING_S,
    )
    server = Signalled(config)
    on_signal(partial(setattr, server, "should_exit", True))
    watching = asyncio.create_task(tools.watch())
    try:
        async with manager.run():
            serving = asyncio.create_task(server.serve(sockets=[bound]))
            while not server.started and not serving.done():
                await asyncio.sleep(0.01)
            ready()
            await serving
    finally:
        watching.cancel()
        tools.close()
        reading.close()
