"""A local HTTP server for abilities that talk to a service: what it answers, and what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from attrs import field, frozen

__all__ = ["Request", "Service", "running"]

#: seconds after which a request that hangs is let go, should nobody end the test.
_PATIENCE_S: Final = 60.0


@frozen
class Request:
    """One request as it arrived.

    Attributes:
        method: `GET`, `POST`, and so on.
        path: without the query.
        query: name -> value; of a name given twice the last one.
        headers: lower-case name -> value.
        body: the bytes sent.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = b""

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


_Maker: TypeAlias = Callable[[Request], Any]


@frozen
class _Answer:
    made: Any
    status: int
    headers: Mapping[str, str]


class Service:
    """A server on this machine alone; unknown paths get 404.

    Attributes:
        url: its address, without a slash at the end.
        requests: every request, in order of arrival.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[Request] = []
        self._answers: dict[tuple[str, str], _Answer] = {}
        self._hanging: set[str] = set()
        self._broken: set[str] = set()
        self._released = threading.Event()

    def answers(
        self,
        path: str,
        body: Any = None,
        *,
        method: str = "GET",
        status: int = 200,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Answer every request to a path with this from now on.

        Args:
            path: as in `/v1/search`, without the query.
            body: bytes and text as they are, anything else as JSON; or a function of the `Request` that
                returns one of these.
            method: the method it is the answer to.
            status: the HTTP status.
            headers: further headers; `Content-Type` is set where it is left out.
        """
        self._hanging.discard(path)
        self._broken.discard(path)
        self._answers[method, path] = _Answer(body, status, dict(headers))

    def hangs(self, path: str) -> None:
        """Take requests to a path and answer none of them, until `release` or the end of the test."""
        self._hanging.add(path)

    def breaks_off(self, path: str) -> None:
        """Close the connection of every request to a path without an answer."""
        self._broken.add(path)

    def release(self) -> None:
        """Let go of the requests that hang."""
        self._released.set()

    def _respond(self, request: Request) -> tuple[int, Mapping[str, str], bytes] | None:
        """Return status, headers and body; None to close the connection."""
        self.requests.append(request)
        if request.path in self._hanging:
            self._released.wait(_PATIENCE_S)
        if request.path in self._broken or request.path in self._hanging:
            return None
        answer = self._answers.get((request.method, request.path))
        if answer is None:
            known = ", ".join(f"{method} {path}" for method, path in self._answers) or "nothing"
            text = f"no answer to {request.method} {request.path} is scripted; there is one to {known}\n"
            return 404, {"Content-Type": "text/plain"}, text.encode()
        made = answer.made(request) if callable(answer.made) else answer.made
        kind, data = _content(made)
        return answer.status, {"Content-Type": kind, **answer.headers}, data


def _content(made: Any) -> tuple[str, bytes]:
    if made is None:
        return "text/plain", b""
    if isinstance(made, bytes):
        return "application/octet-stream", made
    if isinstance(made, str):
        return "text/plain; charset=utf-8", made.encode()
    return "application/json", json.dumps(made).encode()


@contextmanager
def running() -> Iterator[Service]:
    """Give a server on a free port of the loopback interface for the length of the block."""

    class Handler(BaseHTTPRequestHandler):
        def _any(self) -> None:
            parts = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            query = dict(parse_qsl(parts.query, keep_blank_values=True))
            request = Request(self.command, parts.path, query, headers, self.rfile.read(length))
            found = service._respond(request)
            if found is None:
                self.close_connection = True
                return
            status, sent, data = found
            try:
                self.send_response(status)
                for name, value in {**sent, "Content-Length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)
            except (BrokenPipeError, ConnectionResetError):
                pass  # the client gave up, as it may

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _any

        def log_message(self, *_: object) -> None:
            """Keep the test's output free of requests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service = Service(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        service.release()
        server.shutdown()
        server.server_close()
        thread.join()
