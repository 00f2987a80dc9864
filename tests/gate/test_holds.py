"""Holds: stored before anyone is asked, answered once from anywhere, bound to exactly what was shown."""

from __future__ import annotations

import json
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from chalie.calls import Answer, AnswerKind, Call, HoldChange, HoldView, Limit
from chalie.errors import ChalieError, LedgerUnavailable
from chalie.gate.admission import Admission
from chalie.gate.gate import Gate
from chalie.gate.holds import Holds
from chalie.gate.policies import Policies
from chalie.ledger import Hold, Ledger
from hypothesis import given
from hypothesis import strategies as st

from .conftest import CHAT, Hooks, a_call, a_view

BY = "terminal:ada"
DIST = "chalie-ability-email"


class Clock:
    """A time that a test moves."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


class Elsewhere:
    """An approver that says nothing itself while something happens to the ledger."""

    def __init__(self, happens: Callable[[HoldView], None]) -> None:
        self._happens = happens
        self.over = threading.Event()

    def ask(self, hold: HoldView) -> Answer:
        self._happens(hold)
        self.over.wait(30)
        raise TimeoutError("too late")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def timed(tmp_path: Path, clock: Clock) -> Iterator[tuple[Gate, Ledger]]:
    with Ledger.open(tmp_path / "timed.sqlite", clock=clock) as opened:
        yield Gate(opened, clock=clock), opened


def admitted(
    gate: Gate, approver: Any = None, view: Any = a_view, turn: str = "t1", **changes: Any
) -> Admission:
    return gate.admit(a_call(**changes), CHAT, approver, view, turn=turn)


def waiting(gate: Gate, **changes: Any) -> Hold:
    admission = admitted(gate, **changes)
    assert admission.code == "approval-pending"
    return gate.holds.list()[-1]


def once(by: str = BY) -> Answer:
    return Answer(AnswerKind.ONCE, by)


def no(by: str = BY) -> Answer:
    return Answer(AnswerKind.DECLINE, by)


# what is stored


def test_a_hold_is_stored_before_anyone_is_asked(gate: Gate, ledger: Ledger, tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []

    class Looks:
        def ask(self, hold: HoldView) -> Answer:
            with Ledger.open(tmp_path / "ledger.sqlite") as other:
                stored = other.holds.get(hold.id)
                assert stored is not None
                seen.append((stored.id, stored.state))
            return once()

    admission = admitted(gate, Looks())
    assert admission.allowed and admission.hold is not None
    assert seen == [(admission.hold.id, "pending")]


def test_a_hold_binds_everything_that_was_shown(gate: Gate) -> None:
    hold = waiting(
        gate,
        files_hash="f",
        arguments={"b": 1, "a": [1.0]},
        view=lambda: a_view(arguments={"b": 1, "a": [1.0]}),
    )
    assert (hold.dist, hold.name, hold.permission, hold.effect) == (
        DIST,
        "email",
        "email.send",
        "external_send",
    )
    assert (hold.descriptor_hash, hold.files_hash, hold.environment) == ("h", "f", "")
    assert (hold.channel, hold.policy, hold.principal, hold.conversation) == ("chat", "chat", "ada", "talk")
    assert (hold.call_id, hold.model_says, hold.reasons) == (
        "c1",
        "I send the mail",
        ("nobody has said anything about it",),
    )
    assert hold.arguments == {"b": 1, "a": [1.0]} and isinstance(hold.arguments["a"][0], float)
    assert not hold.must_ask


def test_what_cannot_be_stored_is_not_asked_about(gate: Gate, ledger: Ledger) -> None:
    with ledger._fast.transaction() as connection:
        connection.execute(
            "CREATE TRIGGER full BEFORE INSERT ON holds BEGIN SELECT RAISE(ABORT, 'no room'); END"
        )
    asked: list[HoldView] = []

    class Notes:
        def ask(self, hold: HoldView) -> Answer:
            asked.append(hold)
            return once()

    with pytest.raises(LedgerUnavailable, match="no room"):
        admitted(gate, Notes())
    assert asked == []


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(arguments=st.dictionaries(st.text(), json_values, max_size=4))
def test_the_order_of_keys_makes_no_other_call_and_a_changed_number_type_does(
    arguments: dict[str, Any],
) -> None:
    holds = Holds.__new__(Holds)

    def digest(values: dict[str, Any]) -> str:
        return holds.digest(a_call(arguments=values), False)

    assert digest(dict(reversed(arguments.items()))) == digest(arguments)
    assert digest({**arguments, "n": 1}) != digest({**arguments, "n": 1.0})
    assert digest({**arguments, "n": True}) != digest({**arguments, "n": 1})


# secrets


def secretly(gate: Gate, **changes: Any) -> Hold:
    return waiting(
        gate,
        arguments={"to": "eve", "pin": "a-secret-pin"},
        view=lambda: a_view(arguments={"to": "eve", "pin": "•••"}),
        **changes,
    )


def test_secret_arguments_are_apart_from_the_ledger_and_only_the_owners(
    gate: Gate, ledger: Ledger, tmp_path: Path
) -> None:
    hold = secretly(gate)
    assert hold.arguments == {"to": "eve", "pin": "•••"}
    assert ledger.holds.arguments(hold) == {"to": "eve", "pin": "a-secret-pin"}
    folder = tmp_path / "secrets"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    for path in tmp_path.glob("ledger.sqlite*"):
        assert b"a-secret-pin" not in path.read_bytes()


def test_a_secret_is_masked_in_the_reasons_and_in_what_the_model_says(ledger: Ledger) -> None:
    def limit(call: Call) -> Limit:
        return Limit("must_ask", f"it logs in with {(call.arguments or {})['password']}")

    gate = Gate(ledger, Policies(Hooks(guard={"limit_call": limit})))
    masked = a_view(arguments={"password": "•••"}, model_says="I use HUNTER2 here")
    hold = waiting(gate, arguments={"password": "hunter2"}, view=lambda: masked)
    assert hold.model_says == "I use ••• here"
    assert "it logs in with •••" in hold.reasons


def test_a_short_secret_cannot_be_found_by_hashing_guesses(gate: Gate) -> None:
    hold = secretly(gate)
    guesses = {
        Holds.digest(gate.holds, a_call(arguments={"to": "eve", "pin": f"{n:04}"}), False)
        for n in range(1300)
    }
    assert hold.digest not in guesses
    assert hold.digest == gate.holds.digest(a_call(arguments={"to": "eve", "pin": "a-secret-pin"}), True)


@pytest.mark.parametrize("end", ["done", "declined", "void", "expired"])
def test_secret_arguments_are_erased_when_the_hold_ends(
    timed: tuple[Gate, Ledger], clock: Clock, end: str
) -> None:
    gate, ledger = timed
    hold = secretly(gate)
    if end == "declined":
        gate.holds.answered(hold, no())
    elif end == "void":
        gate.holds.void(hold, "it changed")
    elif end == "expired":
        clock.now += 8 * 86_400
        gate.holds.expire()
    else:
        spent = gate.holds.answer(hold, once(), spend=True)
        assert spent is not None and gate.holds.start(spent)
        gate.holds.finish(spent, "done")
    assert gate.holds.current(hold).state == end
    assert ledger.holds.arguments(hold) is None
    assert [path.name for path in (ledger.path.parent / "secrets").iterdir()] == ["key"]


def test_secrets_that_a_crash_left_behind_are_swept_away(gate: Gate, ledger: Ledger, tmp_path: Path) -> None:
    import os

    hold = secretly(gate)
    old = ledger.holds.secrets.put(b"left before its hold was stored")
    young = ledger.holds.secrets.put(b"of a hold that is being stored now")
    os.utime(tmp_path / "secrets" / old, (0, 0))
    gate.holds.recover()
    names = {path.name for path in (tmp_path / "secrets").iterdir()}
    assert names == {"key", young, hold.secret}


# answers


def test_an_approval_is_spent_on_the_call_it_answered(gate: Gate, ledger: Ledger) -> None:
    hold = waiting(gate)
    assert gate.holds.answered(hold, once()).state == "approved"
    assert gate.holds.spend(hold.id) is not None
    assert gate.holds.spend(hold.id) is None
    assert gate.holds.start(hold)
    assert not gate.holds.start(hold)
    assert not admitted(gate, conversation="other").allowed


def test_a_second_answer_is_told_what_the_first_was(gate: Gate) -> None:
    hold = waiting(gate)
    gate.holds.answered(hold, once("token:phone"))
    with pytest.raises(ChalieError, match=f"the hold {hold.id} was approved by token:phone") as caught:
        gate.holds.answered(hold, once())
    assert caught.value.code == "already-decided"
    with pytest.raises(ChalieError, match="there is no hold 'nope'"):
        gate.holds.get("nope")


def test_an_approved_call_can_still_be_declined_until_it_is_taken_on(gate: Gate) -> None:
    hold = waiting(gate)
    gate.holds.answered(hold, once())
    assert gate.holds.answered(hold, no()).state == "declined"
    assert gate.holds.spend(hold.id) is None
    other = waiting(gate, conversation="other")
    gate.holds.answered(other, once())
    gate.holds.spend(other.id)
    with pytest.raises(ChalieError, match="is being run"):
        gate.holds.answered(other, no())


def test_what_allows_is_no_reason_to_ask(ledger: Ledger) -> None:
    ledger.permissions.set("chat", DIST, "email", "allow", by=BY)
    gate = Gate(ledger, Policies(Hooks(guard={"limit_call": lambda call: Limit("must_ask", "it is late")})))
    assert waiting(gate).reasons == ("it is late",)


def test_several_holds_stand_side_by_side_and_are_answered_each_on_its_own(gate: Gate) -> None:
    ids = [waiting(gate, arguments={"n": n}, view=lambda: a_view(arguments={})).id for n in range(5)]
    assert len(set(ids)) == 5
    gate.holds.answered(gate.holds.get(ids[2]), no())
    gate.holds.answered(gate.holds.get(ids[3]), once())
    assert [gate.holds.get(each).state for each in ids] == [
        "pending",
        "pending",
        "declined",
        "approved",
        "pending",
    ]


def test_a_hold_is_named_by_the_beginning_of_its_id(gate: Gate) -> None:
    hold = waiting(gate)
    assert gate.holds.get(hold.id[:4]).id == hold.id
    for short in (hold.id[:3], "", "%", "____"):
        with pytest.raises(ChalieError):
            gate.holds.get(short)


def test_a_principal_sees_its_own_holds_and_the_owner_all(gate: Gate) -> None:
    ada, bob = waiting(gate), waiting(gate, principal="bob")
    assert [hold.id for hold in gate.holds.list(principal="bob")] == [bob.id]
    assert {hold.id for hold in gate.holds.list()} == {ada.id, bob.id}
    with pytest.raises(ChalieError):
        gate.holds.get(ada.id, principal="bob")


# the same call again


def test_the_same_call_asked_again_while_it_waits_opens_no_second_hold(gate: Gate) -> None:
    hold = waiting(gate)
    again = admitted(gate, view=lambda: a_view(id="c2"))
    assert again.code == "approval-pending" and hold.id in (again.hint or "")
    assert len(gate.holds.list()) == 1


def test_a_person_who_comes_back_is_asked_about_the_hold_that_waits(gate: Gate) -> None:
    hold = waiting(gate)
    shown: list[str] = []

    class Back:
        def ask(self, view: HoldView) -> Answer:
            shown.append(view.id)
            return once()

    admission = admitted(gate, Back())
    assert admission.allowed and shown == [hold.id]


def test_a_declined_call_is_refused_at_once_until_the_person_clears_it(gate: Gate, ledger: Ledger) -> None:
    class Never:
        def ask(self, view: HoldView) -> Answer:
            raise AssertionError("asked again")

    hold = waiting(gate)
    gate.holds.answered(hold, no())
    for _ in range(3):
        admission = admitted(gate, Never())
        assert (admission.allowed, admission.code, admission.answered_by) == (False, "declined", BY)
        assert "was declined by the person before, in this conversation; do not retry." in admission.message
    assert gate.holds.clear(hold, by=BY)
    assert not gate.holds.clear(hold, by=BY)
    assert admitted(gate).code == "approval-pending"
    assert [row.event for row in ledger.trail.query(event="approval.cleared")] == ["approval.cleared"]


@pytest.mark.parametrize(
    "other",
    [
        {"arguments": {"to": "bob"}},
        {"principal": "bob"},
        {"conversation": "other"},
        {"name": "mail", "permission": "mail.send"},
        {"dist": "chalie-ability-mail"},
        {"conversation": None},
    ],
)
def test_other_calls_are_untouched_by_a_decline(gate: Gate, other: dict[str, Any]) -> None:
    gate.holds.answered(waiting(gate), no())
    assert admitted(gate, **other).code == "approval-pending"


def test_without_a_conversation_a_decline_is_remembered_for_the_turn(gate: Gate) -> None:
    gate.holds.answered(waiting(gate, conversation=None), no())
    assert admitted(gate, conversation=None).code == "declined"
    assert admitted(gate, conversation=None, turn="t2").code == "approval-pending"


def test_a_row_that_allows_ends_the_refusal_of_a_declined_call(gate: Gate, ledger: Ledger) -> None:
    gate.holds.answered(waiting(gate), no())
    ledger.permissions.set("chat", DIST, "email", "allow", by=BY)
    assert admitted(gate).allowed


# answered elsewhere while the caller waits


def test_an_answer_from_elsewhere_reaches_the_caller_that_waits(gate: Gate, tmp_path: Path) -> None:
    def elsewhere(answer: Answer) -> Admission:
        def happens(view: HoldView) -> None:
            with Ledger.open(tmp_path / "ledger.sqlite") as other:
                Holds(other).answered(Holds(other).get(view.id), answer)

        approver = Elsewhere(happens)
        try:
            return admitted(gate, approver, conversation=answer.kind.value)
        finally:
            approver.over.set()

    yes = elsewhere(once("token:phone"))
    assert (yes.allowed, yes.answered_by) == (True, "token:phone")
    assert yes.hold is not None and yes.hold.state == "spent"
    declined = elsewhere(no("token:phone"))
    assert (declined.allowed, declined.code, declined.answered_by) == (False, "declined", "token:phone")


def test_what_another_process_took_on_is_not_run_by_the_caller_too(gate: Gate, tmp_path: Path) -> None:
    def happens(view: HoldView) -> None:
        with Ledger.open(tmp_path / "ledger.sqlite") as other:
            holds = Holds(other)
            holds.answered(holds.get(view.id), once())
            assert holds.spend(view.id) is not None

    approver = Elsewhere(happens)
    admission = admitted(gate, approver)
    approver.over.set()
    assert (admission.allowed, admission.code) == (False, "approval-pending")
    assert "run by another process" in admission.message


# time


def test_a_hold_expires_and_an_answer_after_that_is_refused(timed: tuple[Gate, Ledger], clock: Clock) -> None:
    gate, ledger = timed
    hold = waiting(gate)
    clock.now += 7 * 86_400 - 1
    assert gate.holds.list()[0].state == "pending"
    clock.now += 1
    with pytest.raises(ChalieError, match="expired, nobody having answered in time"):
        gate.holds.answered(hold, once())
    assert gate.holds.list() == ()
    (message,) = ledger.inbox.take("ada", "talk")
    assert "nobody answered in time" in message.text


def test_an_approval_that_nobody_took_on_in_time_is_not_run_later(
    timed: tuple[Gate, Ledger], clock: Clock
) -> None:
    gate, _ = timed
    hold = waiting(gate)
    gate.holds.answered(hold, once())
    clock.now += 8 * 86_400
    assert gate.holds.spend(hold.id) is None
    gate.holds.expire()
    assert gate.holds.current(hold).state == "expired"


# what changed meanwhile


def test_what_was_denied_meanwhile_is_given_back_unspent(gate: Gate, ledger: Ledger) -> None:
    class Meanwhile:
        def ask(self, hold: HoldView) -> Answer:
            ledger.permissions.set("chat", DIST, "email", "deny", by="token:phone")
            return once()

    admission = admitted(gate, Meanwhile())
    assert (admission.allowed, admission.code) == (False, "permission-denied")
    (hold,) = gate.holds.list()
    assert hold.state == "not-started"
    assert "denied after it had been approved" in (hold.detail or "")
    ledger.permissions.remove("chat", DIST, "email", by=BY)
    assert gate.holds.answered(hold, once()).state == "approved"


def test_limits_are_asked_again_before_an_approved_call_runs(ledger: Ledger) -> None:
    said: list[Limit | None] = [None]
    gate = Gate(ledger, Policies(Hooks(guard={"limit_call": lambda call: said[0]})))
    hold = waiting(gate)
    gate.holds.answered(hold, once())
    spent = gate.holds.spend(hold.id)
    assert spent is not None
    said[0] = Limit("deny", "not today")
    admission = gate.readmit(a_call(), CHAT, spent)
    assert not admission.allowed and "not today" in admission.message
    assert gate.holds.current(hold).state == "not-started"


# what is told


def test_every_step_is_an_event_on_the_trail_in_order(gate: Gate, ledger: Ledger) -> None:
    hold = waiting(gate)
    gate.holds.answered(hold, once("token:phone"))
    spent = gate.holds.spend(hold.id)
    assert spent is not None and gate.holds.start(spent)
    gate.holds.finish(spent, "done")
    rows = list(reversed(ledger.trail.query(event="approval.")))
    assert [(row.event, row.setting, row.by) for row in rows] == [
        ("approval.hold_opened", "pending", None),
        ("approval.decided", "once", "token:phone"),
        ("approval.spent", "spent", None),
        ("approval.ended", "done", None),
    ]
    assert {row.call_id for row in rows} == {"c1"}
    assert {json.loads(row.detail or "{}")["hold"] for row in rows} == {hold.id}


def test_observers_are_told_of_every_change_and_cannot_break_one(ledger: Ledger) -> None:
    changes: list[tuple[str | None, str, str | None]] = []

    def changed(change: HoldChange) -> None:
        changes.append((change.before, change.after, change.by))
        raise RuntimeError("observer")

    gate = Gate(ledger, holds=Holds(ledger, changed=changed))
    hold = waiting(gate)
    spent = gate.holds.answer(hold, once(), spend=True)
    assert spent is not None and gate.holds.start(spent)
    gate.holds.finish(spent, "failed", code="unreachable")
    gate.holds.answered(waiting(gate, conversation="other"), no())
    assert changes == [
        (None, "pending", None),
        ("pending", "approved", BY),
        ("approved", "spent", BY),
        ("spent", "started", BY),
        ("started", "failed", None),
        (None, "pending", None),
        ("pending", "declined", BY),
    ]


def test_a_conversation_that_was_told_to_wait_is_told_of_the_no(gate: Gate, ledger: Ledger) -> None:
    gate.holds.answered(waiting(gate), no())
    (message,) = ledger.inbox.take("ada", "talk")
    assert "email.send was declined by the person; do not retry." in message.text
    assert message.call_id == "c1"

    class Declines:
        def ask(self, hold: HoldView) -> Answer:
            return no()

    assert admitted(gate, Declines(), conversation="other").code == "declined"
    assert ledger.inbox.take("ada", "other") == ()  # its caller has been told already


# processes that end


def died(ledger: Ledger, hold: Hold) -> None:
    """Say that the process which took a hold on is gone."""
    ledger._fast.write("UPDATE holds SET owner = '1-gone' WHERE id = ?", (hold.id,))


def test_what_was_spent_and_not_started_may_be_approved_again(gate: Gate, ledger: Ledger) -> None:
    hold = waiting(gate)
    gate.holds.answer(hold, once(), spend=True)
    assert gate.holds.recover(busy=[hold.id]) == 0
    died(ledger, hold)
    assert gate.holds.recover() == 1
    assert gate.holds.current(hold).state == "not-started"
    assert gate.holds.answered(gate.holds.current(hold), once()).state == "approved"
    assert gate.holds.spend(hold.id) is not None


def test_what_was_started_is_interrupted_and_never_run_again(gate: Gate, ledger: Ledger) -> None:
    hold = waiting(gate)
    spent = gate.holds.answer(hold, once(), spend=True)
    assert spent is not None and gate.holds.start(spent)
    died(ledger, hold)
    assert gate.holds.recover() == 1
    assert gate.holds.current(hold).state == "interrupted"
    with pytest.raises(ChalieError, match="whether it took effect is not known"):
        gate.holds.answered(hold, once())
    (message,) = ledger.inbox.take("ada", "talk")
    assert "whether it took effect is not known" in message.text


def test_a_live_process_keeps_what_it_took_on(gate: Gate, ledger: Ledger) -> None:
    hold = waiting(gate)
    gate.holds.answer(hold, once(), spend=True)
    other = Ledger.open(ledger.path)
    try:
        assert Holds(other).recover() == 0
    finally:
        other.close()
    assert gate.holds.current(hold).state == "spent"


def test_old_holds_are_forgotten_and_open_ones_never(timed: tuple[Gate, Ledger], clock: Clock) -> None:
    gate, ledger = timed
    gate.holds.answered(waiting(gate), no())
    clock.now += 100 * 86_400
    open_one = waiting(gate, conversation="other")
    ledger.apply_retention()
    assert [hold.id for hold in gate.holds.list(ended=True)] == [open_one.id]
    assert ledger.declined.list() == ()


def test_a_calls_view_is_not_needed_where_nobody_is_asked(gate: Gate, ledger: Ledger) -> None:
    ledger.permissions.set("chat", DIST, "email", "allow", by=BY)
    call: Call = evolve(a_call(), descriptor_hash="")

    def never() -> HoldView:
        raise AssertionError("made for nobody")

    assert gate.admit(call, CHAT, None, never).allowed
