"""`lint --fix`: what is repaired is repaired exactly, and what cannot be proven safe is left as it is."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from chalie.authoring import sources
from chalie.authoring.fixes import repair
from chalie.authoring.lint import lint

PROJECT = """\
[project]
name = "chalie-ability-shifts"
version = "1.0"

[project.entry-points."chalie.abilities"]
shifts = "chalie_ability_shifts"
"""
SOURCE = """\
from chalie import Ability, SideEffect, ToolResult

BLANKS = "\\u200b"


class Shifts(Ability):
    side_effect = SideEffect.READ
    action_required = {}

    def name(self):
        return "shift_list"

    def summary(self):
        return "List the shifts of a week."

    def examples(self):
        return ["who works on Monday", "show the rota"]

    def search_tooltip(self):
        return "Shifts"

    def parameters(self):
        return {
            "type": "object",
            "properties": {
                "first_day": {"type": "string", "description": "The first day of the week."},
                "week": {"type": "integer"},
            },
            "required": ["first_day"],
        }

    def run(self, params):
        if "first_day" in params and params.get("first_day"):
            return ToolResult.ok(params["first_day"])
        return ToolResult.ok(self.param(params, "first_day", default=""))
"""
Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def project(source: str = SOURCE, more: str = "", **files: str) -> Path:
        folder = tmp_path / "shifts"
        (folder / "src").mkdir(parents=True)
        (folder / "pyproject.toml").write_text(PROJECT + more, encoding="utf-8")
        (folder / "src" / "chalie_ability_shifts.py").write_text(source, encoding="utf-8")
        for name, text in files.items():
            (folder / "src" / f"{name}.py").write_text(text, encoding="utf-8")
        return folder

    return project


def found(folder: Path) -> list[str]:
    report = lint([sources.project(folder, limit_s=20)])
    return [f"{finding.rule.id} {finding.where}" for finding in report.findings]


def repaired(folder: Path) -> list[tuple[str, int]]:
    report = lint([sources.project(folder, limit_s=20)])
    return [(", ".join(each.rules), each.lines) for each in repair(folder, report.findings)]


def source(folder: Path) -> str:
    return (folder / "src" / "chalie_ability_shifts.py").read_text(encoding="utf-8")


def test_a_parameter_is_renamed_where_every_use_of_it_can_be_followed(make: Make) -> None:
    folder = make()
    assert found(folder) == ["parameter-case parameter first_day"]
    assert repaired(folder) == [("parameter-case", 5)]
    assert source(folder) == SOURCE.replace("first_day", "firstDay")
    assert found(folder) == []


@pytest.mark.parametrize(
    "change",
    [
        ('return ToolResult.ok(params["first_day"])', "return ToolResult.ok(dict(params))"),
        ('return ToolResult.ok(params["first_day"])', "return ToolResult.ok(helped(**params))"),
        ("The first day of the week.", "The first day; first_day counts from 1."),
        ('BLANKS = "\\u200b"', "first_day = 1"),
        ('BLANKS = "\\u200b"', "# first_day is a date"),
        ('"week": {"type"', '"firstDay": {"type"'),
        ('return "shift_list"', 'name = "shift_list"\n        return name'),
    ],
    ids=["passed-on", "spread", "in-a-text", "a-name", "a-comment", "taken", "name-not-literal"],
)
def test_a_parameter_whose_uses_cannot_be_followed_is_left_as_it_is(
    make: Make, change: tuple[str, str]
) -> None:
    folder = make(SOURCE.replace(*change))
    before = source(folder)
    assert before != SOURCE
    assert repaired(folder) == []
    assert source(folder) == before


def test_a_parameter_that_another_file_names_is_left_as_it_is(make: Make) -> None:
    folder = make(other='USED = "first_day"\n')
    assert repaired(folder) == []
    (folder / "src" / "other.py").unlink()
    (folder / "tests").mkdir()
    (folder / "tests" / "test_it.py").write_text('CALL = {"first_day": "monday"}\n')
    assert repaired(folder) == []


def test_invisible_and_look_alike_letters_are_taken_out_of_descriptions_and_of_nothing_else(
    make: Make,
) -> None:
    odd = SOURCE.replace("first_day", "day").replace("the shifts of", "the sh\u0456fts\u200b of")
    odd = odd.replace("The first day", "The f\\u0456rst\\u00ad day").replace(
        "show the rota", "show\u2060 the rota"
    )
    folder = make(odd)
    assert found(folder) == [
        "summary-word summary",
        "invisible summary",
        "look-alike summary",
        "invisible example 2",
        "invisible description of parameter day",
        "look-alike description of parameter day",
    ]
    (folder / "src" / "chalie_ability_shifts.py").chmod(0o640)
    assert repaired(folder) == [("invisible, look-alike", 3)]
    assert source(folder) == SOURCE.replace("first_day", "day")
    assert stat.S_IMODE((folder / "src" / "chalie_ability_shifts.py").stat().st_mode) == 0o640
    assert found(folder) == []


def test_letters_that_the_code_works_with_are_not_touched(make: Make) -> None:
    odd = SOURCE.replace("first_day", "day").replace('"Shifts"', 'f"Shifts\u200b{len(BLANKS)}"')
    folder = make(odd)
    assert found(folder) == ["invisible search tooltip"]
    assert repaired(folder) == []
    assert source(folder) == odd


def test_a_stale_exception_is_removed_and_the_rest_of_the_file_stays(make: Make) -> None:
    kept = '\n[tool.chalie.lint.exceptions]\n"shift_list.first_day" = "the name of the rota program" # why\n'
    folder = make(more=kept + 'shift_old = "gone since a year"\n\n[tool.other]\nshift_old = "mine"\n')
    assert found(folder) == ["exception-stale pyproject.toml"]
    assert repaired(folder) == [("exception-stale", 1)]
    assert (folder / "pyproject.toml").read_text() == PROJECT + kept + '\n[tool.other]\nshift_old = "mine"\n'
    assert found(folder) == []


def test_nothing_is_left_beside_the_files_and_nothing_found_changes_nothing(make: Make) -> None:
    folder = make(SOURCE.replace("first_day", "day"))
    assert repaired(folder) == []
    folder_before = sorted(path.name for path in folder.rglob("*") if path.is_file())
    assert folder_before == ["chalie_ability_shifts.py", "pyproject.toml"]
