"""The packages of this checkout beside each other: none wins another's examples."""

from __future__ import annotations

from pathlib import Path

import pytest
from chalie.testing.bench import Bench
from chalie.testing.contract import CHECKS
from chalie.testing.project import project_above, site_of, subject

from tests.support import wheels as building


def test_every_example_finds_its_own_tool_among_all_the_packages_of_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [project_above(folder / "pyproject.toml") for folder in building.projects()[1:]]
    ours = {one.dist: one for one in found if one is not None}
    for dist, project in ours.items():
        for entry in reversed(site_of(project, tmp_path / dist)):
            monkeypatch.syspath_prepend(entry)
    asked = 0
    for dist in ours:
        bench = Bench(subject(dist), tmp_path)
        groups = {point.group for point in bench.distribution.entry_points}
        for check in ("examples-find-it", "playbooks-are-found"):
            wanted, run = CHECKS[check]
            if wanted & groups:
                asked += 1
                assert [str(fault) for fault in run(bench)] == []
    assert asked >= 6
