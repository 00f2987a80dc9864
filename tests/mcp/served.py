"""Tools to serve, a home that has read them, and servers over it: in this process, by stdio and by HTTP."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import frozen
from chalie import Host
from chalie.config import Config
from chalie.ledger import Ledger
from chalie.mcp.doors import Caller
from chalie.mcp.server import ToolServer
from mcp_types import ElicitRequestParams, ElicitResult

from tests.support import packages

STDIO = Caller("stdio", "stdio", "external_agent", "ada")
AT_CLIENT = Caller("stdio", "stdio", "chat", "ada")

_FREE = {"type": "object", "properties": {"text": {"type": "string"}, "n": {"type": "integer"}}}


def _write(site: Path) -> None:
    """Write the tools: what each is for stands in its summary."""
    made: dict[str, dict[str, Any]] = {
        "echo": {
            "summary": "Repeat a text and say on whose behalf.",
            "examples": [
                "repeat what I say",
                "say that back to me",
                "echo this text",
                "parrot my words",
                "tell me the same thing again",
                "repeat the sentence please",
            ],
            "facts": {"side_effect": packages.READ},
            "run": "return ToolResult.ok({'echo': params, 'for': self.context.principal})",
        },
        "deploy": {
            "summary": "Deploy the website to the public servers.",
            "facts": {"side_effect": packages.Raw("SideEffect.DESTRUCTIVE")},
            "run": """
            with (self.context.data_folder / "ran").open("a") as file:
                file.write(str(params.get("text")) + "\\n")
            return ToolResult.ok({"deployed": params.get("text")})
            """,
        },
        "nap": {
            "summary": "Sleep for some milliseconds without letting anybody else do anything meanwhile.",
            "facts": {"side_effect": packages.READ},
            "before": "import time",
            "run": "time.sleep(params.get('n', 0) / 1000)\nreturn ToolResult.ok('rested')",
        },
        "novel": {
            "summary": "Write a text of that many characters.",
            "facts": {"side_effect": packages.READ},
            "run": "return ToolResult.ok('x' * params.get('n', 0))",
        },
        "chatter": {
            "summary": "Print to standard output, from Python and from a program it starts.",
            "facts": {"side_effect": packages.READ},
            "before": "import subprocess",
            "run": """
            print('{"jsonrpc": "2.0", "id": 1, "result": {}}')
            subprocess.run(["echo", "from a child"], check=True)
            return ToolResult.ok("printed")
            """,
        },
        "steps": {
            "summary": "Take three steps and say how far it is.",
            "facts": {"side_effect": packages.READ},
            "run": """
            for step in (1, 2, 3):
                self.context.progress(step / 4, f"step {step}")
            return ToolResult.ok("done")
            """,
        },
        "picture": {
            "summary": "Draw a picture.",
            "facts": {"side_effect": packages.READ},
            "run": """
            blocks = [
                {"type": "image", "data": "aGk=", "mimeType": "image/png"},
                {"type": "text", "text": "not framed"},
                {"type": "image", "data": 7},
                {"type": "audio", "data": "x" * 3_000_000, "mimeType": "audio/wav"},
            ]
            return ToolResult.ok("a picture", {"blocks": blocks})
            """,
        },
        "fail": {
            "summary": "Fail with an error of its own.",
            "facts": {"side_effect": packages.READ},
            "run": "raise ValueError('inside the tool')",
        },
        "worker": {
            "summary": "Say which process runs this.",
            "facts": {"side_effect": packages.READ, "isolate": True},
            "before": "import os",
            "run": "return ToolResult.ok(os.getpid())",
        },
        "hidden": {
            "summary": "A tool that search may not show.",
            "facts": {"side_effect": packages.READ, "discoverable": False},
        },
        "call_tool": {
            "summary": "A tool that has the name of the door.",
            "facts": {"side_effect": packages.READ},
            "run": "return ToolResult.ok('the package itself')",
        },
        "pair": {
            "summary": "A tool with two actions.",
            "parameters": {
                "type": "object",
                "properties": {"action": {"type": "string", "enum": ["look", "wipe"]}},
                "required": ["action"],
            },
            "facts": {
                "actions": packages.Raw('{"look": SideEffect.READ, "wipe": SideEffect.DESTRUCTIVE}'),
            },
        },
    }
    for name, source in made.items():
        source = {"parameters": _FREE, **source}
        packages.install(site, packages.ability_package(name, **source))


ALLOWED = ("echo", "nap", "novel", "chatter", "steps", "picture", "fail", "call_tool", "hidden", "worker")


def prepare(folder: Path) -> Served:
    """Write the tools and have a home read them; what only reads is allowed there to external agents."""
    site, home = folder / "site", folder / "home"
    _write(site)
    sys.path.insert(0, str(site))
    try:
        with Host.open(home) as host:
            host.upkeep.refresh(None)
            for name in ALLOWED:
                for channel in ("external_agent", "chat"):
                    dist = f"chalie-ability-{name.replace('_', '-')}"
                    host.ledger.permissions.set(channel, dist, name, "allow", by="test")
    finally:
        sys.path.remove(str(site))
    return Served(site, home)


@frozen
class Served:
    """A folder of tools, and a home that has read them."""

    site: Path
    home: Path

    def copied(self, target: Path) -> Served:
        """Return the same with a home of its own."""
        shutil.copytree(self.home, target)
        return Served(self.site, target)

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self.site), "CHALIE_HOME": str(self.home)}

    def ledger(self) -> Ledger:
        """Open its ledger alone."""
        return Ledger.open(Config.load(self.home).ledger_path)

    @property
    def ran(self) -> list[str]:
        """What deploy was run with."""
        file = self.home / "data" / "chalie-ability-deploy" / "ran"
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []

    @property
    def words(self) -> list[str]:
        return [sys.executable, "-m", "chalie.cli.main", "mcp", "serve"]


@frozen
class Here:
    """A server in this process, and its host."""

    host: Host
    tools: ToolServer
    server: Any
    served: Served


@contextmanager
def here(served: Served, caller: Caller = STDIO, *, person_at_client: bool = False) -> Iterator[Here]:
    """Serve in this process."""
    with Host.open(served.home) as host:
        tools = ToolServer(host, lambda context: caller, person_at_client=person_at_client)
        try:
            yield Here(host, tools, tools.build(), served)
        finally:
            tools.close()


@frozen
class Running:
    """A server of its own process, by HTTP."""

    url: str
    process: subprocess.Popen[str]
    said: list[str]
    served: Served

    def token(self, label: str, **scope: Any) -> str:
        """Make a token."""
        scope = {"channel": "external_agent", "principal": label, **scope}
        with self.served.ledger() as ledger:
            return ledger.tokens.add(label, **scope)


@contextmanager
def running(served: Served, *words: str) -> Iterator[Running]:
    """Serve by HTTP in a process of its own, until it is asked to end."""
    process = subprocess.Popen(
        [*served.words, "--http", "127.0.0.1:0", *words], env=served.env, stderr=subprocess.PIPE, text=True
    )
    said: list[str] = []
    try:
        yield Running(_address(process, said), process, said, served)
    finally:
        process.terminate()
        try:
            process.wait(30)
        finally:
            process.kill()


def _address(process: subprocess.Popen[str], said: list[str]) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        said.append(line)
        found = re.search(r"serving MCP at (\S+)", line)
        if found:
            threading.Thread(target=said.extend, args=(process.stderr,), daemon=True).start()
            return found[1]
    raise AssertionError("".join(said))


def texts(result: Any) -> str:
    """Return everything a model reads of an answer."""
    return "\n".join(block.text for block in result.content)


def passes(host: Host) -> Callable[[], int]:
    """Return what tells how often the gate was passed since the last look."""
    last = host.gate.passes

    def since() -> int:
        nonlocal last
        last, before = host.gate.passes, last
        return last - before

    return since


class Person:
    """Whoever sits at a client: answers the forms, and keeps them.

    Args:
        answers: one after the other; the last one for all that follow.
    """

    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)
        self.asked: list[ElicitRequestParams] = []

    async def __call__(self, context: Any, params: ElicitRequestParams) -> ElicitResult:
        self.asked.append(params)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if answer in ("cancel", "refuse"):
            return ElicitResult(action="cancel" if answer == "cancel" else "decline")
        return ElicitResult(action="accept", content={"answer": answer})


def until(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Wait for what another process or thread does; return whether it came to be."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return condition()
