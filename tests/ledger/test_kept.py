"""Inbox, results, enabled packages and approver tokens."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from chalie.ledger import Ledger
from chalie.ledger.migrations import MIGRATIONS
from hypothesis import given
from hypothesis import strategies as st

from .conftest import Clock

BY = "terminal:ada"


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    return Ledger.open(tmp_path_factory.mktemp("kept") / "ledger.sqlite")


# inbox


def test_a_message_is_taken_once_and_only_in_its_conversation(ledger: Ledger) -> None:
    ledger.inbox.deliver("ada", "talk", "c1", "first")
    ledger.inbox.deliver("ada", "talk", "c2", "second")
    ledger.inbox.deliver("ada", None, "c3", "nowhere")
    assert [message.text for message in ledger.inbox.peek("ada", "talk")] == ["first", "second"]
    assert [message.call_id for message in ledger.inbox.take("ada", "talk")] == ["c1", "c2"]
    assert ledger.inbox.take("ada", "talk") == ()
    assert ledger.inbox.peek("ada", "other") == ()
    assert [message.text for message in ledger.inbox.take("ada", None)] == ["nowhere"]


def test_two_principals_in_one_conversation_or_in_none_get_their_own(ledger: Ledger) -> None:
    for conversation in ("talk", None):
        ledger.inbox.deliver("ada", conversation, "c1", "private to ada")
        assert ledger.inbox.take("bob", conversation) == ledger.inbox.peek("bob", conversation) == ()
        assert ledger.inbox.take(None, conversation) == ()
        assert [message.text for message in ledger.inbox.take("ada", conversation)] == ["private to ada"]


def test_what_waited_before_inboxes_knew_principals_is_its_callers(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with Ledger.open(path, migrations=MIGRATIONS[:2]) as old:
        old.jobs.open("c1", dist="d", name="n", principal="ada", conversation="talk")
        insert = (
            "INSERT INTO inbox (conversation, call_id, text, delivered_at) VALUES ('talk', ?, X'68', 1.0)"
        )
        for call in ("c1", "unknown"):
            old._fast.write(insert, (call,))
    with Ledger.open(path) as ledger:
        assert [message.call_id for message in ledger.inbox.take("ada", "talk")] == ["c1"]
        assert ledger.inbox.peek("bob", "talk") == ()


# results


@given(st.text(st.characters(exclude_categories=()), max_size=300))
def test_a_kept_body_comes_back_as_it_was(lasting: Ledger, body: str) -> None:
    kept = lasting.results.get("ada", lasting.results.put("ada", body))
    assert kept is not None
    data = body.encode("utf-8", "surrogatepass")
    assert kept == (body, hashlib.sha256(data).hexdigest(), len(data))


def test_a_kept_body_is_its_principals_alone(ledger: Ledger) -> None:
    result = ledger.results.put("ada", "secret")
    assert ledger.results.get("eve", result) is None
    assert ledger.results.get("ada", "0" * 16) is None
    assert ledger.results.get("ada", "%") is None


def test_a_kept_body_is_gone_when_its_time_is_over(ledger: Ledger, clock: Clock) -> None:
    result = ledger.results.put("ada", "body")
    clock.now += 7 * 86_400 - 1
    assert ledger.results.get("ada", result) is not None
    assert ledger.results.expire() == 0
    clock.now += 1
    assert ledger.results.get("ada", result) is None
    assert ledger.results.expire() == 1


# enabled packages


def test_a_package_is_enabled_with_exactly_its_files_in_every_environment(ledger: Ledger) -> None:
    ledger.enabled.set("policy", "aaaa", "env1", by=BY)
    assert ledger.enabled.is_enabled("policy", "aaaa")
    assert not ledger.enabled.is_enabled("policy", "bbbb")
    assert not ledger.enabled.is_enabled("other", "aaaa")
    assert ledger.enabled.trust("policy", "aaaa", True, by=BY)
    ledger.enabled.set("policy", "aaaa", "env2", by=BY)
    assert [row.trusted for row in ledger.enabled.list()] == [True, True]
    assert ledger.enabled.trust("policy", "aaaa", False, by=BY)
    assert not ledger.enabled.trusted("policy", "aaaa")


def test_rows_of_several_versions_stand_side_by_side(ledger: Ledger) -> None:
    ledger.enabled.set("policy", "aaaa", "env1", by=BY)
    ledger.enabled.set("policy", "bbbb", "env1", by=BY)
    ledger.enabled.set("policy", "aaaa", "env2", by=BY)
    assert len(ledger.enabled.list()) == 3
    assert {row.files_hash for row in ledger.enabled.list("env1")} == {"aaaa", "bbbb"}
    assert ledger.enabled.clear("policy", environment="env1", by=BY) == 2
    assert [row.environment for row in ledger.enabled.list()] == ["env2"]
    assert ledger.enabled.clear("policy", by=BY) == 1
    assert ledger.enabled.clear("policy", by=BY) == 0


def test_trust_needs_enabling_lapses_with_the_files_and_is_recorded(ledger: Ledger) -> None:
    assert not ledger.enabled.trust("policy", "aaaa", True, by=BY)
    ledger.enabled.set("policy", "aaaa", "env1", by=BY)
    assert not ledger.enabled.trusted("policy", "aaaa")
    assert ledger.enabled.trust("policy", "aaaa", True, by="token:phone")
    ledger.enabled.set("policy", "aaaa", "env1", by=BY)  # enabling again takes nothing back
    assert ledger.enabled.trusted("policy", "aaaa")
    assert not ledger.enabled.trusted("policy", "bbbb")
    assert ledger.enabled.trust("policy", "aaaa", False, by=BY)
    assert not ledger.enabled.trusted("policy", "aaaa")
    ledger.enabled.clear("policy", by=BY)
    events = [(row.event, row.setting, row.by) for row in reversed(ledger.trail.query())]
    assert events == [
        ("package.enabled", None, BY),
        ("trust.changed", "trusted", "token:phone"),
        ("trust.changed", "distrusted", BY),
        ("package.disabled", None, BY),
    ]


# approvers


def test_a_token_is_known_until_it_is_removed_and_is_not_kept(ledger: Ledger) -> None:
    token = ledger.approvers.add("phone", by=BY)
    assert ledger.approvers.check(token) == "phone"
    assert ledger.approvers.check(token + "x") is None
    assert ledger.approvers.check("") is None
    assert [(row.label, row.by) for row in ledger.approvers.list()] == [("phone", BY)]
    dump = "\n".join(ledger._durably()._connection.iterdump())
    assert token not in dump
    assert ledger.approvers.remove("phone", by=BY)
    assert not ledger.approvers.remove("phone", by=BY)
    assert ledger.approvers.check(token) is None
    assert [row.event for row in ledger.trail.query()] == ["approver.removed", "approver.added"]


@pytest.mark.parametrize("label", ["", "  ", "x" * 65, "a\nb", "a\u202eb"])
def test_a_label_that_could_mislead_is_refused(ledger: Ledger, label: str) -> None:
    with pytest.raises(ValueError, match="printable characters"):
        ledger.approvers.add(label)


def test_two_tokens_never_share_a_label(ledger: Ledger) -> None:
    first = ledger.approvers.add("phone")
    with pytest.raises(ValueError, match="there is an approver 'phone' already"):
        ledger.approvers.add("phone")
    assert ledger.approvers.check(first) == "phone"
