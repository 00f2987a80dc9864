from __future__ import annotations

import contextlib
import datetime
import enum
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import attrs
import jsonschema_rs
import pytest
from chalie.errors import ArgumentRefused, SchemaRefused
from chalie.schema import (
    MASK,
    assemble,
    canonical,
    compiled,
    digest,
    known_names,
    mask,
    refuse_injected,
    schema_of,
    secret_paths,
    self_contained,
    structure,
    work_by_depth,
)
from hypothesis import given
from hypothesis import strategies as st

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
INTEGER = {"i": {"type": "integer"}}
NODE = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
    },
    "required": ["name"],
}


def an_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


LOOP = {
    "type": "object",
    "allOf": [{"$ref": "#/$defs/a"}],
    "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
}

# what a model is shown


def test_each_style_puts_the_same_schema_where_its_api_wants_it() -> None:
    parameters = {**an_object(place={"type": "string"}), "required": ["place"]}
    inner = assemble("weather", "Tells.", parameters, background=True, style="mcp")["inputSchema"]
    assert list(inner["properties"]) == ["place", "act_summary", "async"]
    assert inner["required"] == ["place", "act_summary"]
    assert inner["properties"]["act_summary"]["type"] == "string"
    assert inner["properties"]["async"]["type"] == "boolean"
    assert assemble("weather", "Tells.", parameters, background=True, style="anthropic") == {
        "name": "weather",
        "description": "Tells.",
        "input_schema": inner,
    }
    assert assemble("weather", "Tells.", parameters, background=True, style="openai") == {
        "type": "function",
        "function": {"name": "weather", "description": "Tells.", "parameters": inner},
    }


def test_a_channel_without_background_calls_offers_no_async() -> None:
    inner = assemble("weather", "Tells.", an_object(), background=False, style="mcp")["inputSchema"]
    assert list(inner["properties"]) == ["act_summary"]


def test_showing_a_schema_does_not_change_it() -> None:
    parameters = {**an_object(a={}), "required": ["a"], "maxProperties": 1}
    before = json.dumps(parameters)
    shown = assemble("x", "y", parameters, background=True, style="mcp")["inputSchema"]
    assert json.dumps(parameters) == before
    assert "maxProperties" not in shown


@pytest.mark.parametrize("style", ["anthropic", "openai"])
def test_alternatives_at_the_top_are_shown_side_by_side_where_an_api_refuses_them(style: Any) -> None:
    parameters = {
        "type": "object",
        "anyOf": [{"$ref": "#/$defs/a"}, {"properties": {"b": {"type": "integer"}}, "required": ["b"]}],
        "$defs": {"a": an_object(a={"type": "string"})},
    }
    tool = assemble("x", "y", parameters, background=False, style=style)
    inner = tool.get("input_schema") or tool["function"]["parameters"]
    assert "anyOf" not in inner
    assert set(inner["properties"]) == {"a", "b", "act_summary"}
    assert inner["required"] == ["act_summary"]
    assert "anyOf" in assemble("x", "y", parameters, background=False, style="mcp")["inputSchema"]


@pytest.mark.parametrize("name", ["act_summary", "async", "actSummary", "ASYNC", "act-summary"])
def test_a_parameter_called_like_one_of_the_hosts_is_refused(name: str) -> None:
    with pytest.raises(SchemaRefused, match="has a name the host adds"):
        refuse_injected(an_object(**{name: {}}))
    with pytest.raises(SchemaRefused):
        refuse_injected({"type": "object", "allOf": [an_object(**{name: {}})]})


def test_names_in_alternatives_and_behind_references_are_known() -> None:
    schema = {
        **an_object(a={}),
        "anyOf": [{"$ref": "#/$defs/x"}, {"if": an_object(c={}), "then": an_object(d={})}],
        "$defs": {"x": {**an_object(b={}), "allOf": [{"$ref": "#/$defs/x"}]}},
    }
    assert known_names(schema) == {"a", "b", "c", "d"}


