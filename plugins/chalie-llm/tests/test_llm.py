"""What can be told without llm: what messages say, and what is said where it is missing."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from chalie import ToolResult
from chalie.envelope import render

PROJECT = Path(__file__).parents[1]
SOURCE = PROJECT / "src" / "chalie_llm"

spec = importlib.util.spec_from_file_location("chalie_llm_history", SOURCE / "history.py")
assert spec is not None and spec.loader is not None
#: the module alone: its package imports llm.
history: ModuleType = importlib.util.module_from_spec(spec)
spec.loader.exec_module(history)


def message(role: str, *parts: Any) -> Any:
    return SimpleNamespace(role=role, parts=list(parts))


def called(name: str) -> Any:
    return message("assistant", SimpleNamespace(text="let me see"), SimpleNamespace(name=name, arguments={}))


def returned(name: str, output: object) -> Any:
    return message("tool", SimpleNamespace(name=name, output=output))


def found(*names: str) -> str:
    injected = [{"name": name, "summary": "does it"} for name in names]
    return render("find_tools", ToolResult.ok({"injected": injected, "not_found": []}))


SAID = message("user", SimpleNamespace(text="hello"))


def test_tools_found_or_called_in_the_exchange_are_listed_again() -> None:
    messages = [SAID, called("find_tools"), returned("find_tools", found("dice", "mail")), called("dice")]
    assert history.names(messages) == ("find_tools", "dice", "mail")


def test_what_was_found_before_the_person_spoke_last_is_not() -> None:
    assert history.names([SAID, returned("find_tools", found("dice")), SAID, called("mail")]) == ("mail",)


@pytest.mark.parametrize("output", ["", None, "no envelope", "[x(status=success)]\n{}\n[end:x]"])
def test_a_search_result_that_cannot_be_read_found_nothing(output: object) -> None:
    assert history.names([SAID, returned("find_tools", output)]) == ()


def test_another_tools_result_finds_nothing() -> None:
    assert history.names([SAID, returned("notes", found("mail"))]) == ()


def test_the_package_is_a_plugin_of_llm() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["llm"] == {"chalie": "chalie_llm"}


def test_without_llm_one_line_says_how_to_get_it() -> None:
    code = "import sys; sys.modules['llm'] = None; import chalie_llm"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=SOURCE.parent
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        'ImportError: chalie-llm needs llm: python -m pip install "llm>=0.36,<1"'
    )
