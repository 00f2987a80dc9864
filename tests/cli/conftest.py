"""A home with generated packages, and the command line run against it in this process."""

from __future__ import annotations

import json
import shutil
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


@pytest.fixture(scope="session")
def three_packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An import folder with a plain tool, one with actions, and one that cannot be imported."""
    folder = tmp_path_factory.mktemp("three") / "site"
    for package in _three():
        packages.install(folder, package)
    return folder


@pytest.fixture(scope="session")
def read_home(three_packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that has read those packages already."""
    from chalie import Host

    folder = tmp_path_factory.mktemp("read") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(three_packages))
        with Host.open(folder) as host:
            host.upkeep.refresh(None)
    return folder


@pytest.fixture
def installed(three_packages: Path, read_home: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The three packages installed, and the home a copy of the one that has read them."""
    monkeypatch.syspath_prepend(str(three_packages))
    shutil.copytree(read_home, home)
    return three_packages


def _three() -> list[packages.Package]:
    dice = packages.ability_package(
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
    )
    notes = packages.ability_package(
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
        facts={"actions": packages.Raw('{"add": SideEffect.WRITE, "clear": SideEffect.DESTRUCTIVE}')},
    )
    broken = packages.ability_package("broken", before="raise RuntimeError('no such luck')")
    return [dice, notes, broken]
