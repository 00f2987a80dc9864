"""`chalie lint` from the command line: what it looks at, what it prints, and how it ends."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.authoring.conftest import Ran
from tests.support import packages

ROOT = Path(__file__).resolve().parents[2]
OWN = sorted(path.parent for path in (ROOT / "plugins").glob("chalie-ability-*/pyproject.toml"))


Chalie = Callable[..., Ran]


def test_everything_installed_is_looked_at_and_nothing_of_it_imported(chalie: Chalie) -> None:
    before = set(sys.modules)
    found = chalie("lint", "--json")
    assert found.code == 1
    assert (found.json["tools"], found.json["errors"]) == (2, 1)
    assert found.json["findings"] == [
        {
            "rule": "verb-replaced",
            "severity": "error",
            "package": "chalie-ability-coin-create",
            "tool": "coin_create",
            "where": "name",
            "message": "coin_create says create, for which the word is add",
            "fix": "call it coin_add",
            "page": "docs/lint-rules.md#verb-replaced",
            "exception": "coin_create",
        }
    ]
    assert not {name for name in set(sys.modules) - before if name.startswith("chalie_ability")}


def test_one_package_is_looked_at_by_its_name_in_any_spelling(chalie: Chalie) -> None:
    assert chalie("lint", "Chalie_Ability.dice").out == "nothing to mend in 1 tool\n"
    assert chalie("lint", "chalie-ability-coin-create").code == 1
    absent = chalie("lint", "chalie-ability-nothing")
    assert (absent.code, absent.out) == (1, "")
    assert "no package chalie-ability-nothing is installed" in absent.err


def test_a_finding_is_three_lines_and_the_last_line_counts(chalie: Chalie) -> None:
    lines = chalie("lint", "chalie-ability-coin-create").out.split("\n")
    assert lines == [
        "",
        "error  verb-replaced: coin_create says create, for which the word is add",
        "fix    call it coin_add",
        "page   docs/lint-rules.md#verb-replaced",
        "",
        "1 error in 1 tool",
        "",
    ]


def test_settings_of_another_file_hold_where_they_are_asked_for(chalie: Chalie, tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text('[tool.chalie.lint.exceptions]\ncoin_create = "minting is what it is called"\n')
    assert chalie("lint", "chalie-ability-coin-create", "--settings", str(file)).code == 0
    file.write_text("[tool.chalie.lint]\nparameter = 1\n")
    refused = chalie("lint", "chalie-ability-coin-create", "--settings", str(file))
    assert refused.code == 3
    assert "has no option 'parameter'; it may be parameters or exceptions [bad-config]" in refused.err


def test_a_warning_fails_only_where_it_is_asked_to(chalie: Chalie, tmp_path: Path) -> None:
    tools = [{"name": "note_delete", "summary": "Delete a note.", "sideEffectClass": "write"}]
    file = tmp_path / "tools.json"
    file.write_text(json.dumps({"tools": tools}))
    assert chalie("lint", str(file)).code == 0
    assert chalie("lint", str(file), "--strict").code == 1


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ([], "has no list `tools` or `abilities`, or an empty one"),
        ([{"summary": "x"}], "tools[0] has no name"),
        ([{"name": "x"}], "tools[0] (x) has no summary"),
        ([{"name": "x", "summary": "x", "parameters": 3}], "parameters is neither a JSON Schema nor a list"),
        ([{"name": "x", "summary": "x", "sideEffectClass": "mild"}], "has the class 'mild'; it may be read,"),
        ([{"name": "x", "summary": "x", "examples": "y"}], "examples is no list of texts"),
        ([{"name": "x", "summary": "x", "actions": 3}], "actions is neither a table nor a list"),
    ],
)
def test_a_file_that_is_no_catalogue_is_named_with_what_is_wrong(
    chalie: Chalie, tmp_path: Path, tools: Any, said: str
) -> None:
    file = tmp_path / "tools.json"
    file.write_text(json.dumps({"tools": tools}))
    refused = chalie("lint", str(file))
    assert refused.code == 3
    assert said in refused.err


def test_what_is_neither_file_nor_package_says_which(chalie: Chalie, tmp_path: Path) -> None:
    assert "there is no file or folder nowhere/tools.json" in chalie("lint", "nowhere/tools.json").err
    assert "so it is no project" in chalie("lint", str(tmp_path)).err
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n')
    assert "brings no abilities" in chalie("lint", str(tmp_path)).err


@pytest.mark.parametrize("project", ["skills", "plugins/chalie-policy-budget"])
def test_a_project_of_policies_or_playbooks_has_nothing_to_mend(chalie: Chalie, project: str) -> None:
    looked = chalie("lint", str(ROOT / project))
    assert looked.code == 0 and "nothing to mend in 0 tools" in looked.out


def test_a_project_is_repaired_in_place_and_looked_at_again(chalie: Chalie, tmp_path: Path) -> None:
    (tmp_path / "mod.py").write_text(
        packages.ability_source("sum_get", summary="Get a sum\u200b.", facts={"side_effect": packages.READ})
    )
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "sums"\nversion = "1"\n[project.entry-points."chalie.abilities"]\nx = "mod"\n'
    )
    assert chalie("lint", str(tmp_path)).code == 1
    mended = chalie("lint", str(tmp_path), "--fix")
    assert mended.code == 0
    assert mended.out.startswith(f"fixed invisible in {tmp_path / 'mod.py'} (1 line)\n")
    assert "\u200b" not in (tmp_path / "mod.py").read_text()
    usage = chalie("lint", "chalie-ability-dice", "--fix")
    assert usage.code == 2
    assert "--fix edits source: name the project's folder" in usage.err


def test_a_project_that_cannot_be_described_says_why(chalie: Chalie, tmp_path: Path) -> None:
    (tmp_path / "mod.py").write_text("raise RuntimeError('no such luck')\n")
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "sums"\n[project.entry-points."chalie.abilities"]\nx = "mod"\n'
    )
    refused = chalie("lint", str(tmp_path))
    assert refused.code == 5
    assert "no such luck" in refused.err


def test_a_rule_is_explained_and_a_mistyped_one_guessed(chalie: Chalie) -> None:
    assert "docs/lint-rules.md#look-alike" in chalie("lint", "--explain", "look-alike").out
    assert (
        "there is no rule 'lookalike'; did you mean look-alike?"
        in chalie("lint", "--explain", "lookalike").err
    )


@pytest.mark.parametrize("project", OWN, ids=lambda path: path.name)
def test_our_own_packages_have_nothing_to_mend(chalie: Chalie, project: Path) -> None:
    assert chalie("lint", str(project), "--strict", "--json").json["findings"] == []


def test_doctor_shows_a_given_catalogue_that_is_refused(chalie: Chalie, home: Path, tmp_path: Path) -> None:
    assert chalie("catalogue", "build", str(tmp_path), "--form", "json").code == 0
    given = tmp_path / "catalogue.json"
    given.write_text(given.read_text().replace("Roll dice.", "Roll a die."))
    (home / "config.toml").write_text(f'[catalogue]\nfile = "{given}"\n')
    told = chalie("doctor", "--json")
    assert told.code == 1
    [problem] = [row for row in told.json["problems"] if row["phase"] == "catalogue"]
    assert "was changed after it was built" in problem["reason"]
    assert problem["fix"] == "build it again: chalie catalogue build FOLDER"
