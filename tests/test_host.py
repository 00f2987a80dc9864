"""The host as a whole, in its own process with generated packages."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from chalie import Host

from .support import packages


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


def test_a_host_opens_after_a_package_came_and_after_it_went(tmp_path: Path, site: Path) -> None:
    home = tmp_path / "home"
    packages.install(site, packages.ability_package("first_words"))
    with Host.open(home) as host:
        assert [item.name for _, item in host.snapshot.abilities()] == ["first_words"]
    second = packages.install(site, packages.ability_package("second_words"))
    with Host.open(home) as host:
        host.upkeep.refresh()
        assert [item.name for _, item in host.snapshot.abilities()] == ["first_words", "second_words"]
    packages.uninstall(second)
    with Host.open(home) as host:
        host.upkeep.refresh()
        assert [item.name for _, item in host.snapshot.abilities()] == ["first_words"]
    assert "chalie_ability_first_words" not in sys.modules


def test_every_call_passes_the_gate_once_whether_it_may_run_or_not(tmp_path: Path, site: Path) -> None:
    packages.install(site, packages.ability_package("echo_words"))
    with Host.open(tmp_path / "home") as host:
        turn = host.turn(active=["echo_words"])
        for name, arguments in [("find_tools", {"query": ["nothing like it"]}), ("echo_words", {})]:
            before = host.gate.passes
            turn.call(name, {**arguments, "act_summary": "trying"})
            assert host.gate.passes == before + 1
