from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import cattrs
import pytest
from chalie import Ability, SideEffect, ToolResult
from chalie.ability import facts
from chalie.catalogue.descriptor import Descriptor
from chalie.errors import ArgumentRefused, ChalieError, DescribeFailed, NameRefused, SchemaRefused


class Notes(Ability):
    """An ability that is right in every fact; tests spoil one of them."""

    actions = {"store": SideEffect.WRITE, "recall": SideEffect.READ}
    action_required = {"store": ["text"]}
    aliases = {"content": "text"}

    def name(self) -> str:
        return "notes"

    def summary(self) -> str:
        return "Keep notes\nand find them."

    def examples(self) -> Sequence[str]:
        return ["note this", "what did I note", "remember it", "find my note", "write down", "look up"]

    def search_tooltip(self) -> str:
        return "keep notes"

    def parameters(self) -> Mapping[str, Any] | type:
        return {
            "type": "object",
            "properties": {"action": {"enum": ["store", "recall"]}, "text": {"type": "string"}},
            "required": ["action"],
        }

    def run(self, params: Any) -> ToolResult:
        return ToolResult.ok(params)


def described(ability: Ability, dist: str = "acme") -> dict[str, Any]:
    return facts(ability, dist=dist, dist_version="1.0", target="acme:Notes")


def spoilt(**changes: Any) -> Ability:
    """Return a Notes with class facts, or methods that return something else."""

    def returning(value: Any) -> Any:
        return lambda self: value

    facts = {k: returning(v) if callable(getattr(Notes, k)) else v for k, v in changes.items()}
    return type("Spoilt", (Notes,), facts)()


class FakeContext:
    principal = "ada"
    conversation = None
    channel = "chat"
    client: Mapping[str, Any] = {}


def test_the_facts_are_those_of_a_descriptor_and_plain_json() -> None:
    found = described(Notes())
    of_servers = {"bare", "declared"}
    assert set(found) == {field.name for field in attrs.fields(Descriptor)} - {"hash"} - of_servers
    assert json.loads(json.dumps(found)) == found
    descriptor = cattrs.structure(found, Descriptor)
    assert descriptor.name == descriptor.namespace == "notes"
    assert descriptor.actions == {"store": SideEffect.WRITE, "recall": SideEffect.READ}
    assert descriptor.action_required == {"store": ("text",)}
    assert descriptor.aliases == {"content": "text"}
    assert descriptor.classifies is False


def test_facts_are_the_same_each_time_they_are_read() -> None:
    assert described(Notes()) == described(Notes())


def test_a_classify_of_its_own_is_noticed() -> None:
    class Careful(Notes):
        def classify(self, params: Any) -> str:
            return "recall"

    assert described(Careful())["classifies"] is True


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"name": "Notes"}, NameRefused, "Notes is no name"),
        ({"name": "find_tools"}, NameRefused, "belongs to the host"),
        ({"summary": " "}, DescribeFailed, r"summary\(\) of notes \(acme:Notes\) is empty"),
        ({"summary": None}, DescribeFailed, "is empty or no text"),
        ({"summary": "x" * 2001}, DescribeFailed, "has 2001 characters"),
        ({"summary": "safe\u202eelpmaxe"}, DescribeFailed, r"invisible character U\+202E"),
        ({"summary": "a\x1b[2Jb"}, DescribeFailed, r"invisible character U\+001B"),
        ({"summary": "a\ud800"}, DescribeFailed, r"invisible character U\+D800"),
        ({"examples": []}, DescribeFailed, "no list of 1 to 50 texts"),
        ({"examples": "roll dice"}, DescribeFailed, "no list of 1 to 50 texts"),
        ({"examples": ["a", 3]}, DescribeFailed, "example 2 of notes"),
        ({"search_tooltip": ""}, DescribeFailed, r"search_tooltip\(\)"),
        ({"parameters": {}}, SchemaRefused, "describes anything"),
        (
            {"parameters": {"type": "object", "properties": {"async": {}}}},
            SchemaRefused,
            "name the host adds",
        ),
        ({"parameters": complex}, SchemaRefused, "no attrs class"),
        ({"actions": ["store"]}, DescribeFailed, "actions of notes"),
        ({"actions": {"st ore": "write"}}, DescribeFailed, "has the key 'st ore'"),
        (
            {"actions": {"store": "wipe"}},
            DescribeFailed,
            r"actions\['store'\] of notes \(acme:Notes\) is 'wipe'",
        ),
        ({"side_effect": "wipe"}, DescribeFailed, "side_effect of notes"),
        ({"action_required": {"forget": ["text"]}}, DescribeFailed, "names 'forget'"),
        ({"action_required": {"store": ["body"]}}, DescribeFailed, r"action_required\['store'\] of notes"),
        ({"action_required": {"store": "text"}}, DescribeFailed, r"action_required\['store'\] of notes"),
        ({"aliases": {"content": "body"}}, DescribeFailed, "has 'content': 'body'"),
        ({"aliases": {"text": "action"}}, DescribeFailed, "has 'text': 'action'"),
        ({"discoverable": 1}, DescribeFailed, "discoverable of notes"),
        ({"isolate": "no"}, DescribeFailed, "isolate of notes"),
        ({"requires_approval": None}, DescribeFailed, "requires_approval of notes"),
        ({"latency": "slow"}, DescribeFailed, "latency of notes"),
        ({"time_limit_s": 0}, DescribeFailed, "time_limit_s of notes"),
        ({"time_limit_s": True}, DescribeFailed, "time_limit_s of notes"),
        ({"time_limit_s": float("nan")}, DescribeFailed, "time_limit_s of notes"),
        ({"version": 1}, DescribeFailed, "version of notes"),
        ({"namespace": "x" * 65}, DescribeFailed, "namespace of notes"),
    ],
)
def test_a_fact_that_is_wrong_is_refused_with_ability_and_fact(
    changes: dict[str, Any], error: type[ChalieError], said: str
) -> None:
    with pytest.raises(error, match=said):
        described(spoilt(**changes))