# which schemas can be used


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({**an_object(n={"$ref": "#/$defs/i"}), "$defs": INTEGER}, {"n": 1}, {"n": "x"}),
        (
            {**an_object(n={"$ref": "#/definitions/i"}), "definitions": INTEGER},
            {"n": 1},
            {"n": "x"},
        ),
        (an_object(a={"type": "integer"}, b={"$ref": "#/properties/a"}), {"b": 1}, {"b": "x"}),
        (
            {
                **an_object(n={"$ref": "#/$defs/i", "minimum": 3, "description": "d"}),
                "$defs": INTEGER,
            },
            {"n": 3},
            {"n": 1},
        ),
        (
            {**an_object(n={"allOf": [{"$ref": "#/$defs/i"}]}), "$defs": INTEGER},
            {"n": 1},
            {"n": "x"},
        ),
        (
            {
                **an_object(n={"anyOf": [{"$ref": "#/$defs/i"}, {"type": "null"}]}),
                "$defs": INTEGER,
            },
            {"n": None},
            {"n": "x"},
        ),
        (
            {**an_object(n={"$ref": "#int"}), "$defs": {"i": {"$anchor": "int", "type": "integer"}}},
            {"n": 1},
            {"n": "x"},
        ),
        (
            {**an_object(n={"$ref": "#/$defs/a~1b%25"}), "$defs": {"a/b%": {"type": "integer"}}},
            {"n": 1},
            {"n": "x"},
        ),
    ],
)
def test_a_local_reference_is_kept_and_obeyed(schema: Any, good: Any, bad: Any) -> None:
    checked = self_contained(schema)
    shown = assemble("x", "y", checked, background=True, style="anthropic")["input_schema"]
    for whole in (checked, shown):
        validator = compiled(whole)
        extra = {"act_summary": "s"} if whole is shown else {}
        assert validator.is_valid({**good, **extra})
        assert not validator.is_valid({**bad, **extra})


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/node", "$defs": {"node": NODE}},
        {**NODE, "properties": {**NODE["properties"], "children": {"type": "array", "items": {"$ref": "#"}}}},
        {
            "$ref": "#/$defs/node",
            "$defs": {
                "node": {**NODE, "properties": {"children": {"items": {"$ref": "#/$defs/b"}}}},
                "b": {"allOf": [{"$ref": "#/$defs/node"}]},
            },
        },
    ],
    ids=["to itself", "to the root", "mutual"],
)  # fmt: skip
def test_a_recursive_schema_is_accepted_and_obeyed_at_every_level(schema: Any) -> None:
    checked = self_contained(schema)
    assert checked["type"] == "object"
    shown = assemble("x", "y", checked, background=True, style="openai")["function"]["parameters"]
    tree = {"name": "a", "children": [{"name": "b", "children": [{"name": "c"}]}]}
    broken = {"name": "a", "children": [{"name": "b", "children": [{"no": "name"}]}]}
    assert compiled(checked).is_valid(tree)
    assert not compiled(checked).is_valid(broken)
    assert compiled(shown).is_valid({**tree, "act_summary": "the inner nodes need none"})


