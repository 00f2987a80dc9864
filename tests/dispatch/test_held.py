"""What a person approved while nobody waited runs once, exactly as asked, and says where its result is."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any, ClassVar

import pytest
from attrs import evolve
from chalie.calls import Answer, AnswerKind, HoldView, SideEffect
from chalie.envelope import parse
from chalie.errors import ChalieError, LedgerUnavailable, NotReady
from chalie.gate.answering import answered
from chalie.gate.holds import Holds
from chalie.ledger import Hold, Ledger
from chalie.result import ToolResult

from .inside import CHAT, Inside, Person, Plain
from .waiting import wait_until

BY = "terminal:ada"


class Sends(Plain):
    """Notes what it was run with, and by whom."""

    called = "sends"
    actions: ClassVar = {"mail": SideEffect.EXTERNAL_SEND, "wipe": SideEffect.DESTRUCTIVE}
    properties: ClassVar[dict[str, Any]] = {
        "action": {"type": "string", "enum": ["mail", "wipe"]},
        "to": {"type": "string"},
        "text": {"type": "string"},
        "key": {"type": "string", "writeOnly": True},
    }
    ran: ClassVar[list[tuple[str, str | None, dict[str, Any]]]] = []
    fails: ClassVar[str | None] = None

    def run(self, params: Any) -> ToolResult:
        self.ran.append((self.context.principal, self.context.conversation, dict(params)))
        if self.fails is not None:
            return ToolResult.error("it went wrong", code=self.fails)
        return ToolResult.ok("sent")


@pytest.fixture(autouse=True)
def nothing_ran(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    monkeypatch.setattr(Sends, "ran", [])
    return Sends.ran


MAIL = {"action": "mail", "to": "eve", "text": "hello"}


def asked(inside: Inside, arguments: dict[str, Any] = MAIL, cls: type[Plain] = Sends, **turn: Any) -> Hold:
    """Make a call that waits for a person, and return its hold."""
    descriptor = inside.shelf.get("chalie-ability-test", cls.called) or inside.add(cls, allow=False)
    turn.setdefault("conversation", "talk")
    frame = inside.call(inside.turn(descriptor, **turn), cls.called, arguments)
    assert frame.code == "approval-pending"
    return inside.gate.holds.list()[-1]


def approved(inside: Inside, hold: Hold) -> Hold:
    return inside.gate.holds.answered(hold, Answer(AnswerKind.ONCE, BY))


def state(inside: Inside, hold: Hold) -> str:
    return inside.gate.holds.current(hold).state


# running


def test_an_approved_call_runs_as_it_was_asked_and_its_result_is_in_the_inbox(inside: Inside) -> None:
    hold = approved(inside, asked(inside, principal="bob"))
    assert inside.loaded == []
    text = inside.dispatcher.run_hold(hold.id)
    assert Sends.ran == [("bob", "talk", MAIL)]
    (message,) = inside.ledger.inbox.take("bob", "talk")
    assert (message.text, message.call_id) == (text, hold.call_id)
    assert parse(text or "").body == "sent"
    assert inside.delivered == [("talk", hold.call_id, text)]
    assert state(inside, hold) == "done"


def test_its_rows_stand_under_the_id_of_the_call_that_was_asked(inside: Inside) -> None:
    hold = approved(inside, asked(inside))
    inside.dispatcher.run_hold(hold.id)
    assert [(row.event, row.code, row.by) for row in inside.rows()] == [
        ("call.refused", "approval-pending", None),
        ("call.started", None, BY),
        ("call.finished", None, BY),
    ]
    assert {row.call_id for row in inside.rows()} == {hold.call_id}


def test_it_runs_once_whoever_asks_for_it(inside: Inside) -> None:
    hold = approved(inside, asked(inside))
    results: list[str | None] = []
    threads = [
        threading.Thread(target=lambda: results.append(inside.dispatcher.run_hold(hold.id))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Sends.ran) == 1
    assert len([text for text in results if text is not None]) == 1


@pytest.mark.parametrize("state_", ["pending", "declined"])
def test_what_is_not_approved_does_not_run(inside: Inside, state_: str) -> None:
    hold = asked(inside)
    if state_ == "declined":
        inside.gate.holds.answered(hold, Answer(AnswerKind.DECLINE, BY))
    assert inside.dispatcher.run_hold(hold.id) is None
    assert Sends.ran == []
    with pytest.raises(ChalieError, match="there is no hold"):
        inside.dispatcher.run_hold("nothing")


def test_secrets_reach_the_run_and_nothing_else(inside: Inside) -> None:
    hold = approved(inside, asked(inside, {**MAIL, "key": "very-secret"}))
    assert hold.arguments["key"] == "•••"
    inside.dispatcher.run_hold(hold.id)
    assert Sends.ran[0][2]["key"] == "very-secret"
    assert all("very-secret" not in str(row) for row in inside.ledger.trail.query())
    assert inside.ledger.holds.arguments(hold) is None


def test_a_call_whose_secrets_are_gone_is_void(inside: Inside) -> None:
    hold = approved(inside, asked(inside, {**MAIL, "key": "very-secret"}))
    inside.ledger.holds.secrets.erase(hold.secret)
    assert inside.dispatcher.run_hold(hold.id) is None
    assert (state(inside, hold), Sends.ran) == ("void", [])


def test_a_kept_result_is_bound_when_asked_and_read_when_run(inside: Inside) -> None:
    result = inside.ledger.results.put("ada", "the whole text")
    hold = approved(inside, asked(inside, {**MAIL, "text": f"result:{result}"}))
    assert "sha256:" in hold.arguments["text"]
    inside.dispatcher.run_hold(hold.id)
    assert Sends.ran[0][2]["text"] == "the whole text"


def test_an_async_ability_runs_too(inside: Inside) -> None:
    class Later(Sends):
        called = "later"

        async def run(self, params: Any) -> ToolResult:  # type: ignore[override]
            await asyncio.sleep(0)
            return super().run(params)

    hold = approved(inside, asked(inside, cls=Later))
    assert parse(inside.dispatcher.run_hold(hold.id) or "").body == "sent"


# how it ends


def test_a_tool_that_answers_with_an_error_failed(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sends, "fails", "unreachable")
    hold = approved(inside, asked(inside))
    inside.dispatcher.run_hold(hold.id)
    now = inside.gate.holds.current(hold)
    assert (now.state, now.code) == ("failed", "unreachable")


def test_of_a_run_that_was_given_up_nobody_says_it_failed(inside: Inside, gate: threading.Event) -> None:
    class Hangs(Sends):
        called = "hangs"
        time_limit_s = 0.05

        def run(self, params: Any) -> ToolResult:
            gate.wait(30)
            return ToolResult.ok()

    hold = approved(inside, asked(inside, cls=Hangs))
    inside.dispatcher.run_hold(hold.id)
    now = inside.gate.holds.current(hold)
    assert (now.state, now.code) == ("interrupted", "timed-out")


def test_an_approval_is_not_used_up_by_a_run_that_never_started(inside: Inside) -> None:
    hold = approved(inside, asked(inside))
    load = inside.dispatcher._maker._load

    def changed(*_: Any) -> Any:
        raise NotReady("it changed", hint="restart")

    inside.dispatcher._maker._load = changed
    assert parse(inside.dispatcher.run_hold(hold.id) or "").code == "not-ready"
    assert state(inside, hold) == "not-started"
    assert inside.dispatcher.run_hold(hold.id) is None  # it takes a new yes
    inside.dispatcher._maker._load = load
    approved(inside, inside.gate.holds.current(hold))
    inside.dispatcher.run_hold(hold.id)
    assert (state(inside, hold), len(Sends.ran)) == ("done", 1)


def test_what_cannot_be_recorded_as_started_is_not_run(inside: Inside) -> None:
    hold = approved(inside, asked(inside))
    with inside.ledger._fast.transaction() as connection:
        connection.execute(
            "CREATE TRIGGER full BEFORE UPDATE ON holds WHEN new.state = 'started' "
            "BEGIN SELECT RAISE(ABORT, 'no room'); END"
        )
    assert parse(inside.dispatcher.run_hold(hold.id) or "").code == "cannot-record"
    assert (state(inside, hold), Sends.ran) == ("not-started", [])


def test_a_result_that_cannot_be_recorded_is_told_and_the_hold_is_interrupted_later(inside: Inside) -> None:
    hold = approved(inside, asked(inside))
    with inside.ledger._fast.transaction() as connection:
        connection.execute(
            "CREATE TRIGGER full BEFORE UPDATE ON holds WHEN new.state = 'done' "
            "BEGIN SELECT RAISE(ABORT, 'no room'); END"
        )
    frame = parse(inside.dispatcher.run_hold(hold.id) or "")
    assert frame.meta["recorded"] is False
    assert state(inside, hold) == "started"
    inside.dispatcher.recover()
    assert state(inside, hold) == "interrupted"
    assert len(Sends.ran) == 1


# what it is bound to


@pytest.mark.parametrize(
    "changes",
    [{"summary": "Do something else."}, {"examples": ("other",) * 6}, {"requires_approval": True}],
    ids=lambda changes: next(iter(changes)),
)
def test_a_tool_that_is_described_differently_by_now_voids_the_hold(
    inside: Inside, changes: dict[str, Any]
) -> None:
    hold = approved(inside, asked(inside))
    inside.add(Sends, allow=False, **changes)
    assert inside.dispatcher.run_hold(hold.id) is None
    now = inside.gate.holds.current(hold)
    assert (now.state, Sends.ran) == ("void", [])
    assert "described differently now" in (now.detail or "")
    (message,) = inside.ledger.inbox.take("ada", "talk")
    assert "call it again if it is still wanted" in message.text


def test_a_tool_that_another_package_owns_by_now_voids_the_hold(inside: Inside) -> None:
    hold = approved(inside, asked(inside))
    del inside.shelf.descriptors["chalie-ability-test", "sends"]
    inside.add(Sends, "chalie-ability-other", allow=False)
    assert inside.dispatcher.run_hold(hold.id) is None
    assert (state(inside, hold), Sends.ran) == ("void", [])


def test_a_package_that_is_missing_for_a_moment_voids_nothing(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = approved(inside, asked(inside))
    descriptor = inside.shelf.descriptors.pop(("chalie-ability-test", "sends"))
    monkeypatch.setattr(inside.shelf, "state", lambda dist: "in-progress")
    with pytest.raises(ChalieError) as caught:
        inside.dispatcher.run_hold(hold.id)
    assert (caught.value.code, state(inside, hold)) == ("not-ready", "approved")
    inside.shelf.descriptors[descriptor.key] = descriptor
    inside.dispatcher.run_hold(hold.id)
    assert state(inside, hold) == "done"


def test_a_call_that_would_be_another_action_by_now_is_void(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Judged(Sends):
        called = "judged"
        says: ClassVar[str] = "mail"

        def classify(self, params: Any) -> str:
            return self.says

    hold = approved(inside, asked(inside, cls=Judged))
    monkeypatch.setattr(Judged, "says", "wipe")
    assert inside.dispatcher.run_hold(hold.id) is None
    now = inside.gate.holds.current(hold)
    assert (now.state, Sends.ran) == ("void", [])
    assert "judged.wipe" in (now.detail or "")


def test_arguments_that_were_changed_in_the_ledger_do_not_run(inside: Inside) -> None:
    hold = approved(inside, asked(inside))
    changed = json.dumps({**MAIL, "to": "mallory"}).encode()
    inside.ledger._fast.write("UPDATE holds SET arguments = ? WHERE id = ?", (changed, hold.id))
    assert inside.dispatcher.run_hold(hold.id) is None
    assert (state(inside, hold), Sends.ran) == ("void", [])


def test_a_hold_of_another_environment_is_not_run_here(inside: Inside) -> None:
    hold = approved(inside, asked(inside))
    inside.ledger._fast.write("UPDATE holds SET environment = 'elsewhere' WHERE id = ?", (hold.id,))
    with pytest.raises(ChalieError, match="was asked in another Python environment") as caught:
        inside.dispatcher.run_hold(hold.id)
    assert caught.value.code == "not-allowed"
    assert Sends.ran == []


def test_a_row_that_denies_by_now_keeps_an_approved_call_from_running(inside: Inside) -> None:
    hold = approved(inside, asked(inside))
    inside.ledger.permissions.set("chat", "chalie-ability-test", "sends", "deny", by=BY)
    assert parse(inside.dispatcher.run_hold(hold.id) or "").code == "permission-denied"
    assert (state(inside, hold), Sends.ran) == ("not-started", [])


# inline


def test_a_call_that_is_answered_at_once_is_spent_started_and_done_without_the_inbox(inside: Inside) -> None:
    descriptor = inside.add(Sends, allow=False)
    turn = inside.turn(descriptor, approver=Person(), conversation="talk")
    assert inside.call(turn, "sends", MAIL).body == "sent"
    (hold,) = inside.gate.holds.list(ended=True)
    assert (hold.state, hold.decided_by) == ("done", "token:test")
    assert inside.ledger.inbox.take("ada", "talk") == ()
    assert [row.event for row in inside.rows()] == ["call.started", "call.finished"]


def test_an_async_and_a_background_call_end_their_holds_too(inside: Inside) -> None:
    descriptor = inside.add(Sends, allow=False)
    turn = inside.turn(descriptor, approver=Person(), conversation="talk")
    assert asyncio.run(inside.acall(turn, "sends", MAIL)).body == "sent"
    assert inside.call(turn, "sends", {**MAIL, "async": True}).meta["state"] == "running"
    wait_until(lambda: len(inside.delivered) == 1)
    assert [hold.state for hold in inside.gate.holds.list(ended=True)] == ["done", "done"]
    assert len(inside.ledger.inbox.take("ada", "talk")) == 1


def test_a_cancelled_call_gives_its_approval_back(inside: Inside) -> None:
    descriptor = inside.add(Sends, allow=False)
    turn = inside.turn(descriptor, conversation="talk")

    class Cancels(Person):
        def ask(self, hold: HoldView) -> Answer:
            turn.cancel.cancel()
            return super().ask(hold)

    turn.approver = Cancels()
    assert inside.call(turn, "sends", MAIL).code == "cancelled"
    assert [hold.state for hold in inside.gate.holds.list()] == ["not-started"]
    assert Sends.ran == []


def test_every_road_of_a_held_call_meets_the_gate_once(inside: Inside) -> None:
    descriptor = inside.add(Sends, allow=False)
    inside.call(inside.turn(descriptor, approver=Person()), "sends", MAIL)
    assert inside.gate.passes == 1
    hold = approved(inside, asked(inside))
    assert inside.gate.passes == 2
    inside.dispatcher.run_hold(hold.id)
    assert inside.gate.passes == 3  # the replay is a road of its own


# the live host


def elsewhere(inside: Inside, hold: Hold, kind: AnswerKind = AnswerKind.ONCE) -> Hold:
    """Answer as another process would, which must not run it itself."""
    with Ledger.open(inside.ledger.path) as ledger:

        def never(hold_id: str) -> str | None:
            raise AssertionError("the live host has it")

        return answered(Holds(ledger), ledger, never, hold.id, kind, BY)


def test_the_live_host_of_a_conversation_runs_what_is_approved_elsewhere(inside: Inside) -> None:
    hold = asked(inside)
    assert elsewhere(inside, hold).state != "approved"
    wait_until(lambda: state(inside, hold) == "done")
    wait_until(lambda: len(inside.delivered) == 1)
    assert len(Sends.ran) == 1
    wait_until(lambda: inside.dispatcher._held._thread is None)  # nothing waits: it looks no longer
    again = asked(inside, {**MAIL, "to": "bob"})
    elsewhere(inside, again)
    wait_until(lambda: state(inside, again) == "done")


def test_without_a_live_host_the_approving_process_runs_it(inside: Inside, tmp_path: Path) -> None:
    hold = asked(inside)
    inside.ledger._fast.write("UPDATE leases SET owner = '1-gone'")
    inside.ledger._fast.write("UPDATE holds SET host = '1-gone'")
    now = answered(inside.gate.holds, inside.ledger, inside.dispatcher.run_hold, hold.id, AnswerKind.ONCE, BY)
    assert (now.state, len(Sends.ran)) == ("done", 1)
    with pytest.raises(ChalieError, match="was approved and has run"):
        answered(inside.gate.holds, inside.ledger, inside.dispatcher.run_hold, hold.id, "once", BY)


def test_an_approval_whose_process_died_before_it_ran_can_be_given_again(inside: Inside) -> None:
    hold = approved(inside, asked(inside, conversation=None))
    inside.ledger._fast.write("UPDATE holds SET host = '1-gone'")
    now = answered(inside.gate.holds, inside.ledger, inside.dispatcher.run_hold, hold.id, "once", BY)
    assert now.state == "done"


def test_a_conversation_is_taken_over_only_from_a_process_that_is_gone(inside: Inside) -> None:
    asked(inside)
    with Ledger.open(inside.ledger.path) as other:
        assert not other.holds.lease("talk")
        inside.ledger._fast.write("UPDATE leases SET owner = '1-gone'")
        assert other.holds.lease("talk")
        assert not other.holds.lease("quiet")


def test_the_caller_that_waits_runs_what_is_approved_elsewhere_and_gets_the_result(opened: Any) -> None:
    inside: Inside = opened(ask_timeout_s=30.0)
    descriptor = inside.add(Sends, allow=False)
    over = threading.Event()

    class Watches(Person):
        def ask(self, hold: HoldView) -> Answer:
            elsewhere(inside, inside.gate.holds.get(hold.id))
            over.wait(30)
            raise TimeoutError

    turn = inside.turn(descriptor, approver=Watches(), conversation="talk")
    assert inside.call(turn, "sends", MAIL).body == "sent"
    over.set()
    assert len(Sends.ran) == 1
    assert inside.ledger.inbox.take("ada", "talk") == ()


def test_the_ledger_that_fails_for_a_moment_ends_no_watch(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = asked(inside)
    ready, failed = inside.ledger.holds.ready, threading.Event()

    def once(environment: str) -> tuple[str, ...]:
        if not failed.is_set():
            failed.set()
            raise LedgerUnavailable("busy")
        return ready(environment)

    monkeypatch.setattr(inside.ledger.holds, "ready", once)
    elsewhere(inside, hold)
    wait_until(lambda: state(inside, hold) == "done")


# where a message lands


class Lands(Sends):
    called = "lands"
    where: ClassVar[Any] = None

    def destination(self, params: Any) -> str | None:
        if isinstance(self.where, BaseException):
            raise self.where
        return self.context.conversation if self.where == "here" else self.where


@pytest.mark.parametrize(
    ("where", "lands"),
    [("here", True), ("talk", True), ("other", False), (None, False), (7, False), (RuntimeError(), False)],
)
def test_where_a_message_lands_is_computed_by_the_ability(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, where: Any, lands: bool
) -> None:
    monkeypatch.setattr(Lands, "where", where)
    descriptor = inside.add(Lands)
    assert descriptor.locates
    call = inside.dispatcher.examine(inside.turn(descriptor, conversation="talk"), "lands", MAIL)
    assert not isinstance(call, ToolResult)
    assert call.lands_in_current_conversation is lands
    outside = inside.dispatcher.examine(inside.turn(descriptor), "lands", MAIL)
    assert not isinstance(outside, ToolResult)
    assert not outside.lands_in_current_conversation


def test_only_what_sends_is_asked_where_it_lands(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lands, "where", "here")
    call = inside.dispatcher.examine(
        inside.turn(inside.add(Lands), conversation="talk"), "lands", {"action": "wipe"}
    )
    assert not isinstance(call, ToolResult)
    assert call.destination is None


def test_a_model_cannot_say_where_a_message_lands(inside: Inside) -> None:
    turn = inside.turn(inside.add(Sends), conversation="talk")
    call = inside.dispatcher.examine(turn, "sends", {**MAIL, "destination": "talk"})
    assert isinstance(call, ToolResult) or call.destination is None


def test_nothing_of_this_changes_a_channel_without_a_person(inside: Inside) -> None:
    quiet = evolve(CHAT, name="quiet", policy="external_agent", has_person=False)
    turn = inside.turn(inside.add(Sends, allow=False), channel=quiet, approver=Person())
    assert inside.call(turn, "sends", MAIL).code == "permission-denied"
    assert inside.gate.holds.list(ended=True) == ()


# handles of kept results


def test_a_handle_runs_as_the_text_that_was_asked_about(inside: Inside) -> None:
    handle = f"result:{inside.ledger.results.put('ada', 'the whole text')}"
    looks = f"result:0123456789abcdef sha256:{'0' * 64} 5 bytes"
    hold = approved(inside, asked(inside, {**MAIL, "text": handle, "to": looks, "key": handle}))
    assert "sha256:" in hold.arguments["text"] and hold.arguments["key"] == "•••"
    assert inside.dispatcher.run_hold(hold.id) is not None
    assert Sends.ran == [
        ("ada", "talk", {**MAIL, "text": "the whole text", "to": looks, "key": "the whole text"})
    ]


def test_a_hold_whose_kept_result_is_gone_becomes_void(inside: Inside) -> None:
    handle = f"result:{inside.ledger.results.put('ada', 'the whole text')}"
    hold = approved(inside, asked(inside, {**MAIL, "text": handle}))
    inside.ledger.results.expire(now=10.0**12)
    assert inside.dispatcher.run_hold(hold.id) is None
    assert state(inside, hold) == "void" and Sends.ran == []
    (message,) = inside.ledger.inbox.take("ada", "talk")
    assert "is not kept any more" in message.text


def test_an_action_behind_a_handle_is_what_is_asked_about(inside: Inside) -> None:
    handle = f"result:{inside.ledger.results.put('ada', 'wipe')}"
    hold = asked(inside, {**MAIL, "action": handle})
    assert hold.permission == "sends.wipe"
    approved(inside, hold)
    assert inside.dispatcher.run_hold(hold.id) is not None
    assert [params["action"] for _, _, params in Sends.ran] == ["wipe"]
