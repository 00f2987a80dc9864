"""A host with two tools, one of which is asked about, for every framework that embeds it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from attrs import frozen
from chalie import Host
from chalie.calls import Setting

from tests.support import packages

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "additionalProperties": False}


@frozen
class Bench:
    """A host that is open, and what ran on it.

    Attributes:
        host: has `roll_dice`, which may run; `send_mail`, which a person is asked about; and `wait_here`,
            which may run, and blocks its thread until there is a file `gate` beside the log.
        token: an approver token it knows.
        log: a file with one line for each run of a tool.
    """

    host: Host
    token: str
    log: Path

    @property
    def ran(self) -> list[str]:
        """What ran in the running test, as `tool text`."""
        return self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []

    async def opens_the_gate(self) -> None:
        """Wait until `wait_here` runs, and let it go on: only a loop that is free comes to this."""
        while not self.ran:
            await asyncio.sleep(0.01)
        self.log.with_name("gate").touch()

    @property
    def day(self) -> str:
        """A conversation of the running test alone."""
        return os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]


def tool(name: str, log: Path, examples: tuple[str, ...], then: str = "") -> packages.Package:
    first = f"""
        with open({str(log)!r}, "a") as file:
            print({name!r}, params.get("text"), file=file)
    """
    last = f"""
        return ToolResult.ok({{"did": {name!r}, "text": params.get("text")}})
    """
    run = "\n".join(dedent(code) for code in (first, then, last))
    return packages.ability_package(name, run=run, parameters=TEXT, examples=examples)


@pytest.fixture(scope="session")
def shared_bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One host for all tests: opening it costs seconds, and each test has a conversation of its own."""
    log = tmp_path_factory.mktemp("log") / "ran"
    site = tmp_path_factory.mktemp("site")
    dice = ("roll two dice", "throw a die", "a random number", "roll for it", "dice please", "throw dice")
    mail = ("send a mail", "write to ada", "mail this", "post a letter", "tell bob by mail", "send it")
    packages.install(site, tool("roll_dice", log, dice))
    wait = ("wait for the gate", "stay here", "hold on", "wait until it opens", "stand by", "wait a bit")
    then = f"""
        import os, time
        end = time.monotonic() + 15
        while not os.path.exists({str(log.with_name("gate"))!r}):
            if time.monotonic() > end:
                return ToolResult.error("nobody opened the gate", code="shut")
            time.sleep(0.01)
    """
    packages.install(site, tool("send_mail", log, mail))
    packages.install(site, tool("wait_here", log, wait, then))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        with Host.open(tmp_path_factory.mktemp("home") / "home") as host:
            host.upkeep.refresh()
            for name in ("roll_dice", "wait_here"):
                dist = f"chalie-ability-{name.replace('_', '-')}"
                host.ledger.permissions.set("chat", dist, name, Setting.ALLOW, by="test")
            assert host.approver_token is not None
            yield Bench(host, host.approver_token, log)


@pytest.fixture
def bench(shared_bench: Bench) -> Bench:
    for path in (shared_bench.log, shared_bench.log.with_name("gate")):
        path.unlink(missing_ok=True)
    return shared_bench
