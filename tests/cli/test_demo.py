"""The demo: done only where every step did what it should, else the step that did not."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chalie.cli import exits
from chalie.cli.demo import FIRST, SECOND, Step, wrong
from chalie.envelope import render
from chalie.result import ToolResult

Chalie = Callable[..., Any]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def demo_packages(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The weather and memory of this checkout, installed as editable packages are."""
    from tests.support import packages

    for name, module in (("weather", "chalie_ability_weather"), ("memory", "chalie_ability_memory")):
        project = ROOT / "plugins" / f"chalie-ability-{name}" / "src"
        files = {
            str(path.relative_to(project)): path.read_bytes()
            for path in project.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        package = packages.Package(
            f"chalie-ability-{name}", files, {"chalie.abilities": {name: f"{module}.ability"}}
        )
        packages.install(site, package)
        for loaded in [each for each in sys.modules if each.split(".")[0] == module]:
            monkeypatch.delitem(sys.modules, loaded)  # put back afterwards: other tests hold its classes


def step(**more: Any) -> Step:
    return Step("find_tools", {"query": ["weather"]}, **more)


def test_a_step_is_wrong_where_it_errs_searches_with_less_or_shows_something_else() -> None:
    good = ToolResult.ok({"injected": [{"name": "weather"}]})
    assert wrong(step(shows='"name":"weather"'), render("find_tools", good)) == []
    (line,) = wrong(step(shows='"name":"weather"'), render("find_tools", ToolResult.ok({"injected": []})))
    assert 'find_tools {"query": ["weather"]} should have answered with "name":"weather"' in line
    lost = ToolResult.ok({"injected": [{"name": "weather"}]}, degraded="prose")
    (line,) = wrong(step(), render("find_tools", lost))
    assert "searched without prose" in line and "chalie doctor" in line
    (line,) = wrong(step(), render("find_tools", ToolResult.error("no luck", code="unhandled-exception")))
    assert "answered unhandled-exception: no luck" in line


def test_every_search_and_recall_of_the_demo_says_what_it_has_to_show() -> None:
    steps = [each for exchange in (*FIRST, *SECOND) for each in exchange.steps if each.tool]
    assert all(each.shows for each in steps if each.arguments.get("action") != "store")


@pytest.mark.usefixtures("demo_packages")
def test_the_demo_fails_where_search_by_meaning_is_broken(
    chalie: Chalie, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHALIE_MODEL", os.devnull + "/no-model")
    done = chalie("demo")
    assert done.code == exits.FAILED, done.out
    assert "done:" not in done.out
    failed = [line for line in done.out.splitlines() if "failed: " in line]
    query = json.dumps(dict(FIRST[0].steps[0].arguments))
    assert any(query in line and "searched without" in line for line in failed)
    assert any(query in line and 'should have answered with "name":"weather"' in line for line in failed)
