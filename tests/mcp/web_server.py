"""A server over HTTP by hand, in this process, that misbehaves as it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.mcp.reaching import tools


class WebServer:
    """Speaks the older protocol at `url`.

    Attributes:
        told: what to do: `status` for every answer, `elsewhere` to redirect to, `big` bytes of an answer,
            `forget` the next session it is shown, `drop` the connection of a call.
        asked: (path, headers, message) of what it got.
        fetched: paths that were fetched from it.
    """

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/mcp"
        self.told: dict[str, Any] = {}
        self.asked: list[tuple[str, dict[str, str], Any]] = []
        self.session = 1
        self.fetched: list[str] = []

    def methods(self) -> list[str]:
        return [message["method"] for _, _, message in self.asked]


class _Handler(BaseHTTPRequestHandler):
    site: WebServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        site = self.site
        site.asked.append((self.path, {key.lower(): value for key, value in self.headers.items()}, message))
        told = site.told
        if "elsewhere" in told:
            self.answer(307, b"", Location=told["elsewhere"])
        elif "status" in told:
            self.answer(told["status"], b"no")
        elif message.get("id") is None:
            self.answer(202, b"")
        elif message["method"] == "tools/call" and told.pop("drop", False):
            self.close_connection = True
        elif self.headers.get("mcp-session-id", str(site.session)) != str(site.session):
            self.answer(404, b"")
        else:
            self.result(message)

    def result(self, message: dict[str, Any]) -> None:
        method, site = message["method"], self.site
        result: dict[str, Any]
        if method == "initialize":
            capabilities, info = {"tools": {}}, {"name": "web", "version": "2"}
            result = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}
        elif method == "tools/list":
            result = {"tools": tools("say")}
        elif method == "tools/call":
            text = "x" * site.told.get("big", 0) or json.dumps(message["params"]["arguments"])
            result = {"content": [{"type": "text", "text": text}]}
        else:
            error = {"code": -32601, "message": "no such method"}
            self.json({"jsonrpc": "2.0", "id": message["id"], "error": error})
            return
        self.json({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def json(self, value: Any) -> None:
        more = {"Mcp-Session-Id": str(self.site.session)}
        self.answer(200, json.dumps(value).encode(), **{"Content-Type": "application/json", **more})

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.site.fetched.append(self.path)
        self.answer(405, b"")

    def do_DELETE(self) -> None:
        self.answer(200, b"")

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def web_server() -> Iterator[WebServer]:
    handler = type("Handler", (_Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    site = handler.site = WebServer(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
