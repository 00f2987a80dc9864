"""The playbooks of this package: readable by the host, findable, and complete."""
# ruff: noqa: D103

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from chalie.catalogue.descriptor import Playbook
from chalie.catalogue.playbooks import read, read_folder

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "src" / "chalie_skills"
FILES = sorted(FOLDER.glob("*/SKILL.md"))


def test_the_host_reads_every_playbook_and_reports_none() -> None:
    playbooks, problems = read_folder(FOLDER, dist="chalie-skills")
    assert problems == ()
    assert [playbook.name for playbook in playbooks] == [file.parent.name for file in FILES]
    assert len(playbooks) >= 12


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_a_playbook_says_what_it_does_when_to_use_it_and_when_it_is_done(file: Path) -> None:
    playbook = read(file)
    assert isinstance(playbook, Playbook)
    assert playbook.name == file.parent.name
    assert playbook.allowed_tools is None
    assert len(playbook.description) <= 1024
    assert "Use " in playbook.description
    headings = [line.removeprefix("## ") for line in playbook.body.splitlines() if line.startswith("## ")]
    assert {"Steps", "Done when", "Common mistakes"} <= set(headings)
    assert headings.index("Steps") < headings.index("Done when") < headings.index("Common mistakes")
    assert playbook.body.count("\n1. ") >= 1
    assert len(playbook.body) < 6000, "it goes whole into a model's context"


def test_the_readme_lists_every_playbook() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [file.parent.name for file in FILES if f"| `{file.parent.name}` |" not in text] == []


def test_the_entry_point_names_the_package_that_holds_them() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (value,) = project["entry-points"]["chalie.skills"].values()
    assert (ROOT / "src" / value / "__init__.py").is_file()
