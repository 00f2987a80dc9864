"""What changed between two catalogues: whatever breaks a call that was right is called breaking."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs
import pytest
from attrs import evolve
from chalie.authoring.comparison import compare
from chalie.authoring.narrowing import narrowed
from chalie.calls import SideEffect
from chalie.catalogue.descriptor import Descriptor
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.authoring.documents import document_of
from tests.authoring.subjects import subject

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
READ, WRITE = SideEffect.READ, SideEffect.WRITE


def tool(parameters: Mapping[str, Any] | None = None, **facts: Any) -> Descriptor:
    made = subject("note_add", "Add a note.", parameters=parameters or {"type": "object", "properties": {}})
    return evolve(made.descriptor, **facts).sealed()


def changes(before: Descriptor, after: Descriptor) -> list[tuple[bool, str]]:
    found = compare(document_of([before]), document_of([after]))
    return [(change.breaking, change.what) for change in found]


def parameter(**schemas: Any) -> dict[str, Any]:
    return {"type": "object", "properties": schemas}


BREAKING = {
    "gone": ({"a": TEXT}, {}, "a is gone"),
    "renamed": ({"a": TEXT}, {"b": TEXT}, "a is gone, or called b now"),
    "type": ({"a": {"type": ["string", "integer"]}}, {"a": TEXT}, "a: type integer or string -> string"),
    "any-to-text": ({"a": {}}, {"a": TEXT}, "a: type any -> string"),
    "number-to-integer": ({"a": {"type": "number"}}, {"a": {"type": "integer"}}, "a: type number -> integer"),
    "choice-gone": ({"a": {"enum": ["x", "y"]}}, {"a": {"enum": ["x"]}}, 'a: "y" is no longer taken'),
    "choices-new": ({"a": TEXT}, {"a": {**TEXT, "enum": ["x"]}}, 'a: only "x" is taken'),
    "minimum": ({"a": {"minimum": 1}}, {"a": {"minimum": 2}}, "a: minimum 1 -> 2"),
    "maximum": ({"a": {"maximum": 9}}, {"a": {"maximum": 8}}, "a: maximum 9 -> 8"),
    "bound-new": ({"a": TEXT}, {"a": {**TEXT, "maxLength": 9}}, "a: maxLength null -> 9"),
    "pattern": ({"a": {"pattern": "a"}}, {"a": {"pattern": "b"}}, 'a: pattern "a" -> "b"'),
    "format": ({"a": TEXT}, {"a": {**TEXT, "format": "date"}}, 'a: format null -> "date"'),
    "default": ({"a": {"default": 1}}, {"a": {"default": 2}}, "a: default 1 -> 2"),
    "unique": ({"a": {}}, {"a": {"uniqueItems": True}}, "a: uniqueItems null -> true"),
    "in-a-list": (
        {"a": {"items": TEXT}},
        {"a": {"items": {"type": "integer"}}},
        "a[]: type string -> integer",
    ),
    "nested": ({"a": parameter(b=TEXT)}, {"a": parameter()}, "a.b is gone"),
    "any-of": (
        {"a": {"anyOf": [TEXT]}},
        {"a": {"anyOf": []}},
        "a: anyOf is another one, and cannot be compared",
    ),
    "reference": (
        {"a": {"$ref": "#/x", "type": "string"}},
        {"a": {"$ref": "#/x", "type": "integer"}},
        "a: what it is bound by is written in another way, and cannot be compared",
    ),
}
COMPATIBLE = {
    "optional": ({}, {"a": TEXT}, "a is new"),
    "wider": ({"a": {"type": "integer"}}, {"a": {"type": "number"}}, "a: type integer -> number"),
    "choice-new": ({"a": {"enum": ["x"]}}, {"a": {"enum": ["x", "y"]}}, 'a: "y" is taken'),
    "choices-gone": ({"a": {"enum": ["x"]}}, {"a": {}}, "a: any value is taken"),
    "minimum": ({"a": {"minimum": 2}}, {"a": {"minimum": 1}}, "a: minimum 2 -> 1"),
    "bound-gone": ({"a": {"maxLength": 2}}, {"a": {}}, "a: maxLength 2 -> null"),
    "words": ({"a": {"description": "x"}}, {"a": {"description": "y"}}, "a: its description is another one"),
    "secret": ({"a": TEXT}, {"a": {**TEXT, "writeOnly": True}}, "a: it is secret"),
}


@pytest.mark.parametrize("case", [*BREAKING.values(), *COMPATIBLE.values()], ids=[*BREAKING, *COMPATIBLE])
def test_a_parameter_that_takes_less_breaks_and_one_that_takes_more_does_not(
    case: tuple[Any, Any, str],
) -> None:
    before, after, said = case
    breaking = case in BREAKING.values()
    assert changes(tool(parameter(**before)), tool(parameter(**after))) == [(breaking, said)]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"required": ["a"]}, {}, (False, "a is no longer required")),
        ({}, {"required": ["a"]}, (True, "a is required now")),
        ({}, {"additionalProperties": False}, (True, "the arguments: other parameters are no longer taken")),
        ({"additionalProperties": False}, {}, (False, "the arguments: other parameters are taken")),
        (
            {"additionalProperties": False},
            {"additionalProperties": TEXT},
            (False, "the arguments: some other parameters are taken"),
        ),
        (
            {"additionalProperties": TEXT},
            {"additionalProperties": NUMBER},
            (True, "*: type string -> integer"),
        ),
    ],
)
def test_what_an_object_takes_and_needs(before: Any, after: Any, expected: tuple[bool, str]) -> None:
    whole = parameter(a=TEXT)
    assert changes(tool(whole | before), tool(whole | after)) == [expected]


def test_a_new_parameter_that_is_required_breaks() -> None:
    new = parameter(a=TEXT) | {"required": ["a"]}
    assert changes(tool(), tool(new)) == [(True, "a is required now")]


def test_a_rename_that_the_host_heals_does_not_break() -> None:
    before = parameter(old=TEXT) | {"required": ["old"]}
    after = parameter(new=TEXT) | {"required": ["new"]}
    assert changes(tool(before), tool(after, aliases={"old": "new"})) == [
        (False, "old is called new now; the old name is taken for it"),
        (False, "old is taken for new"),
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            {"side_effect": READ},
            {"side_effect": WRITE},
            (True, "its class: read -> write"),
        ),
        (
            {"side_effect": WRITE},
            {"side_effect": READ},
            (False, "its class: write -> read"),
        ),
        ({}, {"requires_approval": True}, (True, "a person is always asked now")),
        ({"requires_approval": True}, {}, (False, "it no longer asks to be asked about")),
        ({}, {"discoverable": False}, (True, "search no longer shows it")),
        ({"discoverable": False}, {}, (False, "search shows it now")),
        ({}, {"latency": "interactive"}, (True, "latency: low -> interactive")),
        ({}, {"latency": "high"}, (False, "latency: low -> high")),
        ({}, {"time_limit_s": 5.0}, (True, "time limit: null -> 5.0")),
        ({"time_limit_s": 5.0}, {"time_limit_s": 9.0}, (False, "time limit: 5.0 -> 9.0")),
        ({"aliases": {"x": "a"}}, {}, (True, "x is no longer taken for a")),
        ({"aliases": {"x": "a"}}, {"aliases": {"x": "b"}}, (True, "x is taken for b, no longer for a")),
        ({}, {"summary": "Keep a note."}, (False, 'summary: "Add a note." -> "Keep a note."')),
        ({}, {"examples": ("jot it down",)}, (False, 'examples: [] -> ["jot it down"]')),
        ({}, {"version": "2"}, (False, 'version: "1" -> "2"')),
        ({}, {"dist_version": "2"}, (False, 'package version: "1" -> "2"')),
    ],
)
def test_each_fact_of_a_tool(before: Any, after: Any, expected: tuple[bool, str]) -> None:
    assert changes(tool(**before), tool(**after)) == [expected]


def test_actions_and_what_they_require() -> None:
    two = {"add": SideEffect.WRITE, "clear": SideEffect.WRITE}
    worse = {"add": SideEffect.WRITE, "clear": SideEffect.DESTRUCTIVE}
    one = {"add": SideEffect.WRITE}
    assert changes(tool(actions=two), tool(actions=worse)) == [(True, "action clear: write -> destructive")]
    assert changes(tool(actions=two), tool(actions=one)) == [(True, "action clear is gone")]
    assert changes(tool(actions=one), tool(actions=two)) == [(False, "action clear is new: write")]
    assert changes(tool(), tool(actions=one)) == [
        (True, "its class is gone: a call is action add now"),
        (True, "action add is new: write"),
    ]
    needs = {"action_required": {"add": ("text",)}}
    assert changes(tool(actions=one), tool(actions=one, **needs)) == [(True, "action add requires text now")]
    assert changes(tool(actions=one, **needs), tool(actions=one)) == [
        (False, "action add no longer requires text")
    ]


def test_tools_that_come_go_and_move() -> None:
    one, other = tool(), evolve(tool(), name="note_list").sealed()
    assert compare(document_of([one]), document_of([one])) == []
    [gone] = compare(document_of([one, other]), document_of([one]))
    assert (gone.tool, gone.breaking, gone.what) == (
        "note_list",
        True,
        "chalie-ability-planted no longer has it",
    )
    [new] = compare(document_of([one]), document_of([one, other]))
    assert (new.breaking, new.what) == (False, "chalie-ability-planted brings it")
    [moved] = compare(document_of([one]), document_of([evolve(one, dist="other").sealed()]))
    assert (moved.breaking, moved.what) == (True, "chalie-ability-planted no longer has it; other has")


def test_a_name_that_two_packages_claim_is_called_otherwise_and_that_breaks() -> None:
    one = tool()
    found = compare(document_of([one]), document_of([one, evolve(one, dist="chalie-ability-other").sealed()]))
    assert [(change.breaking, change.what) for change in found] == [
        (False, "chalie-ability-other brings it"),
        (True, "it is called planted__note_add now"),
    ]


def test_another_protocol_breaks() -> None:
    before = document_of([tool()])
    [change] = compare(before, evolve(before, protocol="2"))
    assert (change.tool, change.breaking, change.what) == ("", True, "protocol 1 -> 2")


scalars = st.sampled_from(["a", "bb", "ccc", 0, 1, 2, 3, 1.5, True, None])
keywords: dict[str, Any] = {
    "type": st.sampled_from(["string", "integer", "number", ["string", "null"], ["integer", "string"]]),
    "enum": st.lists(scalars, min_size=1, max_size=3),
    "const": scalars,
    "minimum": st.integers(0, 3),
    "maximum": st.integers(0, 3),
    "exclusiveMaximum": st.integers(0, 3),
    "maxLength": st.integers(0, 3),
    "minLength": st.integers(0, 2),
    "multipleOf": st.sampled_from([1, 2]),
    "pattern": st.sampled_from(["^a", "c$"]),
    "description": st.sampled_from(["x", "y"]),
    "default": scalars,
    "anyOf": st.just([{"type": "string"}, {"type": "integer"}]),
    "not": st.just({"const": 1}),
}
#: a keyword or two: what is bound by more is hardly ever fitted.
some_keyword = st.sampled_from(sorted(keywords)).flatmap(
    lambda key: keywords[key].map(lambda value: (key, value))
)
leaves = st.lists(some_keyword, max_size=2).map(dict)


def objects(inner: Any) -> Any:
    return st.builds(
        lambda properties, required, closed: {
            "type": "object",
            "properties": properties,
            "required": [name for name in required if name in properties],
            "additionalProperties": not closed,
        },
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        st.lists(st.sampled_from("abc"), max_size=2, unique=True),
        st.booleans(),
    )


schemas = objects(
    leaves | st.builds(lambda items: {"type": "array", "items": items}, leaves) | objects(leaves)
)
#: what is tried for each parameter.
VALUES = (
    "a",
    "bb",
    "ccc",
    "cc",
    0,
    1,
    2,
    3,
    4,
    1.5,
    True,
    None,
    [],
    ["a"],
    [1],
    {},
    {"a": 1},
    {"a": "bb", "b": 2},
)


@st.composite
def pairs(draw: Any) -> tuple[Any, Any]:
    """Two schemas that are near each other: most differ in a keyword or two."""
    before = draw(schemas)
    after = copy.deepcopy(before)
    after["additionalProperties"] = draw(st.sampled_from([True, before["additionalProperties"]]))
    after["required"] = draw(st.sampled_from([before["required"], [], [*after["properties"]][:1]]))
    for name, inner in list(after["properties"].items()):
        step = draw(st.sampled_from(["keep", "drop", "turn", "turn", "other"]))
        keys = sorted(inner)
        if step == "other":
            after["properties"][name] = draw(leaves)
        elif step != "keep" and keys:
            key = draw(st.sampled_from(keys))
            value = inner.pop(key)
            if step == "turn" and type(value) is int:
                inner[key] = value + draw(st.sampled_from([-1, 1]))
            elif step == "turn" and key == "enum":
                inner[key] = [*value[1:], *draw(st.lists(scalars, min_size=1, max_size=2))]
    return before, after


@settings(max_examples=300)
@given(pairs())
def test_arguments_that_fitted_still_fit_where_nothing_is_called_breaking(pair: tuple[Any, Any]) -> None:
    before, after = pair
    found = list(narrowed(before, after))
    if any(breaking for breaking, _ in found):
        return
    old, new = jsonschema_rs.validator_for(before), jsonschema_rs.validator_for(after)
    for call in calls(before):
        if old.is_valid(call):
            assert new.is_valid(call), (before, after, call, found)


def calls(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield arguments that a schema takes: one whole call, varied in one parameter after the other.

    Of a name that is not declared nothing is promised: it may be a parameter of its own now. None is tried.
    """
    fitting = {}
    for name, inner in schema["properties"].items():
        validator = jsonschema_rs.validator_for(inner)
        declared = set(inner.get("properties", {}))
        tried = [value for value in VALUES if not isinstance(value, dict) or set(value) <= declared]
        fitting[name] = [value for value in tried if validator.is_valid(value)]
    whole = {name: some[0] for name, some in fitting.items() if some}
    yield whole
    yield {name: value for name, value in whole.items() if name in schema["required"]}
    for name, some in fitting.items():
        yield from ({**whole, name: value} for value in some)


@given(schemas)
def test_a_schema_is_no_different_from_itself(schema: Any) -> None:
    assert list(narrowed(schema, schema)) == []
