"""The contract that every ability, policy and package of playbooks keeps; one line holds a package to it.

    from chalie.testing.contract import contract

    test_contract = contract("chalie-ability-dice")

gives a test item for each check that applies, as `test_contract[examples-find-it]`. A failure lists every
fault, each with the edit that mends it. Calls are made in a fresh home, in a process of their own that
reaches no network.

| check | what it holds a package to |
|---|---|
| `is-described` | its facts are read, twice alike, and are complete: six to eight examples |
| `model-apis-accept-it` | no model API refuses a request for one of its tools (see `model_apis`) |
| `examples-find-it` | each example finds its ability among everything installed, within the first three |
| `actions-answer` | each action answers plain arguments, and each missing one, with a proper result |
| `hostile-arguments` | nothing that a model could send makes it crash, hang or return something else |
| `import-is-quick` | importing it takes under 100 ms of processor time |
| `import-leaves-no-mark` | importing it writes no file, starts no process, opens no connection |
| `hooks-answer` | its hooks load and answer any call with what they may return |
| `playbooks-are-read` | each playbook is read without a complaint |
| `playbooks-are-found` | its name and its description find it within the first three |
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from ..catalogue.descriptor import EntryPoint
from ..errors import ChalieError
from . import abilities, imports, playbooks, policies
from .bench import Bench, Fault
from .project import Project, project_above, site_of, subject

__all__ = ["CHECKS", "contract"]

_Check = Callable[[Bench], list[Fault]]
_ABILITIES: Final = frozenset({"chalie.abilities"})
_HOOKS: Final = frozenset({"chalie.policies", "chalie.plugins"})
_SKILLS: Final = frozenset({"chalie.skills"})

#: name -> (entry-point groups it is for, the check).
CHECKS: Final[Mapping[str, tuple[frozenset[str], _Check]]] = {
    "is-described": (_ABILITIES, abilities.described),
    "model-apis-accept-it": (_ABILITIES, abilities.accepted),
    "examples-find-it": (_ABILITIES, abilities.found),
    "actions-answer": (_ABILITIES, abilities.answering),
    "hostile-arguments": (_ABILITIES, abilities.withstanding),
    "import-is-quick": (_ABILITIES | _HOOKS, imports.quick),
    "import-leaves-no-mark": (_ABILITIES | _HOOKS, imports.traceless),
    "hooks-answer": (_HOOKS, policies.answering),
    "playbooks-are-read": (_SKILLS, playbooks.readable),
    "playbooks-are-found": (_SKILLS, playbooks.found),
}

#: benches by package and folder, so that the checks of one package share what was found out.
_benches: dict[tuple[str, Path], Bench] = {}


def contract(dist: str) -> Callable[..., None]:
    """Return a test that holds a package to the contract, an item for each check.

    Args:
        dist: the distribution's name: an installed one, else the project that the calling file belongs to.

    Raises:
        ChalieError: `unknown-package`: there is neither.
    """
    caller = sys._getframe(1).f_globals.get("__file__") or __file__
    project = project_above(Path(caller))
    groups = {point.group for point in _entry_points(dist, project)}
    names = [name for name, (wanted, _) in CHECKS.items() if wanted & groups]

    @pytest.mark.parametrize("check", names)
    def test_contract(
        check: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cache = tmp_path_factory.getbasetemp()
        bench = _bench(dist, project, cache, monkeypatch)
        faults = CHECKS[check][1](bench)
        if faults:
            lines = "\n".join(map(str, faults))
            pytest.fail(f"{bench.dist} does not keep the contract, {check!r}:\n{lines}", pytrace=False)

    return test_contract


def _entry_points(dist: str, project: Project | None) -> tuple[EntryPoint, ...]:
    try:
        return subject(dist).entry_points
    except ChalieError:
        from ..config import normal_dist

        if project is None or project.dist != normal_dist(dist):
            raise
        return tuple(
            EntryPoint(project.dist, group, name, value)
            for group, lines in project.entry_points.items()
            for name, value in lines.items()
        )


def _bench(dist: str, project: Project | None, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    try:
        found = subject(dist)
    except ChalieError:
        if project is None:
            raise
        for entry in reversed(site_of(project, cache / f"site-{project.dist}")):
            monkeypatch.syspath_prepend(entry)
        found = subject(dist)
    return _benches.setdefault((found.name, found.path), Bench(found, cache))
