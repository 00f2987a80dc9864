"""Policies: one thread, one deadline, every failure a deny, every word stamped with who said it."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from chalie.calls import Call, Limit, Opinion, Setting
from chalie.catalogue.descriptor import EntryPoint
from chalie.catalogue.plugins import Plugins, attempt
from chalie.errors import ChalieError
from chalie.gate.gate import Gate
from chalie.gate.policies import Policies, Said
from chalie.hookspecs import hookimpl
from chalie.ledger import Ledger

from .conftest import ALONE, CHAT, Hooks, a_call


def yes(_: str) -> bool:
    return True


@pytest.fixture
def stuck() -> Iterator[threading.Event]:
    """An event that policies of the test wait for; set at the end, so that their threads go."""
    event = threading.Event()
    yield event
    event.set()


# what is said


def test_an_allow_counts_only_from_a_trusted_policy(ledger: Ledger) -> None:
    hooks = Hooks(guard={"review_call": lambda call: Opinion("allow", "looks harmless")})
    assert Gate(ledger, Policies(hooks)).decide(a_call(), CHAT).setting is Setting.ASK
    decision = Gate(ledger, Policies(hooks, trusted=yes)).decide(a_call(), CHAT)
    assert (decision.setting, decision.reason) == (Setting.ALLOW, "looks harmless")
    (said,) = Policies(hooks).opinions(a_call())
    assert not said.counted
    assert said.reason == "looks harmless (does not count: guard is not trusted; chalie trust guard)"


def test_an_ask_and_a_limit_count_from_every_enabled_policy(ledger: Ledger) -> None:
    hooks = Hooks(
        trusted={"review_call": lambda call: Opinion("allow", "fine")},
        other={"review_call": lambda call: Opinion("ask", "wait")},
        guard={"limit_call": lambda call: Limit("deny", "never")},
    )
    gate = Gate(ledger, Policies(hooks, trusted=lambda dist: dist == "trusted"))
    decision = gate.decide(a_call(), CHAT)
    assert (decision.setting, decision.reason) == (Setting.DENY, "never")
    assert {verdict.author for verdict in decision.verdicts} == {"trusted", "other", "guard"}


def test_a_limit_holds_against_a_persons_allow_and_the_internal_table(ledger: Ledger) -> None:
    ledger.permissions.set("chat", "chalie-ability-email", "email", "allow", by="terminal:ada")
    gate = Gate(ledger, Policies(Hooks(guard={"limit_call": lambda call: Limit("deny", "never")})))
    assert gate.decide(a_call(), CHAT).setting is Setting.DENY
    internal = a_call(dist="chalie", name="find_tools", permission="find_tools")
    assert gate.decide(internal, CHAT).setting is Setting.DENY


def test_opinions_are_not_asked_for_where_a_row_decides(ledger: Ledger) -> None:
    ledger.permissions.set("chat", "chalie-ability-email", "email", "allow", by="terminal:ada")
    hooks = Hooks(guard={"review_call": lambda call: None, "limit_call": lambda call: None})
    gate = Gate(ledger, Policies(hooks))
    gate.decide(a_call(), CHAT)
    assert hooks.asked == ["guard.limit_call"]


def test_a_search_asks_with_no_arguments(ledger: Ledger) -> None:
    seen: list[Any] = []
    hooks = Hooks(guard={"limit_call": lambda call: seen.append(call.arguments)})
    Gate(ledger, Policies(hooks)).decide(a_call(arguments=None), CHAT)
    assert seen == [None]


def test_a_policy_cannot_change_what_will_run(ledger: Ledger) -> None:
    def meddles(call: Call) -> None:
        assert call.arguments is not None
        call.arguments["to"].append("eve")

    call = a_call(arguments={"to": ["bob"]})
    Gate(ledger, Policies(Hooks(guard={"limit_call": meddles}))).decide(call, CHAT)
    assert call.arguments == {"to": ["bob"]}


def test_a_policy_cannot_change_what_the_next_one_sees(ledger: Ledger) -> None:
    def meddles(call: Call) -> None:
        assert call.arguments is not None
        call.arguments["to"][0]["name"] = "eve"
        call.arguments["to"].clear()
        call.arguments.clear()  # type: ignore[attr-defined]

    def guards(call: Call) -> Limit | None:
        return None if call.arguments == {"to": [{"name": "bob"}]} else Limit("deny", "not what was sent")

    call = a_call(arguments={"to": [{"name": "bob"}]})
    hooks = Hooks(first={"limit_call": meddles}, second={"limit_call": guards}, third={"review_call": guards})
    assert Policies(hooks).ask(call) == Said()


def test_a_reason_of_any_length_and_kind_is_one_line(ledger: Ledger) -> None:
    hooks = Hooks(
        long={"limit_call": lambda call: Limit("deny", "x\n" * 10_000)},
        odd={"limit_call": lambda call: Limit("deny", 7)},  # type: ignore[arg-type]
    )
    for verdict in Policies(hooks).limits(a_call()):
        assert len(verdict.reason) <= 500
        assert "\n" not in verdict.reason


# failures


@pytest.mark.parametrize("hook", ["review_call", "limit_call"])
@pytest.mark.parametrize(
    ("outcome", "says"),
    [
        (RuntimeError("no\nluck"), "the policy guard raised RuntimeError: no luck, which counts as deny"),
        (SystemExit(3), "the policy guard raised SystemExit: 3, which counts as deny"),
        (KeyboardInterrupt(), "the policy guard raised KeyboardInterrupt, which counts as deny"),
        ("allow", "the policy guard returned a str, which counts as deny"),
        (True, "the policy guard returned a bool, which counts as deny"),
        (Setting.ALLOW, "the policy guard returned a Setting, which counts as deny"),
    ],
)
def test_a_policy_that_raises_or_returns_something_else_counts_as_deny(
    ledger: Ledger, hook: str, outcome: object, says: str
) -> None:
    def answer(call: Call) -> object:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    decision = Gate(ledger, Policies(Hooks(guard={hook: answer}), trusted=yes)).decide(a_call(), CHAT)
    assert (decision.setting, decision.reason) == (Setting.DENY, says)


def test_what_a_policys_exception_or_answer_runs_is_under_the_deadline_too(
    ledger: Ledger, stuck: threading.Event
) -> None:
    class Slow(Exception):
        def __str__(self) -> str:
            stuck.wait()
            return "at last"

    class Sly(str):
        def split(self, *_: Any) -> Any:
            stuck.wait()

        def __eq__(self, other: object) -> bool:
            stuck.wait()
            return True

        __hash__ = str.__hash__

    def raises(call: Call) -> None:
        raise Slow

    hooks = Hooks(slow={"limit_call": raises})
    decision = Gate(ledger, Policies(hooks, deadline_ms=50)).decide(a_call(), CHAT)
    assert decision.reason == "the policy slow did not answer within 50 ms, which counts as deny"
    hooks = Hooks(sly={"limit_call": lambda call: Limit("must_ask", Sly("so it is"))})
    (verdict,) = Policies(hooks).limits(a_call())
    assert (verdict.value, verdict.reason, type(verdict.reason)) == ("must_ask", "so it is", str)


def test_the_answer_of_one_hook_is_no_answer_of_the_other(ledger: Ledger) -> None:
    hooks = Hooks(guard={"limit_call": lambda call: Opinion("allow", "hm"), "review_call": lambda call: None})
    decision = Gate(ledger, Policies(hooks, trusted=yes)).decide(a_call(), CHAT)
    assert decision.setting is Setting.DENY
    assert "returned a Opinion" in decision.reason


def test_an_answer_made_to_look_like_an_opinion_counts_as_deny(ledger: Ledger) -> None:
    class Mine(Opinion):
        pass

    forged = Opinion("ask", "hm")
    object.__setattr__(forged, "setting", "internal")
    for answer in (Mine("allow", "hm"), forged):
        hooks = Hooks(guard={"review_call": lambda call, answer=answer: answer})  # type: ignore[misc]
        assert Gate(ledger, Policies(hooks, trusted=yes)).decide(a_call(), CHAT).setting is Setting.DENY


def test_a_policy_that_overruns_the_deadline_denies_that_call_and_not_the_next(
    ledger: Ledger, stuck: threading.Event
) -> None:
    def slow(call: Call) -> None:
        if call.name == "slow":
            stuck.wait()

    hooks = Hooks(quick={"limit_call": lambda call: None}, guard={"limit_call": slow})
    gate = Gate(ledger, Policies(hooks, deadline_ms=500))
    decision = gate.decide(a_call(name="slow"), CHAT)
    assert decision.setting is Setting.DENY
    assert decision.reason == "the policy guard did not answer within 500 ms, which counts as deny"
    assert gate.decide(a_call(), CHAT).setting is Setting.ASK


def test_policies_of_a_call_share_one_deadline(ledger: Ledger, stuck: threading.Event) -> None:
    names = [f"p{number}" for number in range(10)]
    hooks = Hooks(**{name: {"limit_call": lambda call: stuck.wait(0.05) and None} for name in names})
    decision = Gate(ledger, Policies(hooks, deadline_ms=100)).decide(a_call(), CHAT)
    assert decision.setting is Setting.DENY
    assert "did not answer within 100 ms" in decision.reason


def test_policies_left_over_after_an_overrun_are_not_run(ledger: Ledger) -> None:
    first, ended = threading.Event(), threading.Event()

    def waits(call: Call) -> None:
        first.wait()
        ended.set()

    hooks = Hooks(slow={"limit_call": waits}, other={"limit_call": lambda call: None})
    before = set(threading.enumerate())
    Gate(ledger, Policies(hooks, deadline_ms=20)).decide(a_call(), CHAT)
    (thread,) = set(threading.enumerate()) - before
    first.set()
    assert ended.wait(10)
    thread.join(10)
    assert not thread.is_alive()
    assert hooks.asked == ["slow.limit_call"]


def test_policies_that_hang_again_and_again_take_a_bounded_number_of_threads(
    ledger: Ledger, stuck: threading.Event
) -> None:
    gate = Gate(ledger, Policies(Hooks(guard={"limit_call": lambda call: stuck.wait()}), deadline_ms=5))
    before = threading.active_count()
    decisions = [gate.decide(a_call(), CHAT) for _ in range(12)]
    assert all(decision.setting is Setting.DENY for decision in decisions)
    assert threading.active_count() - before <= 4
    assert decisions[-1].reason == ("policies hang and none is asked any more until the host is restarted")


def test_all_policies_of_all_calls_run_on_one_thread(ledger: Ledger) -> None:
    threads: set[int] = set()
    hooks = Hooks(
        a={"limit_call": lambda call: threads.add(threading.get_ident())},
        b={"review_call": lambda call: threads.add(threading.get_ident())},
    )
    gate = Gate(ledger, Policies(hooks))
    callers = [threading.Thread(target=gate.decide, args=(a_call(), CHAT)) for _ in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(threads) == 1
    assert threads.isdisjoint({threading.get_ident()})


def test_with_no_policy_enabled_there_is_no_thread(ledger: Ledger) -> None:
    before = threading.active_count()
    for policies in (None, Policies(), Policies(Hooks()), Policies(Hooks(quiet={}))):
        assert Gate(ledger, policies).decide(a_call(), CHAT).setting is Setting.ASK
    assert threading.active_count() == before


def test_the_thread_ends_with_its_gate(ledger: Ledger) -> None:
    before = set(threading.enumerate())
    gate = Gate(ledger, Policies(Hooks(guard={"limit_call": lambda call: None})))
    gate.decide(a_call(), CHAT)
    (thread,) = set(threading.enumerate()) - before
    del gate
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()


def test_policies_are_asked_in_a_forked_child_too(ledger: Ledger) -> None:
    policies = Policies(Hooks(guard={"limit_call": lambda call: Limit("deny", "never")}))
    assert policies.limits(a_call())
    child = os.fork()
    if not child:
        os._exit(7 if policies.limits(a_call())[0].reason == "never" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


# required policies


@pytest.mark.parametrize(
    "hooks", [None, Hooks(), Hooks(other={"limit_call": lambda call: None}), Hooks(guard={})]
)
def test_a_required_policy_that_is_not_loaded_closes_the_gate(ledger: Ledger, hooks: Hooks | None) -> None:
    ledger.permissions.set("chat", "chalie-ability-email", "email", "allow", by="terminal:ada")
    gate = Gate(ledger, Policies(hooks, required=("guard",)))
    for call in (a_call(), a_call(dist="chalie", name="find_tools", permission="find_tools")):
        decision = gate.decide(call, CHAT)
        assert decision.setting is Setting.DENY
        assert decision.reason == (
            "the gate is closed: the required policy guard is not loaded (see: chalie doctor)"
        )
    assert gate.closed is not None


def test_a_required_policy_one_of_whose_modules_was_refused_closes_the_gate(ledger: Ledger) -> None:
    hooks = Hooks(guard={"limit_call": lambda call: None})
    hooks.loaded = frozenset()
    assert Gate(ledger, Policies(hooks, required=("guard",))).decide(a_call(), CHAT).setting is Setting.DENY


def test_a_required_policy_that_is_loaded_leaves_the_gate_open(ledger: Ledger) -> None:
    gate = Gate(ledger, Policies(Hooks(guard={"limit_call": lambda call: None}), required=("guard",)))
    assert gate.closed is None
    assert gate.decide(a_call(), CHAT).setting is Setting.ASK


# with the real loader


@pytest.fixture
def loaded() -> Iterator[Plugins]:
    """Two policies as the loader of the host admits them."""
    allows, denies = ModuleType("policy_that_allows"), ModuleType("policy_that_denies")

    @hookimpl
    def review_call(call: Call) -> Opinion:
        return Opinion("allow", f"{call.effect} is fine")

    @hookimpl
    def limit_call(call: Call) -> Limit | None:
        return Limit("deny", "not in the morning") if call.name == "email" else None

    review_call.__module__, limit_call.__module__ = allows.__name__, denies.__name__
    allows.review_call = review_call  # type: ignore[attr-defined]
    denies.limit_call = limit_call  # type: ignore[attr-defined]
    found = []
    for module in (allows, denies):
        sys.modules[module.__name__] = module
        dist = module.__name__.replace("_", "-")
        reason, implementations = attempt(EntryPoint(dist, "chalie.policies", "policy", module.__name__))
        assert reason is None
        found += implementations
    yield Plugins(found, loaded=["policy-that-allows", "policy-that-denies"])
    for module in (allows, denies):
        del sys.modules[module.__name__]


def test_loaded_policies_decide_under_their_own_names(ledger: Ledger, loaded: Plugins) -> None:
    gate = Gate(ledger, Policies(loaded, required=("policy-that-denies",), trusted=yes))
    denied = gate.decide(a_call(), CHAT)
    assert (denied.setting, denied.reason) == (Setting.DENY, "not in the morning")
    allowed = gate.decide(a_call(name="weather", permission="weather", dist="w"), ALONE)
    assert (allowed.setting, allowed.reason) == (Setting.ALLOW, "external_send is fine")
    assert [verdict.author for verdict in allowed.verdicts] == ["policy-that-allows"]


def test_the_errors_of_the_host_are_no_policy_failures(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    gate = Gate(ledger)
    ledger.close()
    with pytest.raises(ChalieError, match="closed"):
        gate.decide(a_call(), CHAT)
