"""What can be told without the Agents SDK: what a stored run says, and what is said where it is missing."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from chalie import ToolResult
from chalie.envelope import render
from hypothesis import given
from hypothesis import strategies as st

SOURCE = Path(__file__).parents[1] / "src" / "chalie_openai_agents"

spec = importlib.util.spec_from_file_location("chalie_openai_agents_items", SOURCE / "items.py")
assert spec is not None and spec.loader is not None
#: the module alone: its package imports the SDK.
items: ModuleType = importlib.util.module_from_spec(spec)
spec.loader.exec_module(items)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("function_call_output"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "name", "output", "original_input"]), inner)
    ),
    max_leaves=10,
)


def called(name: str) -> dict[str, Any]:
    return {"type": "function_call", "name": name, "call_id": "1", "arguments": "{}"}


def returned(output: object) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": "1", "output": output}


def found(*names: str, by: str = "find_tools") -> str:
    injected = [{"name": name, "summary": "does it"} for name in names]
    return render(by, ToolResult.ok({"injected": injected, "not_found": []}))


def test_tools_found_or_called_in_the_run_are_listed_again() -> None:
    state = {
        "generated_items": [{"raw_item": called("find_tools")}, {"raw_item": returned(found("dice", "mail"))}]
    }
    assert items.names({**state, "last": [called("dice")]}) == ("find_tools", "dice", "mail")


def test_what_the_run_was_asked_with_finds_nothing() -> None:
    assert items.names({"original_input": [called("mail"), returned(found("dice"))]}) == ()


@pytest.mark.parametrize(
    "output",
    [
        "",
        None,
        "no envelope",
        "[find_tools(status=success)]\n{}\n[end:find_tools]",
        found("mail", by="notes"),
    ],
)
def test_an_output_that_is_no_search_result_finds_nothing(output: object) -> None:
    assert items.names({"generated_items": [returned(output)]}) == ()


@given(st.dictionaries(st.text(max_size=5), JSON))
def test_no_stored_state_is_too_odd_to_be_read(state: dict[str, Any]) -> None:
    assert all(isinstance(name, str) for name in items.names(state))


def test_without_the_sdk_one_line_says_how_to_get_it() -> None:
    code = "import sys; sys.modules['agents'] = None; import chalie_openai_agents"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=SOURCE.parent
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ImportError: chalie-openai-agents needs the Agents SDK: "
        'python -m pip install "openai-agents>=0.24,<1"'
    )
