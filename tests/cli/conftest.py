"""A home with generated packages, and the command line run against it in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from chalie.cli.main import main

from tests.support import packages


@frozen
class Ran:
    """What one command printed and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def chalie(home: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run one command line in this process."""

    def run(*words: str) -> Ran:
        capsys.readouterr()
        code = main(list(words))
        said = capsys.readouterr()
        return Ran(code, said.out, said.err)

    return run


@pytest.fixture
def token(home: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An approver token of the home, in the environment as its holder would put it there."""
    from chalie.config import Config
    from chalie.ledger import Ledger

    config = Config.load(home)
    with Ledger.open(config.ledger_path, retention=config.retention) as ledger:
        made = ledger.approvers.add("phone", by="test")
    monkeypatch.setenv("CHALIE_APPROVER_TOKEN", made)
    return made


@pytest.fixture
def installed(site: Path) -> Path:
    """Three packages: a plain tool, one with actions, and one that cannot be imported."""
    packages.install(
        site,
        packages.ability_package(
            "dice",
            summary="Roll dice and report their sum.",
            examples=[
                "roll two dice",
                "throw a d20 for me",
                "give me a random number from one to six",
                "roll for initiative",
                "I need three dice rolls",
                "flip a two-sided die",
            ],
            facts={"side_effect": packages.READ},
        ),
    )
    packages.install(
        site,
        packages.ability_package(
            "notes",
            summary="Keep short notes.",
            parameters={
                "type": "object",
                "properties": {
                    "action": {"type": "string", "enum": ["add", "clear"]},
                    "count": {"type": "integer"},
                    "password": {"type": "string", "writeOnly": True},
                },
                "required": ["action"],
                "additionalProperties": False,
            },
            facts={
                "actions": packages.Raw('{"add": SideEffect.WRITE, "clear": SideEffect.DESTRUCTIVE}'),
            },
        ),
    )
    packages.install(site, packages.ability_package("broken", before="raise RuntimeError('no such luck')"))
    return site
