"""A home that has read two packages, made once, and the command line run against a copy of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from chalie import Host
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


@pytest.fixture(scope="session")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An import folder with a package that is right and one that is not, and a home that has read them."""
    folder = tmp_path_factory.mktemp("two")
    packages.install(folder / "site", packages.ability_package("dice", summary="Roll dice."))
    wrong = packages.ability_package("coin_create", summary="Create a coin.", facts={"namespace": "coin"})
    packages.install(folder / "site", wrong)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder / "site"))
        with Host.open(folder / "home") as host:
            host.upkeep.refresh(None)
    return folder


@pytest.fixture
def read_home(two: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a test, a copy of the one that has read the two packages, which are on the path."""
    monkeypatch.syspath_prepend(str(two / "site"))
    shutil.copytree(two / "home", home)
    return home


@pytest.fixture
def chalie(read_home: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run one command line in this process."""

    def run(*words: str) -> Ran:
        capsys.readouterr()
        code = main(list(words))
        said = capsys.readouterr()
        return Ran(code, said.out, said.err)

    return run