@pytest.mark.parametrize(
    "reference",
    [
        "http://169.254.169.254/latest",
        "https://json.test/s.json#/$defs/x",
        "file:///etc/passwd",
        "other.json",
        "//host/x",
    ],
)
def test_a_reference_to_the_outside_is_refused_and_nothing_leaves(
    reference: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_network(*_: Any, **__: Any) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    for schema in (
        an_object(a={"$ref": reference}),
        an_object(a={"type": "array", "items": {"anyOf": [{"$ref": reference}]}}),
        {"type": "object", "$defs": {"unused": {"$ref": reference}}},
        {"type": "object", "properties": {}, "$dynamicRef": reference},
    ):
        with pytest.raises(SchemaRefused, match="nothing is ever fetched"):
            self_contained(schema)


@pytest.fixture
def listener() -> Iterator[tuple[str, list[bytes]]]:
    """Where a request to this machine would arrive, and what has: each is hung up on."""
    arrived: list[bytes] = []

    def listen() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with connection:
                    arrived.append(connection.recv(1024))

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", arrived
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


#: every keyword that names something by URI, with HERE for where it would be fetched from
OUTSIDE: dict[str, dict[str, Any]] = {
    "$schema": {**an_object(), "$schema": "HERE/schema"},
    "inner $schema": an_object(a={"$schema": "HERE/schema", "type": "string"}),
    "inner $schema with $id": an_object(a={"$schema": "HERE/schema", "$id": "urn:a", "type": "string"}),
    "$id and $ref": {**an_object(a={"$ref": "other"}), "$id": "HERE/base"},
    "$id": {**an_object(), "$id": "HERE/base"},
    "$ref": an_object(a={"$ref": "HERE/ref"}),
    "$dynamicRef": an_object(a={"$dynamicRef": "HERE/ref"}),
    "$recursiveRef": {
        **an_object(a={"$recursiveRef": "HERE/ref"}), "$schema": "https://json-schema.org/draft/2019-09/schema",
    },
    "$vocabulary": {**an_object(), "$vocabulary": {"HERE/vocabulary": True}},
    "contentSchema": an_object(a={"contentMediaType": "text/json", "contentSchema": {"$ref": "HERE/x"}}),
    "an unknown keyword": an_object(a={"x-form": {"$ref": "HERE/ref", "$schema": "HERE/schema"}}),
    "data": an_object(a={"const": {"$ref": "HERE/ref", "$schema": "HERE/schema"}}),
    "draft 4 id": {
        **an_object(a={"$ref": "#/definitions/b"}), "id": "HERE/base",
        "definitions": {"b": {"$ref": "b.json"}},
        "$schema": "http://json-schema.org/draft-04/schema#",
    },
}  # fmt: skip


@pytest.mark.parametrize("use", [self_contained, compiled])
@pytest.mark.parametrize("keyword", OUTSIDE)
def test_no_keyword_makes_a_request_leave(keyword: str, use: Any, listener: tuple[str, list[bytes]]) -> None:
    here, arrived = listener
    schema = json.loads(json.dumps(OUTSIDE[keyword]).replace("HERE", here))
    with contextlib.suppress(SchemaRefused):
        compiled(use(schema)) if use is self_contained else use(schema)
    assert arrived == []


def test_the_validator_itself_cannot_fetch() -> None:
    with pytest.raises(SchemaRefused, match="nothing is fetched"):
        compiled(an_object(a={"$ref": "http://127.0.0.1:9/x.json"}))


def test_a_dialect_nobody_knows_is_named_in_the_refusal() -> None:
    with pytest.raises(SchemaRefused, match=r"\$schema names 'http://x.test/draft'.*nothing is ever"):
        self_contained({**an_object(), "$schema": "http://x.test/draft"})


@pytest.mark.parametrize(
    "draft",
    [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft/2020-12/schema",
        "http://json-schema.org/schema#",
    ],
)
def test_the_drafts_of_json_schema_are_known_without_fetching(draft: str) -> None:
    assert compiled(self_contained({**an_object(), "$schema": draft})).is_valid({})


def test_data_that_looks_like_a_reference_is_none() -> None:
    schema = an_object(a={"const": {"$ref": "http://x.test/"}, "default": {"$ref": "#/nowhere"}})
    assert compiled(self_contained(schema)).is_valid({"a": {"$ref": "http://x.test/"}})


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({}, "describes anything, but arguments are always an object"),
        (True, "is a bool, not an object"),
        (None, "is a NoneType"),
        ({"type": "string"}, 'describes "string"'),
        ({"type": "array", "items": {}}, 'describes "array"'),
        ({"$ref": "#"}, "refers to itself"),
        (an_object(a={"$ref": "#/$defs/no"}), r"refers to '#/\$defs/no' at #/properties/a.*does not hold"),
        (an_object(a={"$ref": "#gone"}), "does not hold"),
        (an_object(a=3), "has 3 at #/properties/a, where a schema belongs"),
        (an_object(a={"type": "strng"}), "not valid JSON Schema at properties/a/type"),
        ({"type": "object", "properties": ["a"]}, "not valid JSON Schema"),
        (an_object(a={"pattern": "("}), "not valid JSON Schema"),
        (an_object(a={"$id": "http://x.test/a", "$ref": "#"}), "changes its base with"),
        ({**an_object(), "$schema": "http://x.test/draft"}, "not valid JSON Schema"),
        (an_object(a={"default": float("nan")}), "holds nan"),
        (an_object(a={"default": {1}}), "set is no JSON value"),
        ({"type": "object", 3: {}}, "has the key 3"),
        (LOOP, "refers to itself without going into the data"),
    ],
)  # fmt: skip
def test_a_schema_that_cannot_be_used_is_refused_with_the_place(schema: Any, said: str) -> None:
    with pytest.raises(SchemaRefused, match=said):
        self_contained(schema)


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = an_object(a=schema)
    return schema


