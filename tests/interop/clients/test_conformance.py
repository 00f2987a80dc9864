"""The protocol's own conformance suite against `chalie mcp serve --http`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mcp.served import Running, Served, prepare, running
from tests.support import packages

from .bearer import with_bearer
from .conftest import Node

#: what the suite asks a server to have, as abilities; a host of tools has no prompts and resources.
TOOLS = {
    "test_simple_text": "return ToolResult.ok('This is a simple text response for testing.')",
    "test_error_handling": "raise RuntimeError('This tool intentionally returns an error for testing')",
    "test_tool_with_progress": """
        import time
        for done in (0.0, 0.5, 1.0):
            self.context.progress(done)
            time.sleep(0.05)
        return ToolResult.ok('done')
    """,
}
#: a scenario that does not pass -> why.
NOT_SERVED = {
    "logging-set-level": "the host sends no log messages",
    "completion-complete": "the host completes no arguments",
    "tools-call-image": "a result is one text envelope",
    "tools-call-audio": "a result is one text envelope",
    "tools-call-embedded-resource": "a result is one text envelope",
    "tools-call-mixed-content": "a result is one text envelope",
    "tools-call-with-logging": "the host sends no log messages",
    "tools-call-sampling": "the host asks no model of the client's",
    "tools-call-elicitation": "a tool itself asks nobody; the gate does",
    "elicitation-sep1034-defaults": "a tool itself asks nobody; the gate does",
    "elicitation-sep1330-enums": "a tool itself asks nobody; the gate does",
    "server-sse-polling": "a stream that broke is not taken up again; its call is made again",
    "resources-list": "the host serves tools alone",
    "resources-read-text": "the host serves tools alone",
    "resources-read-binary": "the host serves tools alone",
    "resources-templates-read": "the host serves tools alone",
    "resources-subscribe": "the host serves tools alone",
    "resources-unsubscribe": "the host serves tools alone",
    "prompts-list": "the host serves tools alone",
    "prompts-get-simple": "the host serves tools alone",
    "prompts-get-with-args": "the host serves tools alone",
    "prompts-get-embedded-resource": "the host serves tools alone",
    "prompts-get-with-image": "the host serves tools alone",
}
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}


def serve(folder: Path) -> Served:
    """Return a home whose external agents have the suite's tools pinned and allowed."""
    made = prepare(folder)
    for name, run in TOOLS.items():
        free = {"type": "object", "properties": {}}
        package = packages.ability_package(
            name, run=run, parameters=free, facts={"side_effect": packages.READ}
        )
        packages.install(made.site, package)
    described = packages.ability_package(
        "json_schema_2020_12_tool", parameters=SCHEMA, summary="Tool with JSON Schema 2020-12 features"
    )
    packages.install(made.site, described)
    pins = ["find_tools", "find_skills", *TOOLS, "json_schema_2020_12_tool"]
    (made.home / "config.toml").write_text(
        "[channels.external_agent]\npins = " + repr(pins).replace("'", '"') + "\n", encoding="utf-8"
    )
    with made.ledger() as ledger:
        for name in TOOLS:
            dist = f"chalie-ability-{name.replace('_', '-')}"
            ledger.permissions.set("external_agent", dist, name, "allow", by="test")
    return made


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(serve(tmp_path_factory.mktemp("suite"))) as door:
        token = door.token("suite")
        with with_bearer(door.url, token) as found:
            yield found


def scenarios(node: Node) -> list[str]:
    listed = node.run("@modelcontextprotocol/conformance", "list").stdout
    return re.findall(r"- (\S+) \[", listed.partition("Client scenarios")[0])


def test_the_suite_passes_but_for_what_a_host_of_tools_does_not_serve(node: Node, address: str) -> None:
    failed: dict[str, str] = {}
    found = scenarios(node)
    assert len(found) >= 30
    for scenario in found:
        ran = node.run(
            "@modelcontextprotocol/conformance", "server", "--url", address, "--scenario", scenario
        )
        if ran.returncode:
            failed[scenario] = ran.stdout[-1500:] + ran.stderr[-500:]
    unexpected = {name: text for name, text in failed.items() if name not in NOT_SERVED}
    assert not unexpected, "\n\n".join(f"{name}:\n{text}" for name, text in unexpected.items())
    assert set(NOT_SERVED) == set(failed)


def test_it_is_our_server_that_is_asked(door: Running, node: Node) -> None:
    ran = node.run("@modelcontextprotocol/conformance", "server", "--url", door.url, "--scenario", "ping")
    assert ran.returncode != 0, "without a token nothing passes"
