"""The gate: what a call needs to pass, what a person's answer does, and what a refusal says."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from attrs import evolve
from chalie.calls import Answer, AnswerKind, HoldView, Limit, Setting, SideEffect
from chalie.catalogue.descriptor import Descriptor
from chalie.errors import LedgerUnavailable
from chalie.gate.approvers import ProvenApprover
from chalie.gate.gate import INTERNAL, Admission, Gate
from chalie.gate.policies import Policies
from chalie.ledger import Ledger

from .conftest import ALONE, CHAT, Hooks, a_call, a_view

DIST = "chalie-ability-email"
BY = "terminal:ada"


class Says:
    """An approver that does what it is told and remembers what it was asked."""

    def __init__(self, answer: object) -> None:
        self._answer = answer
        self.asked: list[HoldView] = []

    def ask(self, hold: HoldView) -> Answer:
        self.asked.append(hold)
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer  # type: ignore[return-value]


def says(kind: AnswerKind, until: datetime | None = None) -> Says:
    return Says(Answer(kind, BY, until))


def admitted(gate: Gate, approver: Any = None, channel: Any = CHAT, **changes: Any) -> Admission:
    return gate.admit(a_call(channel=channel.policy, **changes), channel, approver, a_view)


# rows and the internal table


def test_a_persons_allow_lets_a_call_through_unasked(gate: Gate, ledger: Ledger) -> None:
    ledger.permissions.set("chat", DIST, "email", "allow", by=BY)
    approver = says(AnswerKind.DECLINE)
    admission = admitted(gate, approver)
    assert (admission.allowed, admission.code, admission.answered_by) == (True, None, None)
    assert approver.asked == []


def test_a_persons_deny_is_told_with_its_reason(gate: Gate, ledger: Ledger) -> None:
    ledger.permissions.set("chat", DIST, "email", "allow", by=BY)
    ledger.permissions.set("chat", DIST, "email.send", "deny", by=BY)
    admission = admitted(gate, says(AnswerKind.ONCE))
    assert (admission.allowed, admission.code) == (False, "permission-denied")
    assert admission.message == (
        "email.send may not run on chat: email.send is set to deny on chat, by terminal:ada; do not retry."
    )
    assert admission.hint is None
    assert admitted(gate, None, permission="email.read").allowed


def test_the_hosts_own_tools_pass_without_a_row_and_a_row_can_deny_them(gate: Gate, ledger: Ledger) -> None:
    for dist, name in INTERNAL:
        assert admitted(gate, channel=ALONE, dist=dist, name=name, permission=name).allowed
    ledger.permissions.set("external_agent", "chalie", "find_tools", "deny", by=BY)
    find_tools = {"dist": "chalie", "name": "find_tools", "permission": "find_tools"}
    assert not admitted(gate, channel=ALONE, **find_tools).allowed


@pytest.mark.parametrize(
    ("dist", "name"),
    [
        ("chalie-ability-evil", "find_tools"),
        ("chalie-ability-evil", "memory"),
        ("chalie", "memory"),
        ("chalie", "find_tools_too"),
        ("chalie-ability-memory", "memory2"),
        ("chalie-ability-memory-plus", "memory"),
        ("Chalie", "find_tools"),
        ("chalie", "Find_Tools"),
        ("_mcp_chalie", "find_tools"),
    ],
)
def test_no_name_and_no_package_gets_into_the_internal_table_by_likeness(
    gate: Gate, dist: str, name: str
) -> None:
    assert not admitted(gate, channel=ALONE, dist=dist, name=name, permission=name).allowed


def test_a_delegate_channel_follows_its_policy_channels_rows(gate: Gate, ledger: Ledger) -> None:
    ledger.permissions.set("chat", DIST, "email", "allow", by=BY)
    delegate = evolve(CHAT, name="web_search", delegate=True)
    assert admitted(gate, channel=delegate).allowed
    assert not admitted(gate, channel=evolve(delegate, policy="subconscious")).allowed


def test_what_was_asked_for_without_a_row_shows_in_the_list(gate: Gate, ledger: Ledger) -> None:
    admitted(gate, channel=ALONE)
    (row,) = ledger.permissions.list(asked=True)
    assert (row.channel, row.package, row.permission, row.default) == (
        "external_agent",
        DIST,
        "email.send",
        True,
    )


def test_looking_changes_nothing(gate: Gate, ledger: Ledger) -> None:
    gate.decide(a_call(), CHAT)
    gate.decide(a_call(arguments=None), ALONE, complete=True)
    assert ledger.permissions.list(asked=True) == ()
    assert ledger.trail.query() == ()
    assert gate.passes == 0


# asking


def test_silence_asks_and_once_lets_this_call_through_only(gate: Gate, ledger: Ledger) -> None:
    approver = says(AnswerKind.ONCE)
    admission = admitted(gate, approver)
    assert (admission.allowed, admission.answered_by) == (True, BY)
    (shown,) = approver.asked
    assert shown.expires_at is not None
    assert shown == a_view(id=shown.id, call_id="c1", expires_at=shown.expires_at)
    assert ledger.permissions.list() == ()
    assert not admitted(gate, says(AnswerKind.DECLINE)).allowed


def test_an_answer_is_on_the_trail_with_who_gave_it(gate: Gate, ledger: Ledger) -> None:
    admitted(gate, says(AnswerKind.ONCE))
    (row,) = ledger.trail.query(event="approval.decided")
    assert (row.call_id, row.setting, row.by) == ("c1", "once", BY)
    assert (row.channel, row.principal, row.conversation) == ("chat", "ada", "talk")
    assert (row.dist, row.permission, row.effect) == (DIST, "email.send", "external_send")


def test_always_writes_the_row_of_that_permission_alone(gate: Gate, ledger: Ledger) -> None:
    assert admitted(gate, says(AnswerKind.ALWAYS)).allowed
    (row,) = ledger.permissions.list()
    assert (row.permission, row.setting, row.until, row.by) == ("email.send", Setting.ALLOW, None, BY)
    assert admitted(gate, None).allowed
    assert not admitted(gate, None, permission="email.delete").allowed


def test_until_writes_a_row_that_ends(gate: Gate, ledger: Ledger) -> None:
    until = datetime.now(UTC) + timedelta(hours=1)
    assert admitted(gate, says(AnswerKind.UNTIL, until)).allowed
    (row,) = ledger.permissions.list()
    assert (row.setting, row.until) == (Setting.ALLOW, until)


def test_decline_refuses_this_call_and_decline_always_every_later_one(gate: Gate, ledger: Ledger) -> None:
    admission = admitted(gate, says(AnswerKind.DECLINE))
    assert (admission.allowed, admission.code, admission.answered_by) == (False, "declined", BY)
    assert admission.message == "email.send was declined by the person; do not retry."
    assert ledger.permissions.list() == ()
    assert admitted(gate, says(AnswerKind.DECLINE_ALWAYS), conversation="other").code == "declined"
    assert [row.setting for row in ledger.permissions.list()] == [Setting.DENY]
    assert admitted(gate, says(AnswerKind.ONCE)).code == "permission-denied"


@pytest.mark.parametrize("kind", [AnswerKind.ALWAYS, AnswerKind.UNTIL])
def test_what_must_be_asked_each_time_is_never_allowed_for_longer(
    gate: Gate, ledger: Ledger, kind: AnswerKind
) -> None:
    ledger.permissions.set("chat", DIST, "email", "allow", by=BY)
    answer = says(kind, datetime.now(UTC) + timedelta(hours=1))
    assert admitted(gate, answer, must_ask=True, permission="email").allowed
    assert len(answer.asked) == 1
    assert len(ledger.permissions.list()) == 1
    ledger.holds.finish(gate.holds.list()[0], "done")
    assert not admitted(gate, says(AnswerKind.DECLINE), must_ask=True, permission="email").allowed


def test_a_limit_that_must_ask_is_never_answered_with_always(ledger: Ledger) -> None:
    hooks = Hooks(guard={"limit_call": lambda call: Limit("must_ask", "it leaves the house")})
    gate = Gate(ledger, Policies(hooks))
    for _ in range(2):
        approver = says(AnswerKind.ALWAYS)
        assert admitted(gate, approver).allowed
        assert len(approver.asked) == 1
    assert ledger.permissions.list() == ()


def test_a_tool_that_asks_for_approval_is_asked_about_even_where_a_policy_allows(ledger: Ledger) -> None:
    from chalie.calls import Opinion

    hooks = Hooks(guard={"review_call": lambda call: Opinion("allow", "fine")})
    gate = Gate(ledger, Policies(hooks, trusted=lambda dist: True))
    assert gate.decide(a_call(), CHAT).setting is Setting.ALLOW
    assert gate.decide(a_call(requires_approval=True), CHAT).setting is Setting.ASK
    ledger.permissions.set("chat", DIST, "email", "allow", by=BY)
    assert gate.decide(a_call(requires_approval=True), CHAT).setting is Setting.ALLOW


# failing to ask


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (RuntimeError("the\nsocket is gone"), "asking failed: RuntimeError: the socket is gone"),
        (SystemExit(1), "asking failed: SystemExit: 1"),
        (None, "the answer cannot be used: it is a NoneType"),
        (True, "the answer cannot be used: it is a bool"),
        ("once", "the answer cannot be used: it is a str"),
        (AnswerKind.ONCE, "the answer cannot be used: it is a AnswerKind"),
        (Answer("once", BY), "the answer cannot be used: it is a Answer"),  # type: ignore[arg-type]
        (Answer(AnswerKind.ONCE, " "), "the answer cannot be used: it does not say whose it is"),
        (Answer(AnswerKind.UNTIL, BY), "it does not say until when, with a time zone"),
        (Answer(AnswerKind.UNTIL, BY, datetime(2100, 1, 1)), "it does not say until when, with a time zone"),
        (Answer(AnswerKind.UNTIL, BY, datetime(2000, 1, 1, tzinfo=UTC)), "its time is over already"),
    ],
)
def test_an_approver_that_fails_has_said_nothing(
    gate: Gate, ledger: Ledger, answer: object, reason: str
) -> None:
    admission = admitted(gate, Says(answer))
    assert (admission.allowed, admission.code, admission.answered_by) == (False, "approval-pending", None)
    assert reason in (admission.detail or "")
    assert "; do not retry" in admission.message
    assert ledger.trail.query(event="approval.decided") == ()
    assert ledger.permissions.list() == ()
    assert [hold.state for hold in gate.holds.list()] == ["pending"]


def test_an_approver_that_never_answers_leaves_a_hold_and_its_late_yes_is_not_heard(ledger: Ledger) -> None:
    answered, late = threading.Event(), threading.Event()

    class Late:
        def ask(self, hold: HoldView) -> Answer:
            late.wait(30)
            answered.set()
            return Answer(AnswerKind.ALWAYS, BY)

    gate = Gate(ledger, ask_timeout_s=0.05)
    admission = admitted(gate, Late())
    assert (admission.allowed, admission.code) == (False, "approval-pending")
    assert "no answer within 0.05 s" in (admission.detail or "")
    late.set()
    assert answered.wait(30)
    assert ledger.permissions.list() == ()
    assert [hold.state for hold in gate.holds.list()] == ["pending"]


def test_without_a_time_limit_the_approver_is_asked_on_the_callers_thread(ledger: Ledger) -> None:
    threads: list[int] = []

    class Here:
        def ask(self, hold: HoldView) -> Answer:
            threads.append(threading.get_ident())
            return Answer(AnswerKind.ONCE, BY)

    assert admitted(Gate(ledger, ask_timeout_s=None), Here()).allowed
    assert threads == [threading.get_ident()]
    with pytest.raises(KeyboardInterrupt):
        admitted(Gate(ledger, ask_timeout_s=None), Says(KeyboardInterrupt()))


def test_where_nobody_is_at_hand_the_call_waits_and_the_model_is_told_not_to_retry(gate: Gate) -> None:
    admission = admitted(gate, None)
    (hold,) = gate.holds.list()
    assert (admission.allowed, admission.code) == (False, "approval-pending")
    assert re.fullmatch(
        r"email\.send waits for a person's yes, until 20\d\d-\d\d-\d\d \d\d:\d\d UTC; do not retry: "
        r"what becomes of it comes to this conversation\.",
        admission.message,
    )
    assert admission.hint == (
        f"the person answers with: chalie approve {hold.id}, or: chalie decline {hold.id}"
    )


def test_on_a_channel_without_a_person_an_approver_is_never_asked(gate: Gate) -> None:
    approver = says(AnswerKind.ONCE)
    admission = admitted(gate, approver, ALONE)
    assert approver.asked == []
    assert (admission.allowed, admission.code) == (False, "permission-denied")
    assert admission.message == (
        "email.send may not run on external_agent: nobody can be asked on this channel; do not retry."
    )
    assert admission.hint == (
        "to allow it: chalie permissions set external_agent email.send allow --package chalie-ability-email"
    )


def test_no_line_is_offered_that_would_not_help(ledger: Ledger) -> None:
    hooks = Hooks(guard={"limit_call": lambda call: Limit("must_ask", "each time")})
    assert admitted(Gate(ledger, Policies(hooks)), None, ALONE).hint is None


def test_what_was_denied_while_the_person_thought_stays_denied(gate: Gate, ledger: Ledger) -> None:
    class Meanwhile:
        def ask(self, hold: HoldView) -> Answer:
            ledger.permissions.set("chat", DIST, "email", "deny", by="token:phone")
            return Answer(AnswerKind.ONCE, BY)

    admission = admitted(gate, Meanwhile())
    assert (admission.allowed, admission.code) == (False, "permission-denied")
    assert "by token:phone" in admission.message


def test_an_answer_that_cannot_be_recorded_lets_nothing_run(gate: Gate, ledger: Ledger) -> None:
    with ledger._fast.transaction() as connection:
        connection.execute(
            "CREATE TRIGGER full BEFORE INSERT ON trail BEGIN SELECT RAISE(ABORT, 'no room'); END"
        )
    for kind in (AnswerKind.ONCE, AnswerKind.ALWAYS):
        with pytest.raises(LedgerUnavailable, match="no room"):
            admitted(gate, says(kind))
    assert ledger.permissions.list() == ()


def test_a_yes_given_beforehand_is_for_one_call(gate: Gate, ledger: Ledger) -> None:
    yes = ProvenApprover("token:phone")
    assert admitted(gate, yes).answered_by == "token:phone"
    admission = admitted(gate, yes)
    assert not admission.allowed
    assert "that yes was for one call" in (admission.detail or "")


# counting


def test_every_call_counts_once_whatever_becomes_of_it(gate: Gate, ledger: Ledger) -> None:
    ledger.permissions.set("chat", DIST, "email.read", "allow", by=BY)
    roads: list[Callable[[], Admission]] = [
        lambda: admitted(gate, permission="email.read"),
        lambda: admitted(gate, says(AnswerKind.ONCE)),
        lambda: admitted(gate, says(AnswerKind.DECLINE)),
        lambda: admitted(gate, Says(RuntimeError())),
        lambda: admitted(gate, None),
        lambda: admitted(gate, None, ALONE),
    ]
    for count, road in enumerate(roads, 1):
        road()
        assert gate.passes == count


def test_calls_of_many_threads_are_all_counted(gate: Gate) -> None:
    def many() -> None:
        for _ in range(50):
            admitted(gate, dist="chalie", name="find_tools", permission="find_tools")

    threads = [threading.Thread(target=many) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert gate.passes == 300


# search


def descriptor(**changes: Any) -> Descriptor:
    facts: dict[str, Any] = {
        "dist": DIST,
        "dist_version": "1",
        "target": "email:Email",
        "name": "email",
        "summary": "Send mail.",
        "examples": (),
        "search_tooltip": "mail",
        "parameters": {"type": "object"},
        "namespace": "email",
        "version": "1",
        "actions": {"read": SideEffect.READ, "send": SideEffect.EXTERNAL_SEND},
    }
    return Descriptor(**{**facts, **changes})


def test_search_hides_what_a_row_denies_for_every_action_and_nothing_less(gate: Gate, ledger: Ledger) -> None:
    ledger.permissions.set("chat", DIST, "email.send", "deny", by=BY)
    assert not gate.sight(descriptor(), CHAT, "ada", None).hidden
    ledger.permissions.set("chat", DIST, "email.read", "deny", by=BY)
    assert gate.sight(descriptor(), CHAT, "ada", None).hidden
    assert not gate.sight(descriptor(), evolve(CHAT, policy="other"), "ada", None).hidden


def test_search_hides_what_a_limit_denies_for_every_action(ledger: Ledger) -> None:
    hooks = Hooks(guard={"limit_call": lambda call: Limit("deny", "never")})
    assert Gate(ledger, Policies(hooks)).sight(descriptor(), CHAT, "ada", None).hidden


def test_what_only_a_missing_person_denies_is_shown_with_the_line_that_allows_it(
    gate: Gate, ledger: Ledger
) -> None:
    sight = gate.sight(descriptor(), ALONE, "ada", None)
    assert not sight.hidden
    assert sight.not_allowed == (
        "to allow it: chalie permissions set external_agent email.read allow --package chalie-ability-email"
    )
    ledger.permissions.set("external_agent", DIST, "email.read", "deny", by=BY)
    assert "email.send allow" in (gate.sight(descriptor(), ALONE, "ada", None).not_allowed or "")
    ledger.permissions.set("external_agent", DIST, "email.send", "allow", by=BY)
    assert gate.sight(descriptor(), ALONE, "ada", None).not_allowed is None


def test_a_failing_policy_and_a_closed_gate_empty_no_search(ledger: Ledger) -> None:
    def breaks(call: object) -> None:
        raise RuntimeError("broken")

    sight = Gate(ledger, Policies(Hooks(guard={"limit_call": breaks}))).sight(descriptor(), CHAT, "ada", None)
    assert not sight.hidden
    assert "the policy guard raised RuntimeError: broken" in (sight.not_allowed or "")
    sight = Gate(ledger, Policies(required=("guard",))).sight(descriptor(), CHAT, "ada", None)
    assert not sight.hidden
    assert "the gate is closed" in (sight.not_allowed or "")


def test_approvers_that_never_answer_take_a_bounded_number_of_threads(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chalie.gate.asking.MOST_ASKED", 3)
    over, asked = threading.Event(), []

    class Hangs:
        def ask(self, hold: HoldView) -> Answer:
            asked.append(hold.id)
            over.wait(30)
            return Answer(AnswerKind.ONCE, "token:test")

    gate = Gate(ledger, ask_timeout_s=0.01)
    codes = []
    for number in range(6):
        call = a_call(arguments={"n": number})
        codes.append(gate.admit(call, CHAT, Hangs(), a_view).code)
    assert codes == ["approval-pending"] * 6 and len(asked) == 3
    over.set()
    end = time.monotonic() + 20
    while gate._asking._asked and time.monotonic() < end:
        time.sleep(0.01)
    assert gate._asking._asked == 0