def chain(levels: int, branches: int) -> dict[str, Any]:
    """Each definition is an alternative of the next one with itself: branches ** levels ways."""
    defs = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * branches} for n in range(levels)}
    return {**an_object(a={"$ref": "#/$defs/d0"}), "$defs": {**defs, f"d{levels}": {"type": "string"}}}


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (
            an_object(a={"anyOf": [{"const": n} for n in range(10_000)]}),
            "10000 branches at #/prop",
        ),
        (an_object(**{f"p{n}": {"type": "string"} for n in range(5_000)}), "has over 4000 parts"),
        (an_object(a={"enum": ["x" * 100] * 5_000}), "bytes, over"),
        (nested(500), "nested over 128 levels deep"),
        (nested(50_000), "nested over 128 levels deep"),
        (chain(30, 2), "too many alternatives"),
        (chain(3, 400), "too many alternatives"),
        ({**an_object(b=an_object(a={"$ref": "#/$defs/d0"})), "$defs": chain(30, 2)["$defs"]}, "too many"),
        (chain(1_000, 1), "too many|refers to itself"),
    ],
    ids=[
        "10,000 branches",
        "5,000 parts",
        "500 KB",
        "500 deep",
        "50,000 deep",
        "2**30",
        "400**3",
        "2**30 a level down",
        "long chain",
    ],
)
def test_a_schema_out_of_bounds_is_refused_before_it_costs_anything(schema: Any, said: str) -> None:
    with pytest.raises(SchemaRefused, match=said):  # without the bound, 2**30 ways would take for ever
        self_contained(schema)


def test_a_schema_may_be_as_deep_as_data_may_be() -> None:
    assert self_contained(nested(60))


def test_work_counts_every_way_to_a_part() -> None:
    assert work_by_depth(an_object(a={"type": "string"})) == (1, 1, 0)
    assert work_by_depth(an_object(a={"anyOf": [{"type": "string"}, {"type": "null"}]})) == (1, 3, 0)
    assert set(work_by_depth(self_contained({"$ref": "#/$defs/node", "$defs": {"node": NODE}}))) <= {1, 2}
    doubling = {
        **an_object(a={"$ref": "#/$defs/n"}),
        "$defs": {"n": {"anyOf": [an_object(a={"$ref": "#/$defs/n"}), an_object(a={"$ref": "#/$defs/n"})]}},
    }
    work = work_by_depth(doubling)
    assert work[1:6] == (4, 8, 16, 32, 64)
    assert len(work) == 65


def test_what_is_returned_is_a_copy_of_plain_containers() -> None:
    given_schema = an_object(a={"type": "string"})
    checked = self_contained(given_schema)
    given_schema["properties"]["a"]["type"] = "integer"
    assert checked["properties"]["a"] == {"type": "string"}
    assert self_contained({"type": ["object", "null"]})["type"] == "object"
    assert self_contained({"anyOf": [an_object(a={})]})["type"] == "object"


# values


@given(JSON)
def test_the_order_of_keys_makes_no_difference(value: Any) -> None:
    def turned(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: turned(node[key]) for key in reversed(list(node))}
        return [turned(item) for item in node] if isinstance(node, list) else node

    assert canonical(turned(value)) == canonical(value)
    assert json.loads(canonical(value).decode("utf-8", "surrogatepass")) == value


@given(JSON, JSON)
def test_different_values_have_different_canonical_bytes(one: Any, other: Any) -> None:
    def typed(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: typed(item) for key, item in node.items()}
        return [typed(item) for item in node] if isinstance(node, list) else (type(node), repr(node))

    assert (canonical(one) == canonical(other)) == (typed(one) == typed(other))


def test_one_and_one_point_nought_are_two_values() -> None:
    assert len({digest({"n": value}) for value in (1, 1.0, True, "1")}) == 4
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical(float("nan"))


# secrets


def test_secrets_are_masked_wherever_the_schema_says_they_are() -> None:
    schema = {
        **an_object(
            token={"type": "string", "writeOnly": True},
            user={"type": "string"},
            login=an_object(password={"anyOf": [{"type": "string", "format": "password"}, {"type": "null"}]}),
            keys={"type": "array", "items": {"$ref": "#/$defs/secret"}},
            headers={"type": "object", "additionalProperties": {"writeOnly": True}},
        ),
        "$defs": {"secret": an_object(value={"format": "password"}, label={})},
    }
    paths = secret_paths(schema)
    assert paths == {("token",), ("login", "password"), ("keys", "*", "value"), ("headers", "*")}
    arguments = {
        "token": "t",
        "user": "u",
        "login": {"password": "p", "name": "n"},
        "keys": [{"value": "v", "label": "l"}, {"value": {"deep": "v"}}],
        "headers": {"X": "h"},
    }
    assert mask(arguments, paths) == {
        "token": MASK,
        "user": "u",
        "login": {"password": MASK, "name": "n"},
        "keys": [{"value": MASK, "label": "l"}, {"value": MASK}],
        "headers": {"X": MASK},
    }
    assert arguments["token"] == "t"


