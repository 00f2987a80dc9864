"""Fixtures that every room of the tests may use."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support import wheels as building

settings.register_profile(
    "checkout", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("checkout")


@pytest.fixture(autouse=True)
def no_real_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep every test off the account's own home folder, whatever it forgets to say."""
    for key in [key for key in os.environ if key.startswith("CHALIE_")]:
        monkeypatch.delenv(key)
    monkeypatch.setenv("CHALIE_HOME", str(tmp_path_factory.mktemp("home")))


@pytest.fixture(autouse=True)
def no_module_of_another_test(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Forget modules of generated packages: another test's package of that name would rightly be refused."""
    generated = str(tmp_path_factory.getbasetemp().parent)
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(generated):
            del sys.modules[name]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh home folder that CHALIE_HOME points at; not yet made."""
    folder = tmp_path / "chalie-home"
    monkeypatch.setenv("CHALIE_HOME", str(folder))
    return folder


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty import folder, first on this process's path, for generated packages."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder that all test processes of one run have in common."""
    base = tmp_path_factory.getbasetemp()
    return base if worker_id == "master" else base.parent


@pytest.fixture(scope="session")
def wheels(shared: Path) -> Path:
    """The folder of the checkout's wheels, built once for all test processes."""
    return building.built_once(shared)
