"""A handle of a kept result is judged, checked and masked as what it stands for, and shown as what it is."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from chalie.calls import AnswerKind, HoldView, SideEffect
from chalie.dispatch.handles import MOST_EXPANDED, Handles, _replaced, has_handle
from chalie.errors import ArgumentRefused, ChalieError
from chalie.result import ToolResult
from hypothesis import given
from hypothesis import strategies as st

from .inside import Inside, Person, Plain


class Database(Plain):
    called = "db"
    properties = {"sql": {"type": "string", "maxLength": 100_000, "pattern": "^[a-zA-Z0-9:;* _-]+$"}}
    actions = {"read": SideEffect.READ, "write": SideEffect.DESTRUCTIVE}
    ran: Any = None

    def classify(self, params: Any) -> str:
        return "write" if params["sql"].lstrip().lower().startswith("drop") else "read"

    def run(self, params: Any) -> ToolResult:
        type(self).ran = params["sql"]
        return ToolResult.ok("ran")


def kept(inside: Inside, body: str) -> str:
    return f"result:{inside.ledger.results.put('ada', body)}"


def test_a_text_behind_a_handle_is_classified_as_what_runs(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Database, "ran", None)
    turn = inside.turn(inside.add(Database, allow=False))
    for permission, setting in (("db.read", "allow"), ("db.write", "deny")):
        inside.ledger.permissions.set("chat", "chalie-ability-test", permission, setting, by="test")
    drop, select = kept(inside, "DROP TABLE users; --"), kept(inside, "SELECT 1")
    assert inside.call(turn, "db", {"sql": drop}).code == "permission-denied"
    assert Database.ran is None
    assert inside.call(turn, "db", {"sql": select}).status == "success"
    assert Database.ran == "SELECT 1"
    assert [row.permission for row in inside.rows()] == ["db.write", "db.read", "db.read"]


def test_a_text_behind_a_handle_is_checked_against_the_schema(inside: Inside) -> None:
    turn = inside.turn(inside.add(Database))
    for refused in ("select '", "x" * 100_001):
        frame = inside.call(turn, "db", {"sql": kept(inside, refused)})
        assert frame.code == "invalid-param" and refused not in frame.body
    assert inside.gate.passes == 0


class Acts(Plain):
    called = "acts"
    properties = {"action": {"enum": ["look", "wipe"]}, "n": {"type": "integer", "maximum": 5}}
    actions = {"look": SideEffect.READ, "wipe": SideEffect.DESTRUCTIVE}
    action_required = {"wipe": ["n"]}


def test_an_action_behind_a_handle_is_the_action(inside: Inside) -> None:
    turn = inside.turn(inside.add(Acts))
    inside.ledger.permissions.set("chat", "chalie-ability-test", "acts.wipe", "deny", by="test")
    wipe = kept(inside, "wipe")
    assert inside.call(turn, "acts", {"action": wipe}).code == "missing-params"
    assert inside.call(turn, "acts", {"action": wipe, "n": kept(inside, "3")}).code == "permission-denied"
    assert inside.call(turn, "acts", {"action": kept(inside, "fly")}).code == "unknown-action"
    assert inside.call(turn, "acts", {"action": "look", "n": kept(inside, "6")}).code == "invalid-param"
    assert json.loads(inside.call(turn, "acts", {"action": "look", "n": kept(inside, "4")}).body)["n"] == 4


class Lists(Plain):
    called = "lists"
    aliases = {"list": "a"}
    properties = {
        "a": {"type": "array"},
        "b": {"$ref": "#/$defs/L"},
        "c": {"anyOf": [{"type": "array"}, {"type": "null"}]},
        "d": {"type": "object", "properties": {"x": {"type": "array"}}},
        "e": {"type": "array", "items": {"type": "string"}},
        "f": {"type": "string"},
    }

    def parameters(self) -> dict[str, Any]:
        return {**super().parameters(), "$defs": {"L": {"type": "array"}}}

    def run(self, params: Any) -> ToolResult:
        return ToolResult.ok(params)


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ({"a": "H"}, "a"),
        ({"b": "H"}, "b"),
        ({"c": "H"}, "c"),
        ({" a ": "H"}, "a"),
        ({"list": "H"}, "a"),
        ({"d": {"x": "H"}}, "d"),
        ({"d": '{"x": "H"}'}, "d"),
        ({"e": "H"}, "e"),
    ],
)
def test_kept_json_takes_the_place_of_a_handle_wherever_no_text_is_wanted(
    inside: Inside, arguments: dict[str, Any], key: str
) -> None:
    turn = inside.turn(inside.add(Lists))
    rows = ["one", "two, three"]
    written = json.loads(json.dumps(arguments).replace("H", kept(inside, json.dumps(rows))))
    body = json.loads(inside.call(turn, "lists", written).body)
    assert body == {key: {"x": rows} if key == "d" else rows}
    shown = inside.rows("call.started")[-1].arguments or ""
    assert "sha256:" in shown and "three" not in shown


def test_where_a_text_is_wanted_kept_json_stays_text(inside: Inside) -> None:
    turn = inside.turn(inside.add(Lists))
    assert json.loads(inside.call(turn, "lists", {"f": kept(inside, "[1]")}).body) == {"f": "[1]"}


def test_a_million_kept_rows_can_be_handed_on(inside: Inside) -> None:
    class Counts(Lists):
        called = "counts"

        def run(self, params: Any) -> ToolResult:
            return ToolResult.ok(len(params["a"]))

    handle = kept(inside, json.dumps(list(range(1_000_000)), separators=(",", ":")))
    assert inside.call(inside.turn(inside.add(Counts)), "counts", {"a": handle}).body == "1000000"


def test_too_much_behind_handles_is_refused_before_anything_is_read(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = inside.turn(inside.add(Lists))
    handle = kept(inside, "z" * 70_000)
    monkeypatch.setattr(inside.ledger.results, "get", None)
    frame = inside.call(turn, "lists", {"a": [handle] * 4000})
    assert frame.code == "arguments-too-large" and inside.gate.passes == 0


def test_each_kept_text_is_looked_up_and_read_once_per_call(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    results = inside.ledger.results
    for name in ("get", "facts"):
        plain = getattr(results, name)

        def counted(principal: str, result_id: str, name: str = name, plain: Any = plain) -> Any:
            asked.append(name)
            return plain(principal, result_id)

        monkeypatch.setattr(results, name, counted)
    inside.call(inside.turn(inside.add(Lists)), "lists", {"a": [kept(inside, "text")] * 100})
    assert sorted(asked) == ["facts", "get"]


def test_a_text_that_only_looks_bound_is_data_beside_a_real_handle(inside: Inside) -> None:
    turn = inside.turn(inside.add(Lists))
    handle = kept(inside, "text")
    bound = Handles(inside.ledger.results).bind("ada", {"a": handle})["a"]
    for looks in (f"result:0123456789abcdef sha256:{'0' * 64} 5 bytes", bound, f"{bound} as text"):
        body = json.loads(inside.call(turn, "lists", {"a": [handle, looks]}).body)
        assert body == {"a": ["text", looks]}
        assert json.loads(inside.rows("call.started")[-1].arguments or "")["a"] == [bound, f"{looks} as text"]


def test_a_bound_handle_whose_text_is_another_one_is_refused(inside: Inside) -> None:
    handles = Handles(inside.ledger.results)
    bound = handles.bind("ada", {"a": kept(inside, "text")})
    assert handles.expand("ada", bound) == {"a": "text"}
    for wrong, right in (("sha256:....", "sha256:0000"), ("4 bytes", "3 bytes")):
        with pytest.raises(ChalieError, match="no kept result"):
            handles.expand("ada", {"a": re.sub(wrong, right, bound["a"])})
    with pytest.raises(ChalieError, match="no kept result"):
        handles.expand("eve", bound)
    with pytest.raises(ArgumentRefused, match="over"):
        handles.expand("ada", {"a": bound["a"].replace(" 4 bytes", f" {MOST_EXPANDED + 1} bytes")})


class Login(Plain):
    called = "login"
    properties = {"key": {"type": "string", "writeOnly": True}}

    def run(self, params: Any) -> ToolResult:
        raise ValueError("cannot parse " + params["key"])


def test_what_a_handle_in_a_secret_argument_stands_for_is_secret(inside: Inside) -> None:
    turn = inside.turn(inside.add(Login))
    for secret in ("SECRETBODY", "-----BEGIN KEY SECRETBODY " + "z" * 70_000):
        assert inside.call(turn, "login", {"key": kept(inside, secret)}).code == "unhandled-exception"
        detail = inside.rows()[-1].detail or ""
        assert detail.startswith("ValueError: ") and "SECRETBODY" not in detail
        assert "test_handles.py:" in detail


def test_what_is_approved_runs_as_it_was_bound_though_it_was_let_go_meanwhile(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = Person(AnswerKind.ONCE)
    monkeypatch.setattr(Database, "ran", None)
    turn = inside.turn(inside.add(Database, allow=False), approver=person)
    inside.call(turn, "db", {"sql": kept(inside, "DROP TABLE users")})
    assert Database.ran == "DROP TABLE users"
    assert person.shown[0].permission == "db.write" and "sha256:" in person.shown[0].arguments["sql"]


def test_who_is_asked_cannot_change_what_is_recorded_or_runs(inside: Inside) -> None:
    class Spoils(Person):
        def ask(self, hold: HoldView) -> Any:
            hold.arguments["a"].clear()
            hold.arguments["a"].append("nobody")
            return super().ask(hold)

    turn = inside.turn(inside.add(Lists, allow=False), approver=Spoils())
    assert json.loads(inside.call(turn, "lists", {"a": ["eve"]}).body) == {"a": ["eve"]}
    assert inside.rows("call.started")[-1].arguments == '{"a":["eve"]}'
    turn = inside.turn(*turn.active.values(), approver=Spoils(AnswerKind.DECLINE))
    assert inside.call(turn, "lists", {"a": ["eve"]}).code == "declined"
    assert inside.rows("call.refused")[-1].arguments == '{"a":["eve"]}'


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.just("result:ab"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_replacing_touches_every_text_and_nothing_else(value: Any) -> None:
    texts: list[str] = []

    def keep(text: str) -> str:
        texts.append(text)
        return text

    assert _replaced(value, keep) == value
    assert has_handle(value) == any(text.startswith("result:") for text in texts)
