"""What a person sees while packages are read: the name of the one that takes long; a program sees nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support import packages
from tests.support import wheels as building
from tests.support.terminal import at_terminal

WAITS = """
import os, time
while not os.path.exists({gate!r}):
    time.sleep(0.01)
"""


@pytest.fixture
def gate(tmp_path: Path, site: Path) -> Path:
    """A file that the import of an installed package waits for."""
    path = tmp_path / "gate"
    packages.install(site, packages.ability_package("slow_words", before=WAITS.format(gate=str(path))))
    return path


def environment(tmp_path: Path, site: Path) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    return building.clean_environment(home, PYTHONPATH=str(site), TERM="xterm")


COMMAND = [sys.executable, "-m", "chalie.cli.main"]


@pytest.mark.parametrize(
    ("words", "shown", "answer"),
    [
        (["index"], "reading chalie-ability-slow-words", "1 tools and 0 playbooks"),
        (["find", "slow_words"], "reading installed packages", "Do the thing called slow_words."),
    ],
)
def test_a_person_sees_what_is_read_while_it_is_read(
    gate: Path, site: Path, tmp_path: Path, words: list[str], shown: str, answer: str
) -> None:
    # The import ends only once its name is on the screen: progress that came afterwards would never come.
    said = at_terminal([*COMMAND, *words], answers=[(shown, gate.touch)], env=environment(tmp_path, site))
    assert said.code == 0, said.screen
    assert answer in said.screen.rstrip().splitlines()[-1]


@pytest.mark.parametrize("words", [["index"], ["find", "slow_words"], ["list", "--json"]])
def test_a_program_sees_the_answer_alone(gate: Path, site: Path, tmp_path: Path, words: list[str]) -> None:
    gate.touch()
    done = building.checked([*COMMAND, *words], env=environment(tmp_path, site))
    assert done.stderr == ""
    assert "\x1b" not in done.stdout and "reading" not in done.stdout.replace('"reading"', "")
