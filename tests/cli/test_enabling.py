"""What enabling and uninstalling say where there is nothing to enable or uninstall."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chalie.cli import exits, installer

from tests.support import packages

Chalie = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("installed")


def test_a_package_that_cannot_be_read_brings_no_tools_but_the_problem_and_its_fix(chalie: Chalie) -> None:
    done = chalie("enable", "chalie-ability-broken")
    assert done.code == exits.INSTALLER
    assert done.out == ""
    assert "no such luck" in done.err and "chalie_ability_broken.py:" in done.err and "fix: " in done.err


def test_of_several_packages_the_readable_ones_are_still_told(chalie: Chalie) -> None:
    done = chalie("enable", "chalie-ability-broken", "chalie-ability-dice")
    assert done.code == exits.INSTALLER
    assert done.out == "chalie-ability-dice: tools: dice\n"


@pytest.mark.parametrize("command", ["enable", "show", "list"])
def test_a_package_whose_entry_point_is_in_no_group_of_ours_is_told_which_it_has(
    chalie: Chalie, site: Path, command: str
) -> None:
    source = packages.ability_source("nearly")
    package = packages.Package(
        "nearly",
        {"nearly.py": source},
        {"chalie.ability": {"nearly": "nearly"}, "console_scripts": {"n": "n"}},
    )
    packages.install(site, package)
    done = chalie(command, "nearly")
    assert done.code == exits.NOTHING
    assert "nearly is installed but brings nothing for Chalie" in done.err
    assert "it has the group chalie.ability [unknown-package]" in done.err
    assert '[project.entry-points."chalie.abilities"]' in done.err


def test_a_library_is_no_package_of_ours_and_no_near_miss(chalie: Chalie) -> None:
    done = chalie("enable", "pytest")
    assert done.code == exits.NOTHING
    assert "pytest is installed but brings nothing for Chalie" in done.err
    assert "pytest11" not in done.err


def never(*_: object, **__: object) -> None:
    raise AssertionError("the installer was started")


def test_what_is_not_installed_is_not_uninstalled_nor_anything_beside_it(
    chalie: Chalie, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installer, "run", never)
    done = chalie("uninstall", "-y", "chalie-ability-dice", "nope")
    assert done.code == exits.NOTHING
    assert "no package nope is installed in this Python, so nothing was uninstalled" in done.err


def test_where_nobody_can_be_asked_uninstall_says_which_option_does_without(
    chalie: Chalie, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installer, "run", never)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    done = chalie("uninstall", "chalie-ability-dice")
    assert done.code == exits.USAGE
    assert "add --yes" in done.err


def test_the_installer_says_only_what_goes_wrong_unless_asked_for_more(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    import subprocess

    seen: list[list[str]] = []

    def ran(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        seen.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", ran)
    monkeypatch.setattr("sys.stderr", open("/dev/null", "w"))  # noqa: PTH123, SIM115  (it needs a descriptor)
    installer.run("install", ["x"])
    installer.run("install", ["x"], verbose=True)
    assert ["--quiet" in command for command in seen] == [True, False]