def test_only_the_host_may_use_a_reserved_name() -> None:
    assert described(spoilt(name="find_tools"), dist="chalie")["name"] == "find_tools"


def test_facts_with_other_values_are_kept() -> None:
    found = described(
        spoilt(
            namespace="keeping", version="3", time_limit_s=5, latency="high", discoverable=False, isolate=True
        )
    )
    assert (found["namespace"], found["version"], found["time_limit_s"]) == ("keeping", "3", 5.0)
    assert (found["latency"], found["discoverable"], found["isolate"]) == ("high", False, True)


@pytest.mark.parametrize("method", ["tool_schema", "bind", "arguments_for", "parameter_schema"])
def test_a_class_that_redefines_a_sealed_method_is_refused_when_it_is_made(method: str) -> None:
    with pytest.raises(TypeError, match=rf"test_ability\.Bad may not redefine {method}\(\)"):
        type("Bad", (Notes,), {method: lambda self: {}, "__module__": "test_ability"})


def test_a_sealed_method_cannot_come_from_a_mixin_either() -> None:
    class Mixin:
        def tool_schema(self) -> dict[str, Any]:
            return {}

    with pytest.raises(TypeError, match="may not redefine tool_schema"):
        type("Bad", (Mixin, Notes), {})


def test_the_shown_schema_carries_the_hosts_parameters() -> None:
    shown = Notes().tool_schema(background=True, style="anthropic")
    assert shown["name"] == "notes"
    assert set(shown["input_schema"]["properties"]) == {"action", "text", "act_summary", "async"}
    assert "async" not in Notes().tool_schema()["inputSchema"]["properties"]


def test_a_class_with_a_fact_missing_cannot_be_made() -> None:
    class Half(Ability):
        def name(self) -> str:
            return "half"

    with pytest.raises(TypeError, match="abstract"):
        Half()  # type: ignore[abstract]


def test_the_context_exists_only_for_a_call() -> None:
    ability = Notes()
    with pytest.raises(RuntimeError, match=r"Notes\.context exists only while a call runs"):
        _ = ability.context
    context = FakeContext()
    assert ability.bind(context) is ability  # type: ignore[arg-type]
    assert ability.context is context
    with pytest.raises(RuntimeError):
        _ = Notes().context


def test_the_action_is_the_argument_of_that_name_unless_the_class_says_otherwise() -> None:
    assert Notes().classify({"action": "recall"}) == "recall"
    for params in ({}, {"action": None}):
        with pytest.raises(ArgumentRefused) as caught:
            Notes().classify(params)
        assert caught.value.valid == ("store", "recall")


@attrs.frozen
class Wanted:
    action: str
    limit: int = 5


class Typed(Notes):
    action_required: Any = {}
    aliases: Any = {}

    def parameters(self) -> Mapping[str, Any] | type:
        return Wanted


def test_a_class_may_stand_for_the_parameters() -> None:
    ability = Typed()
    assert described(ability)["parameters"]["required"] == ["action"]
    arguments = ability.arguments_for({"action": "recall"})
    assert arguments == Wanted("recall", 5)
    assert ability.classify(arguments) == "recall"
    assert ability.param(arguments, "limit", clamp=(1, 3)) == 3
    assert set(ability.tool_schema()["inputSchema"]["properties"]) == {"action", "limit", "act_summary"}


def test_a_plain_schema_gives_run_a_dict_of_its_own() -> None:
    given = {"action": "recall"}
    arguments = Notes().arguments_for(given)
    assert arguments == given
    assert arguments is not given


def test_param_gives_the_default_for_absent_and_null_but_not_for_falsy() -> None:
    assert Ability.param({}, "n", default=3) == 3
    assert Ability.param({"n": None}, "n", default=3) == 3
    assert Ability.param({"n": 0}, "n", default=3) == 0
    assert Ability.param({"n": ""}, "n", default="x") == ""


def test_param_refuses_what_is_required_and_absent() -> None:
    for params in ({}, {"n": None}):
        with pytest.raises(ArgumentRefused, match="n is required") as caught:
            Ability.param(params, "n", required=True)
        assert caught.value.code == "missing-params"
        assert caught.value.hint == "pass n="
    assert Ability.param({"n": False}, "n", required=True) is False


def test_param_returns_a_choice_as_it_is_listed() -> None:
    choices = ("metric", "Imperial")
    assert Ability.param({"u": " METRIC "}, "u", choices=choices) == "metric"
    assert Ability.param({"u": "imperial"}, "u", choices=choices) == "Imperial"
    with pytest.raises(ArgumentRefused, match="u is not one of") as caught:
        Ability.param({"u": "kelvin"}, "u", choices=choices)
    assert caught.value.valid == choices
    with pytest.raises(ArgumentRefused):
        Ability.param({"u": True}, "u", choices=(1, 2))


@pytest.mark.parametrize(("value", "clamped"), [(-5, 1), (0.5, 1), (7, 7), (1_000, 50), (float("inf"), 50)])
def test_param_brings_a_number_into_its_bounds(value: float, clamped: float) -> None:
    assert Ability.param({"n": value}, "n", clamp=(1, 50)) == clamped


@pytest.mark.parametrize("value", ["7", True, [1], float("nan")])
def test_param_refuses_to_clamp_what_is_no_number(value: Any) -> None:
    with pytest.raises(ArgumentRefused, match="must be a number from 1 to 50"):
        Ability.param({"n": value}, "n", clamp=(1, 50))
