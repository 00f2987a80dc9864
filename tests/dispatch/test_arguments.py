from __future__ import annotations

import http
import json
import re
import threading
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
from chalie.calls import SideEffect
from chalie.catalogue.descriptor import Descriptor
from chalie.dispatch import arguments as arguments_module
from chalie.dispatch.arguments import Prepared, prepare, take_injected
from chalie.dispatch.bounds import MOST_BYTES, MOST_VALUES
from chalie.errors import CODES
from chalie.result import ToolResult
from hypothesis import given
from hypothesis import strategies as st

TEXT = {"type": "string"}
INTEGER = {"type": "integer"}
LIST = {"type": "array"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


def tool(properties: Mapping[str, Any], **more: Any) -> Descriptor:
    """Return a descriptor; `schema=` adds to the schema, everything else to the facts."""
    schema = {"type": "object", "properties": dict(properties), **more.pop("schema", {})}
    known: dict[str, Any] = {
        "dist": "acme",
        "dist_version": "1",
        "target": "acme:Tool",
        "name": "tool",
        "summary": "s",
        "examples": ("e",),
        "search_tooltip": "t",
        "namespace": "tool",
        "version": "1",
    }
    return Descriptor(parameters=schema, **{**known, **more}).sealed()


def prepared(descriptor: Descriptor, arguments: Any) -> Prepared:
    outcome = prepare(descriptor, arguments)
    assert isinstance(outcome, Prepared), outcome
    return outcome


def refused(descriptor: Descriptor, arguments: Any, code: str) -> ToolResult:
    outcome = prepare(descriptor, arguments)
    assert isinstance(outcome, ToolResult), outcome
    assert outcome.code == code
    return outcome


FILES = tool(
    {
        "source": TEXT,
        "url": TEXT,
        "path": TEXT,
        "dryRun": {"type": "boolean"},
        "tags": {"type": "array", "items": TEXT},
        "limit": {"type": "integer"},
        "share": {"type": "number"},
        "options": {
            "type": "object",
            "properties": {
                "deep": {"type": "integer"},
                "name": TEXT,
                "some": {"type": ["integer", "string"]},
            },
        },
        "either": {"type": ["integer", "string"]},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "anything": {},
    },
    schema={"additionalProperties": False},
    aliases={"folder": "path", "dir": "path"},
)


# the host's own parameters


def test_the_hosts_parameters_come_off_first() -> None:
    given = {"act_summary": "look it up", "async": True, "place": "x"}
    assert take_injected(given) == ({"place": "x"}, "look it up", True)
    assert given["async"] is True
    assert take_injected(json.dumps(given)) == ({"place": "x"}, "look it up", True)
    assert take_injected(None) == (None, "", False)
    assert take_injected({"place": "x"}) == ({"place": "x"}, "", False)


@pytest.mark.parametrize(
    "value", ["false", "False", " no ", "0", "off", "", 0, None, False, [], {}, "maybe", 2]
)
def test_what_is_not_clearly_yes_is_not_background(value: Any) -> None:
    assert take_injected({"async": value})[2] is False


@pytest.mark.parametrize("value", [True, "true", " TRUE ", "yes", "1", 1, "on"])
def test_what_is_clearly_yes_is_background(value: Any) -> None:
    assert take_injected({"async": value})[2] is True


def test_the_hosts_parameters_come_off_in_a_mangled_spelling_too() -> None:
    assert take_injected({'act_summary"': "a", " Async ": "true", "x": 1}) == ({"x": 1}, "a", True)


def test_a_summary_of_another_kind_is_text_and_a_long_one_is_cut() -> None:
    assert take_injected({"act_summary": ["a"]})[1] == "['a']"
    assert len(take_injected({"act_summary": "x" * 10_000})[1]) == 500


@pytest.mark.parametrize("given", ["no json", "[1]", b"\xff", 7, ["x"], "[" * 100_000])
def test_what_is_no_object_is_left_for_the_refusal(given: Any) -> None:
    assert take_injected(given) == (given, "", False)
    refused(FILES, given, "invalid-param")


# what arguments may be


@pytest.mark.parametrize("nothing", [None, {}, "", "  ", "{}", b"{}"])
def test_no_arguments_in_any_form_are_none(nothing: Any) -> None:
    assert prepared(FILES, nothing) == Prepared({}, ())


def test_json_text_of_an_object_is_its_object() -> None:
    assert prepared(FILES, '{"url": "x"}') == Prepared({"url": "x"}, ())
    refused(FILES, '{"url": "x", "url": "y"}', "ambiguous-param")
    refused(FILES, '{"limit": NaN}', "invalid-param")
    refused(FILES, '{"limit": 1e999}', "invalid-param")


def test_prepared_arguments_are_a_copy_down_to_the_bottom() -> None:
    given = {"options": {"more": [{"a": 1}]}, "tags": ["x"]}
    outcome = prepared(FILES, given)
    given["options"]["more"][0]["a"] = 2  # type: ignore[index]
    given["tags"].append("y")  # type: ignore[attr-defined]
    assert outcome.arguments == {"options": {"more": [{"a": 1}]}, "tags": ["x"]}


def test_read_only_mappings_and_tuples_are_taken_as_objects_and_lists() -> None:
    given = MappingProxyType({"options": MappingProxyType({"a": 1}), "tags": ("x",)})
    assert prepared(FILES, given).arguments == {"options": {"a": 1}, "tags": ["x"]}


def test_subclasses_of_plain_types_become_plain() -> None:
    outcome = prepared(FILES, {"url": SideEffect.READ, "limit": http.HTTPStatus.OK})
    assert [type(value) for value in outcome.arguments.values()] == [str, int]


# keys


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ('source"', "source"),
        ("URL", "url"),
        (" path ", "path"),
        ("`path`", "path"),
        ("dry_run", "dryRun"),
        ("dry-run:", "dryRun"),
        ("Dry Run", "dryRun"),
        ("folder", "path"),
        ("DIR", "path"),
        ("“url”", "url"),
    ],
)
def test_a_mangled_key_is_read_as_the_one_it_can_mean_and_that_is_told(key: str, name: str) -> None:
    value = True if name == "dryRun" else "x"
    outcome = prepared(FILES, {key: value})
    assert outcome.arguments == {name: value}
    assert len(outcome.healed) == 1
    assert f"as {name}" in outcome.healed[0]