def test_a_secret_in_a_recursive_schema_is_masked_at_every_level() -> None:
    schema = self_contained(
        {
            "$ref": "#/$defs/n",
            "$defs": {
                "n": an_object(pin={"writeOnly": True}, child={"$ref": "#/$defs/n"}, name={"type": "string"})
            },
        }
    )
    arguments: dict[str, Any] = {"pin": "1", "name": "a"}
    for _ in range(20):
        arguments = {"pin": "1", "name": "a", "child": arguments}
    masked = json.dumps(mask(arguments, secret_paths(schema)))
    assert '"1"' not in masked
    assert masked.count('"name": "a"') == 21


def test_without_secrets_nothing_is_masked() -> None:
    assert secret_paths(an_object(a={"type": "string"})) == frozenset()
    assert mask({"a": {"b": 1}}, frozenset()) == {"a": {"b": 1}}


# classes


class Unit(enum.Enum):
    METRIC = "metric"
    IMPERIAL = "imperial"


@attrs.frozen
class Place:
    name: str
    children: list[Place] = attrs.field(factory=list)


@attrs.frozen
class Search:
    query: Annotated[str, "what to look for"]
    limit: int = attrs.field(default=5, metadata={"minimum": 1, "maximum": 50})
    unit: Unit = Unit.METRIC
    kind: Literal["news", "web"] = "web"
    near: Place | None = None
    when: datetime.date | None = None
    tags: tuple[str, ...] = ()
    weights: dict[str, float] = attrs.field(factory=dict)
    box: tuple[float, float] | None = None
    folder: Path | None = None
    extra: Any = None


def test_a_class_becomes_a_schema() -> None:
    schema = self_contained(schema_of(Search))
    properties = schema["properties"]
    assert schema["required"] == ["query"]
    assert schema["additionalProperties"] is False
    assert properties["query"] == {"type": "string", "description": "what to look for"}
    assert properties["limit"] == {"type": "integer", "minimum": 1, "maximum": 50, "default": 5}
    assert properties["unit"] == {"enum": ["metric", "imperial"], "default": "metric"}
    assert properties["kind"] == {"enum": ["news", "web"], "default": "web"}
    assert properties["tags"] == {"type": "array", "items": {"type": "string"}, "default": []}
    assert properties["near"] == {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}], "default": None}
    assert schema["$defs"]["Place"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Place"}


def test_arguments_become_an_instance() -> None:
    arguments = {
        "query": "x",
        "unit": "imperial",
        "near": {"name": "a", "children": [{"name": "b"}]},
        "when": "2026-01-31",
        "tags": ["p", "q"],
        "weights": {"a": 1},
        "box": [1, 2.5],
        "folder": "/x",
    }
    assert jsonschema_rs.is_valid(schema_of(Search), arguments)
    assert structure(Search, arguments) == Search(
        "x",
        unit=Unit.IMPERIAL,
        near=Place("a", [Place("b")]),
        when=datetime.date(2026, 1, 31),
        tags=("p", "q"),
        weights={"a": 1.0},
        box=(1.0, 2.5),
        folder=Path("/x"),
    )


def test_a_recursive_class_can_be_the_root() -> None:
    schema = self_contained(schema_of(Place))
    assert compiled(schema).is_valid({"name": "a", "children": [{"name": "b", "children": []}]})
    assert not compiled(schema).is_valid({"name": "a", "children": [{"children": []}]})


def test_what_a_class_does_not_take_is_refused_by_field() -> None:
    with pytest.raises(ArgumentRefused, match="when"):
        structure(Search, {"query": "x", "when": "tomorrow"})


def test_a_class_validator_refuses_in_words() -> None:
    @attrs.frozen
    class Positive:
        n: int = attrs.field(validator=attrs.validators.gt(0))

    with pytest.raises(ArgumentRefused, match="must be > 0"):
        structure(Positive, {"n": 0})

    @attrs.frozen
    class Pin:
        digits: str = attrs.field(
            validator=attrs.validators.matches_re("[0-9]{4}"), metadata={"writeOnly": True}
        )

    with pytest.raises(ArgumentRefused) as caught:
        structure(Pin, {"digits": "987"})
    assert "987" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "said"), [(complex, "no JSON form"), (dict[int, str], "must be text"), ("Gone", "is unknown")]
)
def test_a_field_without_a_json_form_is_refused_by_name(kind: Any, said: str) -> None:
    cls = attrs.make_class("Odd", {"field_a": attrs.field(type=kind)})
    with pytest.raises(SchemaRefused, match=said):
        schema_of(cls)
    with pytest.raises(SchemaRefused, match="no attrs class"):
        schema_of(int)
