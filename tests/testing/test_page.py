"""The page about testing shows tests that pass, and the pages show abilities that keep the contract."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from chalie.testing.bench import Bench
from chalie.testing.contract import CHECKS
from chalie.testing.project import subject

from tests.support import packages
from tests.support import wheels as building

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_test_of_the_page_passes(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "tests").mkdir(parents=True)
    (dice,) = [
        block for block in BLOCK.findall((ROOT / "README.md").read_text()) if "class Dice(Ability)" in block
    ]
    (project / "chalie_ability_dice.py").write_text(dice)
    (project / "pyproject.toml").write_text(
        '[project]\nname = "chalie-ability-dice"\nversion = "1.0"\n'
        '[project.entry-points."chalie.abilities"]\ndice = "chalie_ability_dice"\n'
    )
    shown = BLOCK.findall((ROOT / "docs" / "testing-an-ability.md").read_text())
    for number, block in enumerate(shown):
        (project / "tests" / f"test_{number}.py").write_text(block)
    done = building.checked(
        [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "-W", "ignore"],
        cwd=project,
        env=building.clean_environment(tmp_path / "home"),
    )
    passed = {line.split(" ")[1] for line in done.stdout.splitlines() if line.startswith("PASSED")}
    assert {name.split("::")[0] for name in passed} == {f"tests/test_{n}.py" for n in range(len(shown))}


def test_the_abilities_that_the_pages_show_keep_the_contract(site: Path, tmp_path: Path) -> None:
    shown = [
        block
        for page in ("README.md", "docs/writing-an-ability.md")
        for block in BLOCK.findall((ROOT / page).read_text())
        if "(Ability)" in block
    ]
    package = packages.Package(
        "chalie-ability-shown",
        files={f"shown_{number}.py": block for number, block in enumerate(shown)},
        entry_points={"chalie.abilities": {f"shown{n}": f"shown_{n}" for n in range(len(shown))}},
    )
    packages.install(site, package)
    bench = Bench(subject(package.dist), tmp_path)
    found = {
        check: [str(fault) for fault in run(bench)]
        for check, (groups, run) in CHECKS.items()
        if "chalie.abilities" in groups
    }
    assert {check: faults for check, faults in found.items() if faults} == {}
    assert {call.ability for call in bench.called()} == {"dice", "notes", "roller"}
