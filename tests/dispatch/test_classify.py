"""Permission and class of a call, derived before the gate is asked."""

from __future__ import annotations

from typing import Any

import pytest
from chalie.calls import Call, SideEffect
from chalie.dispatch.arguments import Prepared, prepare

from .inside import CHAT, Inside, Plain

# --- permission and class ---------------------------------------------------------------------------------


class Post(Plain):
    called = "post"
    actions = {"read": SideEffect.READ, "send": SideEffect.EXTERNAL_SEND}
    properties = {"action": {"type": "string"}, "to": {"type": "object"}}


def seen_by_gate(inside: Inside, cls: type[Plain], arguments: dict[str, Any], **facts: Any) -> Call:
    descriptor = inside.add(cls, **facts)
    prepared = prepare(descriptor, arguments)
    assert isinstance(prepared, Prepared)
    return inside.dispatcher._approach.prepare_call(inside.turn(), descriptor, prepared)


def test_the_action_argument_decides_permission_and_class(inside: Inside) -> None:
    call = seen_by_gate(inside, Post, {"action": "send"})
    assert (call.permission, call.effect, call.must_ask) == ("post.send", SideEffect.EXTERNAL_SEND, False)
    assert inside.loaded == []


def test_an_absent_action_is_the_default_that_the_schema_declares(inside: Inside) -> None:
    class Defaulting(Post):
        called = "defaulting"
        properties = {"action": {"type": "string", "default": "read"}}

    call = seen_by_gate(inside, Defaulting, {})
    assert (call.permission, call.effect) == ("defaulting.read", SideEffect.READ)


class Judging(Post):
    called = "judging"
    said: Any = "send"

    def classify(self, params: Any) -> Any:
        if isinstance(self.said, BaseException):
            raise self.said
        return self.said


def test_an_own_classify_decides_and_is_imported_for_it(inside: Inside) -> None:
    call = seen_by_gate(inside, Judging, {})
    assert (call.permission, call.effect) == ("judging.send", SideEffect.EXTERNAL_SEND)
    assert inside.loaded == ["judging"]


@pytest.mark.parametrize(
    "said", ["undeclared", None, 7, ["send"], RuntimeError("no"), SystemExit(1), KeyboardInterrupt()]
)
def test_a_classify_that_cannot_be_trusted_means_the_severest_class_and_a_person(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, said: Any
) -> None:
    monkeypatch.setattr(Judging, "said", said)
    call = seen_by_gate(inside, Judging, {})
    assert (call.permission, call.effect, call.must_ask) == ("judging", SideEffect.DESTRUCTIVE, True)


def test_what_classify_raises_is_the_reason_that_people_see(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Judging, "said", ValueError("it speaks\nof  a place\udcff " + "x" * 400))
    call = seen_by_gate(inside, Judging, {})
    assert call.asked_because.startswith("it speaks of a place\\udcff xxx")
    assert len(call.asked_because) == 200
    decision = inside.gate.decide(call, CHAT)
    (verdict,) = (each for each in decision.verdicts if each.value == "must_ask")
    assert (verdict.author, verdict.reason) == (call.dist, call.asked_because)
    monkeypatch.setattr(Judging, "said", RuntimeError())
    assert seen_by_gate(inside, Judging, {}).asked_because == ""


def test_a_secret_argument_is_not_in_that_reason(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    def classify(self: object, params: Any) -> str:
        raise ValueError(f"{params['password']} is not a good one")

    monkeypatch.setattr(Judging, "classify", classify)
    monkeypatch.setattr(Judging, "properties", {"password": {"type": "string", "writeOnly": True}})
    call = seen_by_gate(inside, Judging, {"password": "hunter2hunter2"})
    assert call.must_ask and "hunter2" not in call.asked_because


def test_a_classify_that_hangs_means_the_same(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    over = threading.Event()
    monkeypatch.setattr("chalie.dispatch.making.ASK_S", 0.05)
    monkeypatch.setattr(Judging, "classify", lambda self, params: over.wait(30))
    call = seen_by_gate(inside, Judging, {})
    over.set()
    assert call.must_ask and call.effect is SideEffect.DESTRUCTIVE


def test_an_allow_row_does_not_cover_a_call_whose_action_is_unknown(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Judging, "said", "undeclared")
    turn = inside.turn(inside.add(Judging), channel=CHAT)
    assert inside.call(turn, "judging").code == "approval-pending"


def test_what_classify_does_to_the_arguments_does_not_change_what_runs(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    def classify(self: object, params: Any) -> str:
        params["to"]["name"] = "somebody else"
        return "read"

    monkeypatch.setattr(Judging, "classify", classify)
    turn = inside.turn(inside.add(Judging))
    assert inside.call(turn, "judging", {"to": {"name": "bob"}}).body == '{"to":{"name":"bob"}}'
