"""A host with two tools, one of which is asked about, for every framework that embeds it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

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
        host: has `roll_dice`, which may run, and `send_mail`, which a person is asked about.
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

    @property
    def day(self) -> str:
        """A conversation of the running test alone."""
        return os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]


def tool(name: str, log: Path, examples: tuple[str, ...]) -> packages.Package:
    run = f"""
        with open({str(log)!r}, "a") as file:
            print({name!r}, params.get("text"), file=file)
        return ToolResult.ok({{"did": {name!r}, "text": params.get("text")}})
    """
    return packages.ability_package(name, run=run, parameters=TEXT, examples=examples)


@pytest.fixture(scope="session")
def shared_bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One host for all tests: opening it costs seconds, and each test has a conversation of its own."""
    log = tmp_path_factory.mktemp("log") / "ran"
    site = tmp_path_factory.mktemp("site")
    dice = ("roll two dice", "throw a die", "a random number", "roll for it", "dice please", "throw dice")
    mail = ("send a mail", "write to ada", "mail this", "post a letter", "tell bob by mail", "send it")
    packages.install(site, tool("roll_dice", log, dice))
    packages.install(site, tool("send_mail", log, mail))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        with Host.open(tmp_path_factory.mktemp("home") / "home") as host:
            host.upkeep.refresh()
            host.ledger.permissions.set(
                "chat", "chalie-ability-roll-dice", "roll_dice", Setting.ALLOW, by="test"
            )
            assert host.approver_token is not None
            yield Bench(host, host.approver_token, log)


@pytest.fixture
def bench(shared_bench: Bench) -> Bench:
    shared_bench.log.unlink(missing_ok=True)
    return shared_bench
