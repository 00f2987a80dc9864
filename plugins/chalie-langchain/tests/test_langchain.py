"""What can be told without LangChain: questions, answers, messages, and what is said where it is missing."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from chalie import AnswerKind, HoldView, SideEffect, ToolResult
from chalie.envelope import render
from hypothesis import given
from hypothesis import strategies as st

SOURCE = Path(__file__).parents[1] / "src" / "chalie_langchain"

spec = importlib.util.spec_from_file_location("chalie_langchain_decisions", SOURCE / "decisions.py")
assert spec is not None and spec.loader is not None
#: the module alone: its package imports LangChain.
decisions: ModuleType = importlib.util.module_from_spec(spec)
spec.loader.exec_module(decisions)

HOLD = HoldView(
    id="0badcafe",
    name="mail",
    dist="chalie-ability-mail",
    permission="mail.send",
    effect=SideEffect.EXTERNAL_SEND,
    arguments={"to": "ada"},
    channel="chat",
    principal="ada",
    conversation="monday",
    model_says="to greet",
    reasons=("nobody allowed it",),
    must_ask=False,
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["approve", "type"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "decisions", "x"]), inner)
    ),
    max_leaves=6,
)


def test_a_question_is_json_and_says_what_the_approval_binds_to() -> None:
    asked = json.loads(json.dumps(decisions.question(HOLD, "call-1", "it was no answer")))
    assert (asked["name"], asked["args"], asked["hold"]) == ("mail", {"to": "ada"}, "0badcafe")
    assert (asked["type"], asked["tool_call_id"]) == ("tool_approval", "call-1")
    assert asked["allowed_decisions"] == ["approve", "reject"]
    assert asked["problem"] == "it was no answer"
    assert "nobody allowed it" in asked["description"]


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        ({"type": "approve"}, AnswerKind.ONCE, ""),
        ({"type": "reject"}, AnswerKind.DECLINE, ""),
        ({"type": "reject", "message": "not today"}, AnswerKind.DECLINE, "not today"),
        ({"decisions": [{"type": "approve"}]}, AnswerKind.ONCE, ""),
    ],
)
def test_a_clear_answer_is_read(answer: object, kind: AnswerKind, message: str) -> None:
    assert decisions.read(answer) == decisions.Decision(kind, message)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        True,
        "yes",
        "approve",
        {},
        {"type": "APPROVE"},
        {"type": "edit", "edited_action": {"name": "mail", "args": {}}},
        {"type": "respond", "message": "sent"},
        {"decisions": []},
        {"type": "approve", "decisions": None},
        {"decisions": [{"type": "approve"}, {"type": "approve"}]},
        ["approve"],
    ],
    ids=repr,
)
def test_anything_else_is_no_answer_and_says_why(answer: object) -> None:
    assert isinstance(decisions.read(answer), str)


@given(ANYTHING)
def test_only_the_word_approve_is_a_yes(answer: object) -> None:
    found = decisions.read(answer)
    if isinstance(found, decisions.Decision) and found.kind is AnswerKind.ONCE:
        assert isinstance(answer, dict)
        one = answer["decisions"][0] if "decisions" in answer else answer
        assert one["type"] == "approve"


def said() -> Any:
    return SimpleNamespace(type="human")


def called(*names: str) -> Any:
    return SimpleNamespace(type="ai", tool_calls=[{"name": name, "args": {}, "id": "1"} for name in names])


def returned(name: str, content: object) -> Any:
    return SimpleNamespace(type="tool", name=name, content=content)


def found(*names: str) -> str:
    injected = [{"name": name, "summary": "does it"} for name in names]
    return render("find_tools", ToolResult.ok({"injected": injected, "not_found": []}))


def test_tools_found_or_called_in_the_exchange_are_listed_again() -> None:
    messages = [said(), called("find_tools"), returned("find_tools", found("dice", "mail")), called("dice")]
    assert decisions.names(messages) == ("find_tools", "dice", "mail")


def test_what_was_found_before_the_person_spoke_last_is_not() -> None:
    messages = [said(), returned("find_tools", found("dice")), said(), called("mail")]
    assert decisions.names(messages) == ("mail",)


@pytest.mark.parametrize(
    "content", ["", "no envelope", [{"type": "text"}], "[x(status=success)]\n{}\n[end:x]"]
)
def test_a_search_result_that_cannot_be_read_found_nothing(content: object) -> None:
    assert decisions.names([said(), returned("find_tools", content)]) == ()


def test_without_langchain_one_line_says_how_to_get_it() -> None:
    code = "import sys; sys.modules['langchain'] = None; import chalie_langchain"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=SOURCE.parent
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ImportError: chalie-langchain needs LangChain and LangGraph: "
        'python -m pip install "langchain>=1.4,<2"'
    )
