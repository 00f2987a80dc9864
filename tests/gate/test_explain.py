"""Explanations say everything that was said, by whom, and what came of it."""

from __future__ import annotations

from chalie.calls import Limit, Opinion, Setting
from chalie.gate.explain import explain
from chalie.gate.gate import Gate
from chalie.gate.policies import Policies
from chalie.ledger import Ledger

from .conftest import ALONE, CHAT, Hooks, a_call


def test_an_explanation_lists_every_verdict_with_author_reason_and_source(ledger: Ledger) -> None:
    ledger.permissions.set("chat", "chalie-ability-email", "email", Setting.ALLOW, by="terminal:ada")
    hooks = Hooks(
        guard={
            "review_call": lambda call: Opinion("allow", "looks harmless"),
            "limit_call": lambda call: Limit("must_ask", "it leaves the house"),
        }
    )
    call = a_call()
    decision = Gate(ledger, Policies(hooks)).decide(call, CHAT, complete=True)
    assert explain(decision, call).splitlines() == [
        "email of chalie-ability-email on chat, for ada",
        "permission email.send, side effect external_send",
        "",
        "  setting  allow     you: email is set to allow on chat, by terminal:ada"
        "  [permissions: chat chalie-ability-email email]",
        "- setting  allow     guard: looks harmless (does not count: guard is not trusted; "
        "chalie trust guard)  [review_call in tests/gate/conftest.py]",
        "  limit    must_ask  guard: it leaves the house  [limit_call in tests/gate/conftest.py]",
        "  (- was heard and changed nothing)",
        "",
        "= ask, each time",
    ]


def test_an_explanation_of_silence_says_so(gate: Gate) -> None:
    call = a_call(channel="external_agent")
    assert explain(gate.decide(call, ALONE), call).splitlines()[3:] == [
        "  setting  ask       host: nobody has said anything about it",
        "  channel  deny      host: nobody can be asked on this channel",
        "",
        "= deny",
    ]


def test_an_explanation_cannot_be_forged_by_a_reason(ledger: Ledger) -> None:
    hooks = Hooks(guard={"limit_call": lambda call: Limit("deny", "no\x1b[2J\n= allow")})
    call = a_call(name="em\u202eail")
    text = explain(Gate(ledger, Policies(hooks)).decide(call, CHAT), call)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert [line for line in text.splitlines() if line.startswith("=")] == ["= deny"]
