"""Authors' mistakes: each is told with the class, the fact, the line it is on and the edit that mends it."""

from __future__ import annotations

from pathlib import Path

import pytest
from chalie.catalogue.describe import Described, describe
from chalie.catalogue.descriptor import Problem
from chalie.catalogue.installed import scan
from chalie.config import import_paths

from tests.support import packages

HEAD = "from chalie import Ability, SideEffect, ToolResult\n"
PARTS = {
    "name": '    def name(self): return "dice"\n',
    "summary": '    def summary(self): return "Roll dice."\n',
    "examples": '    def examples(self): return ["a", "b", "c", "d", "e", "f"]\n',
    "search_tooltip": '    def search_tooltip(self): return "Rolling"\n',
    "parameters": '    def parameters(self): return {"type": "object", "properties": {}}\n',
    "run": "    def run(self, params): return ToolResult.ok(1)\n",
}
TYPES = "array, boolean, integer, null, number, object, string"


def dice(base: str = "(Ability)", **changed: str | None) -> str:
    """Return the source of a dice ability, some of its parts replaced or (None) left out."""
    parts = PARTS | changed
    return f"{HEAD}class Dice{base}:\n" + "".join(part for part in parts.values() if part)


def properties(schema: str) -> str:
    return f'    def parameters(self): return {{"type": "object", "properties": {schema}}}\n'


MISTAKES = {
    "lacks": (dice(summary=None), ["Dice lacks summary()"], "add summary() to the class", 2),
    "lacks-two": (dice(summary=None, run=None), ["Dice lacks summary() and run()"], "add summary() and", 2),
    "no-base": (
        dice(base=""),
        ["Dice has name() and run() but does not inherit from Ability"],
        "class Dice(Ability)",
        1,
    ),
    "attribute": (
        dice(name='    name = "dice"\n'),
        ["name of Dice is the value 'dice', and must be a method"],
        'def name(self): return "…"',
        3,
    ),
    "schema-attribute": (
        dice(parameters="    parameters = {}\n"),
        ["parameters of Dice is the value {}, and must be a method"],
        "def parameters(self)",
        7,
    ),
    "bad-name": (
        dice(name='    def name(self): return "Dice-Roller"\n'),
        ["name() of", ":Dice", "Dice-Roller is no name for an ability"],
        "1 to 64 of a-z, 0-9 and _",
        3,
    ),
    "bad-type": (
        dice(parameters=properties('{"count": {"type": "int"}}')),
        ["of dice (", ":Dice)", 'the type of the parameter count is "int"'],
        f'write "integer"; the types are {TYPES}',
        7,
    ),
    "bad-types": (
        dice(parameters=properties('{"type": {"type": ["string", "frob"]}}')),
        ['the type of the parameter type is "frob"'],
        f"the types are {TYPES}",
        7,
    ),
    "bad-effect": (
        dice(name='    side_effect = "wirte"\n' + PARTS["name"]),
        ["side_effect of dice", "is 'wirte'"],
        "read, computation, write, connect, external_write, external_send, destructive",
        3,
    ),
    "raises": (
        dice(examples='    def examples(self):\n        return ["a"][7]\n'),
        ["IndexError: list index out of range"],
        "edit ",
        6,
    ),
    "import": (HEAD + "x = 1\nraise RuntimeError('no such luck')\n", ["no such luck"], "edit ", 3),
    "syntax": (HEAD + "class Dice(Ability)\n    pass\n", ["SyntaxError"], "edit ", 2),
}  # fmt: skip


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Described | Problem]:
    """Every mistake in an editable package of its own, all read together."""
    site, projects = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("projects")
    folders = {}
    for name, (source, _, _, _) in MISTAKES.items():
        module = f"mistake_{name.replace('-', '_')}"
        package = packages.Package(name, {f"{module}.py": source}, {"chalie.abilities": {"dice": module}})
        packages.install_editable(site, projects / name, package)
        folders[name] = [str(projects / name)]
    paths = [str(site), *import_paths()]
    found = describe(scan([str(site)]).distributions, limit_s=20, paths=paths, folders=folders)
    return {answer.dist: answer for answer in found if answer is not None}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_with_its_class_its_line_and_the_edit_that_mends_it(
    answers: dict[str, Described | Problem], name: str
) -> None:
    problem = answers[name]
    _, said, edit, line = MISTAKES[name]
    assert isinstance(problem, Problem)
    for text in said:
        assert text in problem.reason
    assert edit in problem.fix
    where = f"{name}/mistake_{name.replace('-', '_')}.py"
    assert (f"{where}:{line}" if line > 1 else where) in problem.reason
    assert f"edit {problem.reason.rpartition(' (')[2].partition(', of ')[0]}" in problem.fix
    assert ".dist-info" in problem.reason
    assert "\n" not in problem.reason


def test_an_author_who_made_no_mistake_hears_of_none(tmp_path: Path) -> None:
    package = packages.Package("good", {"good.py": dice()}, {"chalie.abilities": {"dice": "good"}})
    packages.install(tmp_path, package)
    distributions = scan([str(tmp_path)]).distributions
    paths = [str(tmp_path), *import_paths()]
    (answer,) = [one for one in describe(distributions, limit_s=20, paths=paths) if one is not None]
    assert isinstance(answer, Described)


def test_the_mistake_in_an_installed_package_is_its_authors_to_mend(tmp_path: Path) -> None:
    source = dice(summary=None)
    package = packages.Package("theirs", {"theirs.py": source}, {"chalie.abilities": {"dice": "theirs:Dice"}})
    packages.install(tmp_path, package)
    distributions = scan([str(tmp_path)]).distributions
    paths = [str(tmp_path), *import_paths()]
    (answer,) = [one for one in describe(distributions, limit_s=20, paths=paths) if one is not None]
    assert isinstance(answer, Problem)
    assert "its author has to edit" in answer.fix and "add summary() to the class" in answer.fix
    assert "python -m pip install --upgrade theirs" in answer.fix
