"""The generator of arguments and the rules of the model APIs."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from chalie.calls import SideEffect
from chalie.catalogue.descriptor import Descriptor
from chalie.testing.arguments import MOST_HOSTILE, attempts, fitting
from chalie.testing.model_apis import notes, refusals
from hypothesis import given
from hypothesis import strategies as st

leaves = st.one_of(
    st.sampled_from(
        [
            {"type": "boolean"},
            {"type": "null"},
            {"type": "string", "format": "date"},
            {"enum": ["red", 7, None]},
            {"const": {"a": 1}},
            {"type": ["string", "null"], "minLength": 4},
            {"type": "string", "pattern": "^[a-z]+[0-9]$"},
        ]
    ),
    st.integers(-50, 50).map(lambda n: {"type": "integer", "minimum": n, "maximum": n + 3}),
    st.integers(0, 300).map(lambda n: {"type": "string", "minLength": n, "maxLength": n + 2}),
    st.integers(2, 9).map(lambda n: {"type": "number", "multipleOf": n, "minimum": n}),
)
schemas = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda item, n: {"type": "array", "items": item, "minItems": n}, inner, st.integers(0, 3)),
        st.builds(
            lambda parts: {"type": "object", "properties": parts, "required": sorted(parts)},
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        ),
        st.builds(lambda *parts: {"anyOf": list(parts)}, inner, inner),
    ),
    max_leaves=6,
)


@given(schemas)
def test_a_plain_value_fits_its_schema_and_is_the_same_each_time(schema: dict[str, Any]) -> None:
    made = fitting(schema, schema)
    assert jsonschema_rs.is_valid(schema, made)
    assert repr(fitting(schema, schema)) == repr(made)


def test_a_schema_that_holds_itself_comes_to_an_end() -> None:
    root = {
        "$defs": {
            "tree": {
                "type": "object",
                "properties": {"left": {"$ref": "#/$defs/tree"}, "name": {"type": "string"}},
                "required": ["name"],
            }
        }
    }
    assert fitting({"$ref": "#/$defs/tree"}, root) == {"name": "text"}


def descriptor(parameters: dict[str, Any], **facts: Any) -> Descriptor:
    return Descriptor("d", "1", "d:D", "tool", "s", ("e",), "t", parameters, "tool", "1", **facts)


def test_no_ability_is_called_without_bound_and_each_is_called_alike() -> None:
    wide = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(30)}}
    made = list(attempts(descriptor(wide, actions={"a": SideEffect.READ, "b": SideEffect.WRITE})))
    hostile = [one for one in made if one.kind == "hostile"]
    assert len(hostile) == MOST_HOSTILE
    assert repr(made) == repr(
        list(attempts(descriptor(wide, actions={"a": SideEffect.READ, "b": SideEffect.WRITE})))
    )
    assert {label.split(" = ")[0] for label in (one.label for one in hostile) if " = " in label} == set(
        wide["properties"]  # type: ignore[arg-type]
    ), "every parameter has its turn"


def said(parameters: dict[str, Any], name: str = "tool", summary: str = "s") -> list[tuple[str, str]]:
    return [(one.api, one.reason) for one in refusals(name, summary, parameters)]


OBJECT: dict[str, Any] = {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        (OBJECT, []),
        ({"type": "object", "anyOf": [{"properties": {"a": {"type": "string"}}}]}, []),  # shown flat
        (
            {"type": "object", "properties": {"a": {"type": "object", "properties": {"b c": {}}}}},
            [("Anthropic", "the property 'b c' has other characters than letters, digits, _, . and -")],
        ),
        (
            {"type": "object", "properties": {"a": {"anyOf": [{"type": "array"}, {"type": "null"}]}}},
            [("OpenAI, Gemini", "an array has no items")],
        ),
        (
            {"type": "object", "properties": {"a": {"enum": ["", "x"]}}},
            [("Gemini", "a value of the enum is empty")],
        ),
    ],
)
def test_what_an_api_refuses_is_found_at_any_depth(
    parameters: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert said(parameters) == expected


def test_a_name_and_a_summary_are_checked_too() -> None:
    assert said(OBJECT, name="a.b") == [("Anthropic, OpenAI", "'a.b' is no name there")]
    assert said(OBJECT, name="a" * 64) == []
    assert said(OBJECT, summary="x" * 1025) == [("OpenAI", "1025 characters are over 1024")]


def test_strict_modes_are_notes() -> None:
    strict = {
        "type": "object",
        "properties": {"a": {"type": ["string", "null"]}},
        "required": ["a"],
        "additionalProperties": False,
    }
    assert [(one.api, one.reason) for one in notes(strict)] == [("Gemini parameters", "type is a list")]
    loose = {"type": "object", "properties": {"a": {"enum": [1]}, "b": {"not": {}}}}
    assert [(one.api, one.reason) for one in notes(loose)] == [
        ("OpenAI strict", "additionalProperties is not false"),
        ("OpenAI strict", "a, b not under required"),
        ("OpenAI strict", "not is not supported"),
        ("Gemini parameters", "an enum holds other values than texts"),
    ]
    wide = {"type": "object", "properties": {"a": {"enum": [f"v{n}" for n in range(1001)]}}}
    assert "1001 enum values, over 1000" in [one.reason for one in notes(wide)]