@pytest.mark.parametrize(
    "given", [{"url": "a", "URL": "b"}, {"URL": "a", "Url": "b"}, {"folder": "a", "dir": "b"}]
)
def test_two_keys_that_mean_one_parameter_are_refused_and_neither_wins(given: dict[str, str]) -> None:
    outcome = refused(FILES, given, "ambiguous-param")
    for key in given:
        assert key in outcome.message


def test_a_key_that_could_mean_two_parameters_is_refused() -> None:
    two = tool({"userId": TEXT, "user_id": TEXT}, schema={"additionalProperties": False})
    outcome = refused(two, {"UserID": "x"}, "ambiguous-param")
    assert outcome.valid == ("userId", "user_id")
    assert prepared(two, {"userId": "x", "user_id": "y"}).healed == ()


def test_a_key_that_means_nothing_is_refused_with_what_there_is() -> None:
    outcome = refused(FILES, {"colour": "red"}, "invalid-param")
    assert "colour" in outcome.message
    assert "source" in outcome.valid
    assert "red" not in outcome.message


def test_an_open_schema_keeps_the_keys_it_may_have() -> None:
    headers = tool({"url": TEXT}, schema={"additionalProperties": TEXT})
    assert prepared(headers, {"url": "a", "URL": "b"}) == Prepared({"url": "a", "URL": "b"}, ())
    assert prepared(headers, {"X-Other": "b"}).arguments == {"X-Other": "b"}


@pytest.mark.parametrize(
    "given",
    [
        {'{"url": "x", "limit": 3}': ""},
        {'{"url": "x", "limit": 3}': None},
        {'{"url": "x", "limit": 3}': {}},
        {'"url": "x", "limit": 3': ""},
        {'{"url"': '"x", "limit": 3}'},
        {'{"URL": "x", "limit": "3"}': ""},
    ],
)
def test_a_whole_call_in_one_key_is_unfolded(given: dict[str, Any]) -> None:
    outcome = prepared(FILES, given)
    assert outcome.arguments == {"url": "x", "limit": 3}
    assert "one key of the call" in outcome.healed[0]


