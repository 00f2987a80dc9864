"""What can be told without Pydantic AI: the mapping of messages, and what is said where it is missing."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from chalie import ToolResult
from chalie.envelope import render

SOURCE = Path(__file__).parents[1] / "src" / "chalie_pydantic_ai"


@pytest.fixture(scope="module")
def history() -> ModuleType:
    """The module alone: its package imports Pydantic AI."""
    spec = importlib.util.spec_from_file_location("chalie_pydantic_ai_history", SOURCE / "history.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def said() -> Any:
    return SimpleNamespace(part_kind="user-prompt", content="hello")


def called(name: str, number: str = "1", **arguments: Any) -> Any:
    return SimpleNamespace(
        part_kind="tool-call", tool_name=name, tool_call_id=number, args_as_dict=lambda: arguments
    )


def returned(name: str, content: str, number: str = "1", outcome: str = "success") -> Any:
    return SimpleNamespace(
        part_kind="tool-return", tool_name=name, content=content, tool_call_id=number, outcome=outcome
    )


def messages(*parts: Any) -> list[Any]:
    return [SimpleNamespace(parts=[part]) for part in parts]


def found(*names: str) -> str:
    injected = [{"name": name, "summary": "does it"} for name in names]
    return render("find_tools", ToolResult.ok({"injected": injected, "not_found": []}))


def test_tools_found_or_called_in_the_exchange_are_listed_again(history: ModuleType) -> None:
    parts = [said(), called("find_tools"), returned("find_tools", found("dice", "mail")), called("dice")]
    assert history.names(messages(*parts)) == ("find_tools", "dice", "mail")


def test_what_was_found_before_the_person_spoke_last_is_not(history: ModuleType) -> None:
    parts = [said(), called("find_tools"), returned("find_tools", found("dice")), said(), called("mail")]
    assert history.names(messages(*parts)) == ("mail",)


@pytest.mark.parametrize(
    "content", ["", "no envelope", "[x(status=success)]\n{}\n[end:x]", found().replace("{", "")]
)
def test_a_search_result_that_cannot_be_read_found_nothing(history: ModuleType, content: str) -> None:
    assert history.names(messages(said(), returned("find_tools", content))) == ()


def test_another_tools_result_finds_nothing(history: ModuleType) -> None:
    assert history.names(messages(said(), returned("notes", found("mail")))) == ()


def test_calls_that_nothing_was_returned_for_are_told_with_their_arguments(history: ModuleType) -> None:
    parts = [said(), called("mail", "7", to="eve"), called("dice", "8"), returned("dice", "6", "8")]
    assert history.unfinished(messages(*parts)) == {"7": ("mail", {"to": "eve"})}
    assert history.unfinished(messages(*parts, returned("mail", "sent", "7"))) == {}
    assert history.unfinished(messages(*parts, said())) == {}, "the person went on without it"


def test_denied_calls_are_told(history: ModuleType) -> None:
    parts = [said(), returned("mail", "no", "7", "denied"), returned("dice", "6", "8")]
    assert history.denied(messages(*parts)) == {"7"}


def test_without_pydantic_ai_one_line_says_how_to_get_it() -> None:
    code = "import sys; sys.modules['pydantic_ai'] = None; import chalie_pydantic_ai"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=SOURCE.parent
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        'ImportError: chalie-pydantic-ai needs Pydantic AI: python -m pip install "pydantic-ai-slim>=2.60,<3"'
    )
