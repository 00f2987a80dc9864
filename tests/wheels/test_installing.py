"""`chalie install` and `uninstall` with pip, with uv, and with neither."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from chalie.cli.exits import INSTALLER, NOTHING, OK, REFUSED, USAGE

from tests.support import packages
from tests.support import wheels as building

from .conftest import Program, using

PLUGIN = """
import click
from chalie import hookimpl

@click.command()
def hello():
    click.echo("hello from a plugin")

@hookimpl
def register_commands():
    return {"hello": hello}
"""


@pytest.fixture
def dice(tmp_path: Path) -> Path:
    package = packages.ability_package("dice", facts={"side_effect": packages.READ})
    return packages.write_wheel(tmp_path / "links", package)


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    package = packages.Package(
        dist="chalie-hello",
        files={"chalie_hello.py": PLUGIN},
        entry_points={"chalie.plugins": {"hello": "chalie_hello"}},
    )
    return packages.write_wheel(tmp_path / "links", package)


@pytest.fixture
def uv_only(without_pip: Path, tmp_path: Path) -> Iterator[Program]:
    """An environment without pip, with uv on the PATH and nothing else."""
    tools = tmp_path / "tools"
    tools.mkdir()
    found = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    assert found, "the test environment has no uv"
    (tools / "uv").symlink_to(found)
    with using(without_pip):
        yield Program(without_pip, building.clean_environment(tmp_path / "home", PATH=str(tools)))


def installs_finds_and_uninstalls(chalie: Program, wheel: Path) -> None:
    assert chalie("find", "dice").returncode == NOTHING
    done = chalie("install", str(wheel))
    assert done.returncode == OK, done.stderr
    assert done.stdout == "chalie-ability-dice: tools: dice\n"
    assert chalie("find", "dice").returncode == OK
    done = chalie("uninstall", "--yes", "chalie-ability-dice")
    assert done.returncode == OK, done.stderr
    assert chalie("find", "dice").returncode == NOTHING


def test_install_uses_pip_where_there_is_one(chalie: Program, dice: Path) -> None:
    installs_finds_and_uninstalls(chalie, dice)


def test_install_uses_uv_in_an_environment_without_pip(uv_only: Program, dice: Path) -> None:
    installs_finds_and_uninstalls(uv_only, dice)


def test_install_by_name_takes_the_package_from_a_folder(uv_only: Program, dice: Path) -> None:
    done = uv_only("install", "--no-index", "--find-links", str(dice.parent), "chalie-ability-dice")
    assert done.returncode == OK, done.stderr
    assert done.stdout == "chalie-ability-dice: tools: dice\n"
    assert uv_only("uninstall", "--yes", "chalie-ability-dice").returncode == OK


def test_without_pip_and_uv_one_line_says_what_to_type(uv_only: Program, dice: Path) -> None:
    done = uv_only("install", "chalie-ability-dice", PATH="/nonexistent")
    assert done.returncode == INSTALLER
    (line,) = done.stderr.splitlines()
    assert f"uv pip install --python {uv_only.python}" in line and line.endswith("chalie-ability-dice")


def test_an_installer_that_fails_is_named_and_its_output_is_shown(uv_only: Program, tmp_path: Path) -> None:
    done = uv_only("install", "--no-index", "chalie-ability-nowhere")
    assert done.returncode == INSTALLER
    assert "failed with exit code" in done.stderr.splitlines()[-1]
    assert uv_only("install").returncode == USAGE


def test_what_cannot_be_read_fails_the_install_and_names_no_tools(uv_only: Program, tmp_path: Path) -> None:
    broken = packages.ability_package("broken", before="raise RuntimeError('no such luck')")
    done = uv_only("install", str(packages.write_wheel(tmp_path / "links", broken)))
    assert done.returncode == INSTALLER
    assert "tools:" not in done.stdout
    assert "no such luck" in done.stderr and "chalie_ability_broken.py:" in done.stderr
    assert uv_only("uninstall", "--yes", "chalie-ability-broken").returncode == OK


def test_an_install_says_what_it_brought_and_nothing_of_what_was_there(uv_only: Program, dice: Path) -> None:
    assert uv_only("install", str(dice)).returncode == OK
    again = uv_only("install", str(dice))
    assert (again.stdout, again.stderr) == ("chalie-ability-dice: tools: dice\n", "")
    assert uv_only("install", "--verbose", str(dice)).stderr != ""
    assert uv_only("uninstall", "--yes", "chalie-ability-dice").returncode == OK


def test_a_plugin_is_installed_by_anybody_and_enabled_by_a_person(uv_only: Program, plugin: Path) -> None:
    done = uv_only("install", str(plugin))
    assert done.returncode == REFUSED
    assert "chalie-hello is installed, not enabled: it brings plugins" in done.stderr
    assert "chalie enable chalie-hello" in done.stderr
    assert uv_only("hello").returncode == USAGE
    said = uv_only.at_terminal("install", str(plugin))
    assert said.code == OK, said.screen
    assert uv_only("hello").stdout == "hello from a plugin\n"
    assert uv_only("uninstall", "--yes", "chalie-hello").returncode == OK


def test_what_a_person_set_is_kept_when_the_package_goes(uv_only: Program, dice: Path) -> None:
    assert uv_only("install", str(dice)).returncode == OK
    assert uv_only.at_terminal("permissions", "set", "chat", "dice", "allow").code == OK
    assert uv_only("call", "dice").returncode == OK
    assert uv_only("uninstall", "--yes", "chalie-ability-dice").returncode == OK
    notes = json.loads(uv_only("doctor", "--json").stdout)["notes"]
    (note,) = [note for note in notes if note["package"] == "chalie-ability-dice"]
    assert note["reason"].startswith("known but not installed")
    assert uv_only("install", str(dice)).returncode == OK
    assert uv_only("call", "dice").returncode == OK
    assert uv_only("uninstall", "--yes", "chalie-ability-dice").returncode == OK
