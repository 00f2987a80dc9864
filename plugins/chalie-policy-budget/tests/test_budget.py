"""Counting, the rules, and what the policy says as a host calls it."""

from __future__ import annotations

import importlib
import threading
from pathlib import Path
from typing import Any

import pytest
from chalie import Call, CallRecord, Limit, SideEffect
from chalie.catalogue.admission import attempt
from chalie.catalogue.descriptor import EntryPoint
from chalie.catalogue.plugins import Plugins
from chalie_policy_budget.counter import Counter
from chalie_policy_budget.rules import DEFAULT, read_rules

DIST = "chalie-policy-budget"


def call(permission: str = "email.send", **changes: Any) -> Call:
    facts: dict[str, Any] = {
        "dist": "chalie-ability-email",
        "name": permission.partition(".")[0],
        "permission": permission,
        "effect": SideEffect.EXTERNAL_SEND,
        "arguments": {},
        "channel": "chat",
        "principal": "ada",
        "conversation": "talk",
        "descriptor_hash": "h",
    }
    return Call(**{**facts, **changes})


def record(permission: str = "email.send", code: str | None = None, **changes: Any) -> CallRecord:
    facts: dict[str, Any] = {
        "call_id": "c",
        "ordinal": 1,
        "dist": "chalie-ability-email",
        "name": permission.partition(".")[0],
        "permission": permission,
        "channel": "chat",
        "principal": "ada",
        "conversation": "talk",
        "status": "success" if code is None else "error",
        "code": code,
        "setting": "allow",
        "duration_us": 1,
    }
    return CallRecord(**{**facts, **changes})


class Loaded:
    """The policy loaded anew, with a file of rules, as a host loads it."""

    def __init__(self, path: Path, text: str | None, patch: pytest.MonkeyPatch) -> None:
        if text is not None:
            path.write_text(text, encoding="utf-8")
        patch.setenv("CHALIE_BUDGET_FILE", str(path))
        import chalie_policy_budget.policy as policy

        importlib.reload(policy)
        reason, found = attempt(EntryPoint(DIST, "chalie.policies", "budget", "chalie_policy_budget.policy"))
        assert reason is None
        self._plugins = Plugins(found)

    def says(self, what: Call) -> Limit | None:
        ((author, value),) = self._plugins.each("limit_call", call=what)
        assert author == DIST
        assert value is None or isinstance(value, Limit)
        return value

    def finished(self, what: CallRecord, times: int = 1) -> None:
        for _ in range(times):
            assert [value for _, value in self._plugins.each("call_finished", record=what)] == [None]


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda text=None: Loaded(tmp_path / "budget.toml", text, monkeypatch)


SEND = """
[[limit]]
permission = "email.send"
calls = 2
minutes = 60
"""


def test_a_person_is_asked_once_the_budget_is_used(loaded: Any) -> None:
    policy = loaded(SEND)
    policy.finished(record())
    assert policy.says(call()) is None
    policy.finished(record())
    limit = policy.says(call())
    assert (limit.kind, limit.reason) == ("must_ask", "2 of 2 calls of email.send in 60 minutes are used")
    assert policy.says(call("email.read")) is None
    assert policy.says(call(principal="bob")) is None
    assert policy.says(call(arguments=None)) is None


def test_everybodys_calls_can_be_counted_together_and_be_denied(loaded: Any) -> None:
    policy = loaded(SEND + 'per = "all"\nthen = "deny"\n')
    policy.finished(record())
    policy.finished(record(principal="bob"))
    assert policy.says(call(principal="eve")).kind == "deny"


def test_the_strictest_of_several_rules_counts_in_whatever_order(loaded: Any) -> None:
    deny = SEND.replace("calls = 2", "calls = 1") + 'then = "deny"\n'
    for text in (SEND + deny, deny + SEND):
        policy = loaded(text)
        policy.finished(record(), times=2)
        assert policy.says(call()).kind == "deny"


def test_a_name_covers_all_its_actions_each_with_its_own_budget(loaded: Any) -> None:
    policy = loaded(SEND.replace("email.send", "email"))
    policy.finished(record("email.send"), times=2)
    assert policy.says(call("email.send")) is not None
    assert policy.says(call("email.read")) is None


@pytest.mark.parametrize("code", ["approval-pending", "declined", "permission-denied", "cannot-record"])
def test_a_call_that_did_not_run_costs_nothing(loaded: Any, code: str) -> None:
    policy = loaded(SEND)
    policy.finished(record(code=code), times=5)
    policy.finished(record(code="unknown-tool", setting=None), times=5)
    assert policy.says(call()) is None
    policy.finished(record(code="unreachable"), times=2)  # it ran; what came of it does not matter
    assert policy.says(call()) is not None


def test_without_a_file_what_sends_and_destroys_is_limited_most(loaded: Any) -> None:
    policy = loaded()
    policy.finished(record("email.send"), times=20)
    policy.finished(record("email.read"), times=20)
    assert policy.says(call("email.send")).kind == "must_ask"
    assert policy.says(call("email.send", effect=SideEffect.DESTRUCTIVE)).kind == "must_ask"
    assert policy.says(call("email.read", effect=SideEffect.READ)) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("limit = 3", "may hold"),
        ("[other]\nx = 1", "may hold \\[\\[limit"),
        ("[[limit]]\ncalls = 1", "needs minutes"),
        ("[[limit]]\nminutes = 1", "needs calls"),
        ("[[limit]]\ncalls = true\nminutes = 1", "needs calls"),
        ("[[limit]]\ncalls = -1\nminutes = 1", "needs calls"),
        ("[[limit]]\ncalls = 1\nminutes = 0", "needs minutes"),
        ("[[limit]]\ncalls = 1\nminutes = 1\nthen = 'allow'", "then is must_ask or deny"),
        ("[[limit]]\ncalls = 1\nminutes = 1\neffect = 'harmless'", "effect is one of read"),
        ("[[limit]]\ncalls = 1\nminutes = 1\npermission = 7", "permission is a name"),
        ("[[limit]]\ncalls = 1\nminutes = 1\nhours = 1", "has hours"),
        ("[[limit", "is no TOML"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_the_rule_that_is_wrong(
    tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "budget.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=words) as caught:
        read_rules(file)
    assert str(file) in str(caught.value)


def test_no_file_means_the_default_rules_and_an_empty_one_none(tmp_path: Path) -> None:
    file = tmp_path / "budget.toml"
    assert read_rules(file) == DEFAULT
    file.write_text("", encoding="utf-8")
    assert read_rules(file) == ()


def test_what_is_older_than_the_window_is_not_counted_and_not_kept() -> None:
    now = [0.0]
    counter = Counter(60.0, lambda: now[0])
    for second in range(100):
        now[0] = float(second)
        counter.add("email.send", "ada")
    assert counter.used("email.send", "ada", 10.0) == 10
    assert counter.used("email.send", None, 60.0) == 60
    assert counter.used("email.send", "bob", 60.0) == 0
    assert len(counter._calls["email.send"]) == 60


def test_calls_of_many_threads_are_all_counted() -> None:
    counter = Counter(60.0)
    threads = [
        threading.Thread(target=lambda: [counter.add("email", "ada") for _ in range(500)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.used("email", "ada", 60.0) == 2000
