"""Five wheels that fail in five ways beside one that works, as the command line shows them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from chalie.cli.exits import NOTHING, OK
from chalie.envelope import parse

from tests.support import packages
from tests.support import wheels as building

WAYS = {
    "missing": ("import a_library_nobody_has", "a_library_nobody_has"),
    "syntax": ("this is not Python", "syntax"),
    "raising": ("raise RuntimeError('no such luck')", "no such luck"),
    "leaving": ("raise SystemExit(3)", "SystemExit"),
    "sleeping": ("import time; time.sleep(60)", "the import did not finish within 2 s"),
}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A host environment with the six wheels, read once."""
    folder = tmp_path_factory.mktemp("broken")
    target, home = folder / "target", folder / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[limits]\ndescribe_s = 2.0\n")
    made = [packages.ability_package(name, before=code) for name, (code, _) in WAYS.items()]
    made.append(packages.ability_package("working", facts={"side_effect": packages.READ}))
    building.install(target, *(packages.write_wheel(folder / "links", package) for package in made))
    env = building.clean_environment(home, PYTHONPATH=str(target))
    run(env, "index")
    return env


def run(env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "chalie.cli.main", *words],
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_others_work(environment: dict[str, str]) -> None:
    done = run(environment, "find", "working", "--json")
    assert done.returncode == OK, done.stderr
    assert json.loads(done.stdout)["injected"][0]["name"] == "working"


@pytest.mark.parametrize("name", WAYS)
def test_doctor_names_each_with_distribution_entry_point_phase_reason_and_fix(
    environment: dict[str, str], name: str
) -> None:
    done = run(environment, "doctor", "--json")
    assert done.returncode == NOTHING
    (problem,) = [row for row in json.loads(done.stdout)["problems"] if row["package"].endswith(name)]
    assert problem["package"] == f"chalie-ability-{name}"
    assert f"{name} = chalie_ability_{name}" in problem["entry_point"]
    assert problem["phase"] == "import"
    assert WAYS[name][1].lower() in problem["reason"].lower()
    assert "\n" not in problem["reason"]
    assert problem["package"] in problem["fix"]


def test_a_call_of_one_that_was_set_aside_says_so_and_not_that_it_is_unknown(
    environment: dict[str, str],
) -> None:
    done = run(environment, "call", "raising")
    frame = parse(done.stdout.rstrip("\n"))
    assert (frame.status, frame.code) == ("error", "quarantined")
    assert "its package chalie-ability-raising could not be read safely" in frame.body
    assert frame.hint is not None and "chalie doctor" in frame.hint


def test_each_can_be_disabled_without_being_imported(environment: dict[str, str]) -> None:
    for name in WAYS:
        done = run(environment, "disable", f"chalie-ability-{name}")
        assert done.returncode == OK, done.stderr
    run(environment, "index")
    problems = json.loads(run(environment, "doctor", "--json").stdout)["problems"]
    assert [row for row in problems if row["package"].startswith("chalie-ability-")] == []
    assert run(environment, "find", "working").returncode == OK
