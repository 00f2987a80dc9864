"""A yes to more than one call: the row it writes, what it is pinned to, and where there is none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from chalie.calls import Answer, AnswerKind, Limit, Setting
from chalie.errors import ChalieError
from chalie.gate.gate import Gate
from chalie.gate.holds import Holds
from chalie.gate.policies import Policies
from chalie.ledger import Hold, Ledger
from chalie.ledger.pins import Pin

from .conftest import CHAT, Hooks, a_call, a_view

BY = "terminal:ada"
DIST = "chalie-ability-email"


def waiting(gate: Gate, **changes: Any) -> Hold:
    assert gate.admit(a_call(**changes), CHAT, None, a_view).code == "approval-pending"
    return gate.holds.list()[-1]


def test_always_from_elsewhere_writes_the_row_and_until_one_that_ends(gate: Gate, ledger: Ledger) -> None:
    gate.holds.answered(waiting(gate), Answer(AnswerKind.ALWAYS, BY))
    (row,) = ledger.permissions.list()
    assert (row.channel, row.package, row.permission, row.setting, row.by) == (
        "chat",
        DIST,
        "email.send",
        Setting.ALLOW,
        BY,
    )
    until = datetime.now(UTC) + timedelta(hours=1)
    gate.holds.answered(waiting(gate, permission="email.read"), Answer(AnswerKind.UNTIL, BY, until))
    assert [row.until for row in ledger.permissions.list() if row.permission == "email.read"] == [until]


def test_what_must_be_asked_each_time_can_never_be_answered_always(ledger: Ledger) -> None:
    gate = Gate(
        ledger, Policies(Hooks(guard={"limit_call": lambda call: Limit("must_ask", "it leaves the house")}))
    )
    hold = waiting(gate)
    for kind in (AnswerKind.ALWAYS, AnswerKind.UNTIL):
        with pytest.raises(ChalieError, match=r"has to be asked about each time: .*it leaves the house"):
            gate.holds.answered(hold, Answer(kind, BY, datetime.now(UTC) + timedelta(hours=1)))
    assert gate.holds.answered(hold, Answer(AnswerKind.ONCE, BY)).state == "approved"
    assert ledger.permissions.list() == ()


def _pin(descriptor_hash: str, files_hash: str = "files") -> Pin:
    return Pin(DIST, "email", descriptor_hash, files_hash, "1.0", {})


@pytest.mark.parametrize("now", [None, _pin("another")])
@pytest.mark.parametrize("kind", [AnswerKind.ALWAYS, AnswerKind.UNTIL])
def test_a_tool_that_changed_while_its_call_waited_is_not_allowed_by_that_answer(
    ledger: Ledger, kind: AnswerKind, now: Pin | None
) -> None:
    gate = Gate(ledger, holds=Holds(ledger, facts=lambda dist, name: now))
    hold = waiting(gate)
    answer = Answer(kind, BY, datetime.now(UTC) + timedelta(hours=1))
    with pytest.raises(ChalieError, match="so that nothing can be allowed of it beyond what was asked"):
        gate.holds.answered(hold, answer)
    # an approver's answer, given while it changed, is a yes for once
    assert gate.holds.answer(hold, answer) is not None
    assert (ledger.permissions.list(), ledger.pins.list()) == ((), ())


def test_always_pins_the_files_that_were_there_when_it_was_asked(ledger: Ledger) -> None:
    now = _pin("h", "files of later")
    gate = Gate(ledger, holds=Holds(ledger, facts=lambda dist, name: now), facts=lambda dist, name: now)
    hold = waiting(gate, files_hash="files", descriptor_hash="h")
    gate.holds.answered(hold, Answer(AnswerKind.ALWAYS, BY))
    assert gate.admit(a_call(files_hash="files", descriptor_hash="h"), CHAT, None, a_view).allowed
    changed = gate.decide(a_call(files_hash="files of later", descriptor_hash="h"), CHAT)
    assert changed.setting is Setting.ASK
    assert "its package's files are others" in changed.reason