@pytest.mark.parametrize(
    "given",
    [
        {'{"colour": "red"}': ""},
        {'{"url": "x", "url": "y"}': ""},
        {'{"url": "x"}': "and more"},
        {'{"url": "x"}': "", "limit": 1},
    ],
)
def test_a_weird_key_that_is_not_exactly_a_call_is_refused(given: dict[str, Any]) -> None:
    refused(FILES, given, "invalid-param")


# values


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"tags": '["a"]'}, {"tags": ["a"]}),
        ({"tags": "[]"}, {"tags": []}),
        ({"limit": "5"}, {"limit": 5}),
        ({"limit": " -5 "}, {"limit": -5}),
        ({"limit": "5.0"}, {"limit": 5}),
        ({"share": "0.5"}, {"share": 0.5}),
        ({"share": "2"}, {"share": 2}),
        ({"dryRun": "true"}, {"dryRun": True}),
        ({"dryRun": "False"}, {"dryRun": False}),
        ({"options": '{"deep": "3", "name": "4"}'}, {"options": {"deep": 3, "name": "4"}}),
        ({"options": {"deep": "3"}}, {"options": {"deep": 3}}),
        ({"maybe": "null"}, {"maybe": None}),
        ({"maybe": "4"}, {"maybe": 4}),
    ],
)
def test_json_text_is_decoded_where_the_schema_wants_something_else(given: Any, read: Any) -> None:
    outcome = prepared(FILES, given)
    assert outcome.arguments == read
    assert [type(value) for value in outcome.arguments.values()] == [type(value) for value in read.values()]
    assert outcome.healed
    assert all(line.startswith("read the text of ") for line in outcome.healed)


@pytest.mark.parametrize(
    "given",
    [
        {"url": "5"},
        {"url": '["a"]'},
        {"url": "true"},
        {"either": "5"},
        {"anything": "[1]"},
        {"tags": ["1", "[2]"]},
        {"options": {"name": "null", "some": "1", "free": "1"}},
    ],
)
def test_text_stays_text_where_the_schema_takes_text_or_does_not_say(given: Any) -> None:
    assert prepared(FILES, given) == Prepared(given, ())


@pytest.mark.parametrize(
    "given",
    [
        {"tags": "a, b"},
        {"tags": '{"a": 1}'},
        {"tags": '["a"'},
        {"limit": "five"},
        {"limit": "5.5"},
        {"limit": "true"},
        {"limit": "1e999"},
        {"share": "NaN"},
        {"dryRun": "1"},
        {"dryRun": "yes"},
        {"options": '{"deep": 1, "deep": 2}'},
        {"tags": "[" * 100_000},
    ],
)
def test_text_that_does_not_fit_is_refused_and_not_guessed(given: Any) -> None:
    refused(FILES, given, "invalid-param")


def test_values_are_decoded_through_references_and_alternatives() -> None:
    some = {"type": "array", "items": {"$ref": "#/$defs/filter"}}
    nested = tool(
        {"filter": {"$ref": "#/$defs/filter"}, "choice": {"oneOf": [INTEGER, {"type": "boolean"}]}},
        schema={
            "$defs": {
                "filter": {
                    "anyOf": [
                        {"type": "object", "properties": {"all": some}},
                        {"type": "null"},
                    ]
                }
            }
        },
    )  # fmt: skip
    outcome = prepared(nested, {"filter": '{"all": ["{\\"all\\": []}"]}', "choice": "true"})
    assert outcome.arguments == {"filter": {"all": [{"all": []}]}, "choice": True}
    assert len(outcome.healed) == 3


def test_thousands_of_repairs_are_told_in_short() -> None:
    numbers = tool({"n": {"type": "array", "items": {"type": "integer"}}})
    outcome = prepared(numbers, {"n": ["1"] * 5_000})
    assert outcome.arguments == {"n": [1] * 5_000}
    assert len(outcome.healed) == 51
    assert outcome.healed[-1] == "and 4950 more"


