"""One text where a list of texts belongs is read as a list of one, unless it is JSON of something else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import evolve
from chalie.dispatch.arguments import Prepared, prepare
from chalie.pins import own_descriptors
from chalie.result import ToolResult
from hypothesis import given
from hypothesis import strategies as st


def schema(**properties: Any) -> Any:
    found = own_descriptors()["find_tools"]
    parameters = {"type": "object", "properties": properties, "additionalProperties": False}
    return evolve(found, parameters=parameters, aliases={}, hash="")


TEXTS = {"type": "array", "items": {"type": "string"}}


@pytest.mark.parametrize("name", ["find_tools", "find_skills"])
def test_a_search_for_one_bare_text_is_a_search_for_a_list_of_it(name: str) -> None:
    prepared = prepare(own_descriptors()[name], {"query": "check the weather"})
    assert isinstance(prepared, Prepared)
    assert prepared.arguments == {"query": ["check the weather"]}
    assert prepared.healed == ("read the text of query as a list of that one text",)


@given(st.text())
def test_a_text_becomes_a_list_of_it_and_never_where_it_is_a_json_array_itself(text: str) -> None:
    prepared = prepare(schema(words=TEXTS), {"words": text})
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, list):
        assert isinstance(prepared, ToolResult) or prepared.arguments == {"words": value}
    elif isinstance(prepared, Prepared):
        assert prepared.arguments == {"words": [text]}
        assert prepared.healed
    else:
        assert text.lstrip()[:1] in ("", "[", "{") or any(mark in text for mark in ",;|\n")


@given(st.lists(st.text(), max_size=4))
def test_a_json_array_of_texts_is_always_that_array(texts: list[str]) -> None:
    prepared = prepare(schema(words=TEXTS), {"words": json.dumps(texts)})
    assert isinstance(prepared, Prepared)
    assert prepared.arguments == {"words": texts}


@pytest.mark.parametrize(
    "wanted",
    [
        {"type": "array", "items": {"type": "integer"}},
        {"type": "array"},
        {"type": "object"},
        {"type": ["array", "object"], "items": {"type": "string"}},
    ],
)
def test_a_text_stays_a_text_where_no_list_of_texts_is_wanted(wanted: dict[str, Any]) -> None:
    refused = prepare(schema(words=wanted), {"words": "check the weather"})
    assert isinstance(refused, ToolResult) and refused.code == "invalid-param"


def test_a_text_stays_a_text_where_a_text_will_do() -> None:
    prepared = prepare(
        schema(words={"type": ["string", "array"], "items": {"type": "string"}}), {"words": "a"}
    )
    assert isinstance(prepared, Prepared) and prepared.arguments == {"words": "a"}


def test_what_is_wrong_with_the_call_as_a_whole_has_no_path() -> None:
    refused = prepare(schema(words=TEXTS), {"frob": 1})
    assert isinstance(refused, ToolResult) and refused.code == "invalid-param"
    assert "path" not in refused.meta
    inside = prepare(schema(words=TEXTS), {"words": [1]})
    assert isinstance(inside, ToolResult) and inside.meta["path"] == "words[0]"
