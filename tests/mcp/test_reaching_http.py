"""Servers that are reached by streamable HTTP."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chalie.catalogue.server_tools import described
from chalie.catalogue.servers import availability
from chalie.errors import ChalieError
from chalie.mcp.results import result_of

from tests.mcp.reaching import HERE, call, client, eventually, hosted
from tests.mcp.stored import configure, tool
from tests.mcp.web_server import WebServer, web_server

TOKEN = {"Authorization": "Bearer ${WEB_TOKEN}"}


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    monkeypatch.setenv("WEB_TOKEN", "s3cret")
    with web_server() as site:
        yield site


def entry(site: WebServer) -> dict[str, Any]:
    return {"type": "http", "url": site.url, "headers": TOKEN}


def test_a_tool_is_called_over_http_with_what_the_entry_says_is_sent(home: Path, web: WebServer) -> None:
    with hosted(home, web=entry(web)) as host:
        assert json.loads(call(host, "say", text="hi").body) == {"text": "hi"}
    assert {headers["authorization"] for _, headers, _ in web.asked} == {"Bearer s3cret"}


def test_a_session_that_the_server_forgot_is_opened_again_and_the_call_made_once(
    home: Path, web: WebServer
) -> None:
    with hosted(home, web=entry(web)) as host:
        assert call(host, "say", text="hi").status == "success"
        web.session = 2
        web.asked.clear()
        assert json.loads(call(host, "say", text="again").body) == {"text": "again"}
        assert web.methods().count("initialize") == 1
        assert web.methods().count("tools/call") == 2  # the first was refused unread


def test_a_server_that_is_down_is_said_to_be_and_found_again(home: Path, web: WebServer) -> None:
    with hosted(home, web=entry(web)) as host:
        assert call(host, "say", text="hi").status == "success"
        web.told["status"] = 503
        frame = call(host, "say", text="hi")
        assert frame.code == "connection-lost" and "status 503" in frame.body
        assert call(host, "say", text="hi").code == "not-connected"
        web.told["status"] = 401
        assert call(host, "say", text="hi").code == "not-connected"
        assert availability(home, "web").reach == "not_allowed"
        web.told.clear()
        assert call(host, "say", text="hi").status == "success"
        web.told["status"] = 403
        assert call(host, "say", text="hi").code == "not-connected"


def test_a_refusal_at_the_door_is_told_apart_from_a_failure(home: Path, web: WebServer) -> None:
    configure(home, {"web": entry(web)})
    with client(home) as reaching:
        for status, reach, why in (
            (401, "not_allowed", "status 401: it wants to know who asks"),
            (403, "not_allowed", "status 403: it wants to know who asks"),
            (500, "not_connected", "status 500"),
        ):
            web.told["status"] = status
            with pytest.raises(ChalieError, match=why):
                reaching.refresh("web")
            found = availability(home, "web")
            assert found.reach == reach and why in found.reason


def test_where_nobody_listens_the_server_is_not_connected(home: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    configure(home, {"web": {"url": f"http://127.0.0.1:{port}/mcp"}})
    with client(home) as reaching, pytest.raises(ChalieError) as refused:
        reaching.refresh("web")
    assert refused.value.code == "not-connected" and "s3cret" not in refused.value.message


def test_a_redirect_to_another_origin_gets_nothing(home: Path, web: WebServer) -> None:
    configure(home, {"web": entry(web)})
    with web_server() as other:
        web.told["elsewhere"] = other.url
        with client(home) as reaching, pytest.raises(ChalieError):
            reaching.refresh("web")
        assert other.asked == []


def test_a_schema_that_names_an_address_makes_nobody_fetch_it(home: Path, web: WebServer) -> None:
    address = web.url.replace("/mcp", "/schema.json")
    inside = {"type": "object", "properties": {"a": {"$ref": address}}}
    schemas = [{"$ref": address}, inside, {"type": "object", "$schema": address}, {"$id": address, **inside}]
    listed = [tool("good"), *(tool(f"bad_{at}", inputSchema=schema) for at, schema in enumerate(schemas))]
    tools, problems = described("web", "1", [*listed, tool("fine", outputSchema={"$ref": address})])
    assert [each.bare for each in tools] == ["good", "fine"] and len(problems) == len(schemas) + 1
    assert result_of(tools[1], {"structuredContent": {"a": 1}}).status == "success"
    assert web.fetched == [] and web.asked == []


def test_an_answer_without_end_is_given_up(home: Path, web: WebServer) -> None:
    with hosted(home, web=entry(web)) as host:
        web.told["big"] = 33 * 1024 * 1024
        frame = call(host, "say", text="hi")
        assert frame.status == "error" and "bytes" in frame.body
        web.told.clear()
        assert call(host, "say", text="hi").status == "success"


def test_a_connection_dropped_during_a_call_leaves_its_outcome_unknown(home: Path, web: WebServer) -> None:
    with hosted(home, web=entry(web)) as host:
        web.told["drop"] = True
        frame = call(host, "say", text="hi")
        assert frame.code == "connection-lost" and "not known" in (frame.hint or "")
        assert call(host, "say", text="hi").status == "success"


def test_a_server_of_the_newer_protocol_is_reached_over_http(home: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, str(HERE / "real_server.py"), "http", str(port)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:

            def listens() -> bool:
                with socket.socket() as found:
                    return found.connect_ex(("127.0.0.1", port)) == 0

            assert eventually(listens, 20)
            with hosted(home, lab={"url": f"http://127.0.0.1:{port}/mcp"}) as host:
                assert json.loads(call(host, "weather", place="Rome").body)["place"] == "Rome"
                assert "2026" in host.servers.client.refresh("lab").protocol
                call(host, "grow", word="sprout")
                assert eventually(lambda: "_mcp_lab_sprout" in host.turn(active=["sprout"]).names)
        finally:
            process.kill()