def test_a_null_for_an_optional_parameter_is_left_out_where_null_is_no_value() -> None:
    outcome = prepared(FILES, {"url": None, "maybe": None, "anything": None})
    assert outcome.arguments == {"maybe": None, "anything": None}
    assert outcome.healed == ("left out url, which was null",)


# actions and what they require

MEMORY = tool(
    {"action": TEXT, "query": TEXT, "text": {"type": ["string", "null"]}, "flag": {"type": "boolean"}},
    name="memory",
    actions={"store": SideEffect.WRITE, "recall": SideEffect.READ},
    action_required={"store": ("text", "flag"), "recall": ("query",)},
    schema={"required": ["action"]},
)  # fmt: skip


def test_an_unknown_action_is_refused_with_the_actions_there_are() -> None:
    outcome = refused(MEMORY, {"action": "wipe"}, "unknown-action")
    assert outcome.message == "memory has no action wipe"
    assert outcome.valid == ("store", "recall")
    refused(MEMORY, {"action": ["store"]}, "unknown-action")


def test_a_missing_action_is_refused_with_the_actions_there_are() -> None:
    for empty in ({}, {"action": None}):
        outcome = refused(MEMORY, empty, "missing-params")
        assert outcome.valid == ("store", "recall")


def test_everything_an_action_misses_is_named_at_once() -> None:
    outcome = refused(MEMORY, {"action": "store"}, "missing-params")
    assert outcome.message == "memory store requires text and flag"
    assert outcome.hint == "pass text= and flag="
    assert outcome.valid == ("text", "flag")


def test_absent_means_absent_or_null_and_not_falsy() -> None:
    assert prepared(MEMORY, {"action": "store", "text": "", "flag": False}).arguments["flag"] is False
    outcome = refused(MEMORY, {"action": "store", "text": None, "flag": None}, "missing-params")
    assert outcome.valid == ("text", "flag")


def test_required_parameters_of_the_schema_are_named_at_once_too() -> None:
    needs = tool({"a": TEXT, "b": TEXT, "c": TEXT}, schema={"required": ["a", "b", "c"]})
    outcome = refused(needs, {"b": "x", "bb": 1}, "missing-params")
    assert outcome.message == "tool requires a and c"
    assert outcome.hint == "pass a= and c=; bb is no parameter of it"
    assert refused(needs, {"a": None, "b": "x", "c": "y"}, "missing-params").valid == ("a",)


def test_a_default_action_is_put_in_so_that_gate_and_tool_see_the_same() -> None:
    default = tool(
        {"action": {"enum": ["store", "recall"], "default": "recall"}},
        actions={"store": SideEffect.WRITE, "recall": SideEffect.READ},
    )
    outcome = prepared(default, {})
    assert outcome.arguments == {"action": "recall"}
    assert "action=recall" in outcome.healed[0]


def test_a_tool_that_classifies_for_itself_needs_no_action_argument() -> None:
    shell = tool({"command": TEXT}, actions={"run": SideEffect.WRITE}, classifies=True)
    assert prepared(shell, {"command": "ls"}).arguments == {"command": "ls"}


# validation


def test_what_does_not_fit_is_told_with_path_and_what_would() -> None:
    search = tool(
        {
            "unit": {"enum": ["metric", "imperial", 3]},
            "rows": {"type": "array", "items": {"properties": {"size": {"minimum": 1}}}},
        }
    )  # fmt: skip
    outcome = refused(search, {"unit": "kelvin"}, "invalid-param")
    assert outcome.valid == ("metric", "imperial", "3")
    assert outcome.meta == {"path": "unit"}
    outcome = refused(search, {"rows": [{"size": 1}, {"size": 0}]}, "invalid-param")
    assert outcome.meta == {"path": "rows[1].size"}
    assert outcome.message == "rows[1].size: the value is less than the minimum of 1"
    outcome = refused(search, {"rows": {}}, "invalid-param")
    assert outcome.hint == "pass rows as array"


