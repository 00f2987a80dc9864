"""The fold, on everything that can be said of a call."""

from __future__ import annotations

import random
from datetime import UTC, datetime

from chalie.calls import Setting, Verdict
from chalie.gate.fold import fold
from chalie.ledger import PermissionRow
from hypothesis import given
from hypothesis import strategies as st

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STRICTNESS = {Setting.ALLOW: 0, Setting.ASK: 1, Setting.DENY: 2}


def a_row(setting: Setting) -> PermissionRow:
    return PermissionRow("chat", "mail", "email", setting, None, "terminal:ada", NOW)


rows = st.none() | st.sampled_from([Setting.ALLOW, Setting.ASK, Setting.DENY]).map(a_row)
authors = st.sampled_from(["a", "b", "c"])
reasons = st.sampled_from(["one", "two"])
opinion_values = st.sampled_from(["allow", "ask"])
opinions = st.lists(
    st.builds(Verdict, authors, st.just("opinion"), opinion_values, reasons, counted=st.booleans())
)
limits = st.lists(
    st.builds(Verdict, authors, st.just("limit"), st.sampled_from(["deny", "must_ask"]), reasons)
    | st.builds(Verdict, authors, st.just("failure"), st.just("deny"), reasons)
)


@given(rows, st.booleans(), opinions, limits, limits, st.booleans())
def test_a_limit_never_widens(
    row: PermissionRow | None,
    internal: bool,
    said: list[Verdict],
    some: list[Verdict],
    more: list[Verdict],
    has_person: bool,
) -> None:
    before = fold(row, internal, said, some, has_person)
    after = fold(row, internal, said, [*some, *more], has_person)
    assert STRICTNESS[after.setting] >= STRICTNESS[before.setting]
    assert after.must_ask >= before.must_ask or after.setting is Setting.DENY


@given(rows, st.booleans(), opinions, limits, st.booleans(), st.randoms())
def test_order_never_matters(
    row: PermissionRow | None,
    internal: bool,
    said: list[Verdict],
    limited: list[Verdict],
    has_person: bool,
    chance: random.Random,
) -> None:
    before = fold(row, internal, said, limited, has_person)
    chance.shuffle(said)
    chance.shuffle(limited)
    assert fold(row, internal, said, limited, has_person) == before


@given(opinions, limits, st.booleans())
def test_silence_is_ask_and_deny_where_nobody_can_be_asked(
    said: list[Verdict], limited: list[Verdict], has_person: bool
) -> None:
    assert fold(None, False, [], [], True).setting is Setting.ASK
    assert fold(None, False, [], [], False).setting is Setting.DENY
    decision = fold(None, False, said, limited, has_person)
    if decision.setting is Setting.ALLOW:
        assert any(verdict.counted and verdict.value == "allow" for verdict in said)
        assert not any(verdict.counted and verdict.value == "ask" for verdict in said)


@given(rows, st.booleans(), opinions, limits)
def test_nobody_is_ever_asked_where_nobody_is(
    row: PermissionRow | None, internal: bool, said: list[Verdict], limited: list[Verdict]
) -> None:
    alone = fold(row, internal, said, limited, False)
    with_person = fold(row, internal, said, limited, True)
    expected = Setting.DENY if with_person.setting is Setting.ASK else with_person.setting
    assert alone.setting is expected
    assert not alone.must_ask


@given(st.sampled_from([Setting.ALLOW, Setting.ASK, Setting.DENY]), st.booleans(), opinions)
def test_a_persons_row_decides_over_every_opinion_and_the_internal_table(
    setting: Setting, internal: bool, said: list[Verdict]
) -> None:
    assert fold(a_row(setting), internal, said, [], True).setting is setting


@given(opinions)
def test_the_internal_table_decides_over_every_opinion(said: list[Verdict]) -> None:
    assert fold(None, True, said, [], False).setting is Setting.ALLOW


@given(rows, st.booleans(), opinions, limits, st.booleans())
def test_a_decision_lists_everything_said_and_its_reason_is_of_what_decided(
    row: PermissionRow | None,
    internal: bool,
    said: list[Verdict],
    limited: list[Verdict],
    has_person: bool,
) -> None:
    decision = fold(row, internal, said, limited, has_person)
    reasons = [(verdict.author, verdict.kind, verdict.value, verdict.reason) for verdict in decision.verdicts]
    for verdict in (*said, *limited):
        reasons.remove((verdict.author, verdict.kind, verdict.value, verdict.reason))
    deciding = [verdict for verdict in decision.verdicts if verdict.counted][-1]
    meant = {"internal": "allow", "must_ask": "ask"}.get(deciding.value, deciding.value)
    assert meant == decision.setting.value
    assert decision.reason == deciding.reason


@given(rows, st.booleans(), opinions)
def test_must_ask_makes_every_allow_an_ask_each_time(
    row: PermissionRow | None, internal: bool, said: list[Verdict]
) -> None:
    decision = fold(row, internal, said, [Verdict("a", "limit", "must_ask", "each time")], True)
    if fold(row, internal, said, [], True).setting is Setting.DENY:
        assert decision.setting is Setting.DENY
    else:
        assert (decision.setting, decision.must_ask) == (Setting.ASK, True)


def test_an_allow_that_does_not_count_is_listed_and_changes_nothing() -> None:
    said = [Verdict("a", "opinion", "allow", "fine", counted=False)]
    decision = fold(None, False, said, [], True)
    assert decision.setting is Setting.ASK
    assert said[0] in decision.verdicts
    assert decision.reason == "nobody has said anything about it"


def test_ask_goes_before_allow_among_opinions() -> None:
    said = [Verdict("a", "opinion", "allow", "fine"), Verdict("b", "opinion", "ask", "not so sure")]
    decision = fold(None, False, said, [], True)
    assert (decision.setting, decision.reason) == (Setting.ASK, "not so sure")
