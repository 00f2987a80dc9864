"""Hundreds of other distributions beside ours: who looks at them, how often, and what is imported."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from .support import packages
from .support import wheels as building

ALL, OURS = 800, 40


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """What a process did that built, searched and called, with 800 distributions, 40 of them ours."""
    folder = tmp_path_factory.mktemp("many")
    site = folder / "site"
    for number in range(ALL - OURS):
        points = {"console_scripts": {f"other{number}": f"other_{number}:main"}} if number % 3 else {}
        packages.install(site, packages.Package(f"other-{number}", {f"other_{number}.py": "1 / 0\n"}, points))
    tools = list(packages.many(OURS))
    for package in tools:
        packages.install(site, package)
    ((tool, _),) = tools[7].entry_points[packages.GROUP].items()
    paths = os.pathsep.join([str(site), str(Path(__file__).parents[1])])
    env = building.clean_environment(folder / "home", PYTHONPATH=paths)
    words = [str(folder / "home"), str(site), tool, tools[7].dist]
    done = building.checked([sys.executable, "-m", "tests.scanned_host", *words], env=env)
    return json.loads(done.stdout), site


def looked(told: tuple[dict[str, Any], Path], stage: str) -> Counter[str]:
    return Counter(told[0][stage]["looked"])


def test_a_build_reads_the_entry_points_of_each_distribution_once_and_more_only_of_ours(
    told: tuple[dict[str, Any], Path],
) -> None:
    seen, site = looked(told, "build"), told[1]
    others = {path: times for path, times in seen.items() if "/other_" in path}
    assert others == {str(path): 1 for path in site.glob("other_*.dist-info/entry_points.txt")}
    ours = [str(path) for path in site.glob("chalie_*.dist-info/entry_points.txt")]
    assert len(ours) == OURS
    # to be understood, and once more as one of the files that the package's hash is over
    assert {seen[path] for path in ours} == {2}
    # the distributions in it, and the listing by which a change of it is known
    assert seen["os.scandir"] == 2


@pytest.mark.parametrize("stage", ["open", "search"])
def test_opening_and_searching_scan_nothing_and_import_no_tool(
    told: tuple[dict[str, Any], Path], stage: str
) -> None:
    assert looked(told, stage) == {}
    assert told[0][stage]["modules"] == []


def test_a_call_imports_the_tool_that_is_called_and_no_other(told: tuple[dict[str, Any], Path]) -> None:
    assert "status=success" in told[0]["said"]
    assert told[0]["build"]["modules"] == []
    assert len(told[0]["call"]["modules"]) == 1
    seen = looked(told, "call")
    assert seen["os.scandir"] + seen["os.listdir"] <= 1  # the import system's own look for the module
    assert all(
        "archive_" in path for path in seen if path.endswith(("entry_points.txt", "METADATA", "RECORD"))
    )