def test_at_most_five_problems_are_told() -> None:
    numbers = tool({f"n{at}": {"type": "integer"} for at in range(9)})
    outcome = refused(numbers, {f"n{at}": "x" for at in range(9)}, "invalid-param")
    assert outcome.message.count("is not of type") == 5
    assert outcome.message.endswith("and more")


def test_no_error_shows_a_value() -> None:
    secret = tool(
        {"pin": {"type": "string", "writeOnly": True, "maxLength": 3, "pattern": "^[0-9]+$", "enum": ["1"]}}
    )
    other = tool(
        {"pin": {"anyOf": [{"type": "integer"}, {"const": "x"}, {"type": "string", "minLength": 99}]}}
    )
    for descriptor in (secret, other):
        assert "hunter2" not in repr(refused(descriptor, {"pin": "hunter2"}, "invalid-param"))


def test_alternatives_that_all_refuse_say_why() -> None:
    pin = tool({"pin": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]}})
    outcome = refused(pin, {"pin": [1]}, "invalid-param")
    assert outcome.message == (
        'pin: fits none of its alternatives (the value is not of type "integer"; '
        'the value is not of type "boolean")'
    )


def test_a_pattern_that_runs_for_ever_is_a_refusal() -> None:
    pattern = tool({"a": {"type": "string", "pattern": r"^(a|aa)+\1$"}})
    refused(pattern, {"a": "a" * 200 + "!"}, "invalid-param")


def test_references_are_obeyed() -> None:
    tree = tool(
        {"root": {"$ref": "#/$defs/n"}},
        schema={
            "$defs": {
                "n": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {"next": {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]}},
                }
            }
        },
    )
    assert prepared(tree, {"root": {"name": 1, "next": {"name": 2, "next": None}}})
    refused(tree, {"root": {"name": 1, "next": {"next": None}}}, "invalid-param")


def test_a_schema_that_cannot_be_compiled_is_an_error_result_too() -> None:
    refused(tool({"a": {"$ref": "http://127.0.0.1:9/x"}}), {"a": 1}, "bad-schema")


# bounds


def deep(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = {"a": [value]}
    return value


FREE = tool({"data": {}, "list": {"type": "array"}})


@pytest.mark.parametrize(
    "given",
    [
        {"data": deep(32)},
        {"data": deep(100_000)},
        {"list": json.dumps([deep(40)])},
        {"list": "[" * 200 + "]" * 200},
        {"data": [0] * MOST_VALUES},
        {"data": [[0] * 400 for _ in range(400)]},
        {"data": "x" * (MOST_BYTES + 1)},
        {"data": ["é" * 300_000, "é" * 300_000]},
        {"x" * MOST_BYTES: 1},
        '{"data": "' + "x" * MOST_BYTES + '"}',
    ],
    ids=["65 deep", "200,000 deep", "deep in text", "deep list in text", "100,001 values", "160,000 values",
         "long text", "two long texts", "long key", "long call"],
)  # fmt: skip
def test_what_is_out_of_bounds_is_refused_before_the_validator_sees_it(
    given: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(FREE, {})
    for checks in arguments_module._kept.values():
        monkeypatch.setattr(
            type(checks), "validator", property(lambda self: pytest.fail("validated")), raising=False
        )
    outcome = prepare(FREE, given)
    assert isinstance(outcome, ToolResult)
    assert outcome.code in ("arguments-too-large", "invalid-param")
    assert outcome.hint


def test_what_is_just_within_bounds_is_accepted() -> None:
    assert prepared(FREE, {"data": deep(31)})
    assert prepared(FREE, {"data": [0] * (MOST_VALUES - 10)})
    assert prepared(FREE, {"data": "x" * (MOST_BYTES - 100)})


def test_a_container_that_holds_itself_is_refused() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    refused(FREE, {"data": cycle}, "arguments-too-large")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"data": {1}}, "data is a set"),
        ({"data": [b"x"]}, r"data\[0\] is a bytes"),
        ({"data": {"a": object()}}, r"data\.a is a object"),
        ({"data": float("nan")}, "a number JSON cannot hold"),
        ({"data": float("-inf")}, "a number JSON cannot hold"),
        ({"data": 10**5000}, "a number JSON cannot hold"),
        ({"data": {3: 1}}, "the key 3 in data is no text"),
        ({3: 1}, "the key 3 in the arguments is no text"),
        ({"data": "\ud800"}, "half of a surrogate pair"),
        ({"\udfff": 1}, "half of a surrogate pair"),
    ],
)
def test_what_is_no_json_is_refused_with_its_place(given: Any, said: str) -> None:
    outcome = refused(FREE, given, "invalid-param")
    assert re.search(said, outcome.message)


def test_alternatives_that_multiply_with_depth_are_refused_when_the_data_is_deep() -> None:
    branch = {"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}}
    doubling = tool(
        {"a": {"$ref": "#/$defs/n"}}, schema={"$defs": {"n": {"oneOf": [branch, {**branch, "not": {}}]}}}
    )
    flat: Any = {}
    for _ in range(5):
        flat = {"a": flat}
    assert prepared(doubling, flat)
    for _ in range(40):
        flat = {"a": flat}
    refused(doubling, flat, "arguments-too-large")


def test_of_large_data_the_first_problem_is_told() -> None:
    branches = [{"type": "object", "properties": {"a": {"type": "integer"}}}] * 60
    rows = tool({"rows": {"type": "array", "items": {"anyOf": branches}}})
    outcome = refused(rows, {"rows": [{"a": "1"}] * 20_000}, "invalid-param")  # all of them take 40 s
    assert outcome.meta == {"path": "rows[0]"}


# altogether


@given(
    JSON
    | st.dictionaries(st.sampled_from(["url", "URL", "limit", "tags", "options", 'url"']), JSON, max_size=3)
)
def test_whatever_comes_is_prepared_or_refused_with_a_code(given: Any) -> None:
    outcome = prepare(FILES, given)
    if isinstance(outcome, ToolResult):
        assert outcome.code in CODES
        assert outcome.message
    else:
        json.dumps(outcome.arguments, allow_nan=False)
        again = prepare(FILES, outcome.arguments)
        assert again == Prepared(outcome.arguments, ())


def test_validators_are_kept_by_descriptor_and_bounded() -> None:
    for at in range(arguments_module._MOST_VALIDATORS + 20):
        prepare(tool({"a": TEXT}, summary=f"number {at}"), {"a": "x"})
    assert len(arguments_module._kept) == arguments_module._MOST_VALIDATORS
    first = arguments_module._checks_of(FILES)
    assert arguments_module._checks_of(FILES) is first


def test_many_threads_may_prepare_at_once() -> None:
    failures: list[Any] = []

    def work(number: int) -> None:
        for at in range(50):
            outcome = prepare(tool({"a": TEXT}, summary=f"{at}"), {"A": f"{number}"})
            if outcome != Prepared({"a": f"{number}"}, ("read the key 'A' as a",)):
                failures.append(outcome)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


PLAIN = st.dictionaries(
    st.sampled_from([*FILES.parameters["properties"], "URL", "other"]),
    st.one_of(
        st.booleans(),
        st.integers(),
        st.integers(-(1 << 60), 1 << 60),
        st.text(max_size=8),
        st.sampled_from(["result:abc", "[1]", "7", "true", "\ud800", "ü"]),
        JSON,
    ),
    max_size=4,
)


@given(PLAIN)
def test_arguments_that_need_nothing_at_a_glance_are_those_that_a_close_look_leaves_alone(
    arguments: dict[str, Any],
) -> None:
    at_a_glance = prepare(FILES, arguments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arguments_module, "_MOST_PLAIN", -1)
        assert prepare(FILES, arguments) == at_a_glance


def test_most_calls_are_plain_at_a_glance_and_a_handle_never_is() -> None:
    leaves = arguments_module._checks_of(FILES).repairs.leaves
    assert leaves({"source": "x", "limit": 3, "dryRun": True})
    for odd in ({"source": "result:abc"}, {"limit": "3"}, {"other": 1}, {"source": "ü"}, {"share": 0.5}):
        assert not leaves(odd)
