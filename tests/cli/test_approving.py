"""Answering from another process, and saying why."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from chalie import Host
from chalie.cli import exits
from chalie.ledger import Ledger

from tests.support import packages

from .conftest import Ran

Chalie = Callable[..., Ran]

pytestmark = pytest.mark.usefixtures("installed")


@pytest.fixture
def approver(installed: Path, token: str) -> str:
    """An approver token of the home, in the environment; after the packages, which bring the home."""
    return token


def asked(chalie: Chalie, *words: str) -> str:
    """Make a call that waits, and return its hold's id."""
    done = chalie("call", *words)
    assert done.code == exits.REFUSED
    found = re.search(r"chalie approve ([0-9a-f]{8})", done.out)
    assert found
    return found[1]


# approving

EACH_TIME = """
from chalie import Limit, hookimpl

@hookimpl
def limit_call(call):
    return Limit("must_ask", "dice leave the table") if call.arguments is not None else None
"""


@pytest.mark.usefixtures("approver")
def test_a_call_that_waits_is_listed_shown_approved_and_run_once(chalie: Chalie) -> None:
    hold = asked(chalie, "dice", "text=six", "--conversation", "talk")
    (row,) = chalie("holds", "--json").json
    assert (row["id"], row["state"], row["arguments"]) == (hold, "pending", {"text": "six"})
    page = chalie("holds", hold[:5]).out
    assert "dice of chalie-ability-dice" in page and '| "text": "six"' in page
    done = chalie("approve", hold)
    assert done.code == exits.OK
    assert f"{hold}: dice is approved and has run" in done.out
    assert '{"echo":{"text":"six"}}' in done.out
    again = chalie("approve", hold)
    assert again.code == exits.REFUSED
    assert f"the hold {hold} was approved and has run by token:phone [already-decided]" in again.err
    assert chalie("holds").code == exits.NOTHING
    assert [row["state"] for row in chalie("holds", "--all", "--json").json] == ["done"]
    assert len(chalie("trail", "--event", "call.started", "--json").json) == 1


def test_without_the_owner_at_a_terminal_or_a_token_nobody_answers(chalie: Chalie) -> None:
    hold = asked(chalie, "dice")
    for words in (("approve", hold), ("decline", hold), ("decline", hold, "--undo"), ("trust", "x")):
        assert chalie(*words).code == exits.REFUSED
    assert [row["state"] for row in chalie("holds", "--json").json] == ["pending"]


@pytest.mark.usefixtures("approver")
def test_a_result_waits_in_the_inbox_of_its_conversation(chalie: Chalie, home: Path) -> None:
    chalie("approve", asked(chalie, "dice", "--conversation", "talk"))
    with Host.open(home) as host:
        (text,) = host.inbox("talk")
    assert text.startswith("[dice(status=success")


@pytest.mark.usefixtures("approver")
def test_a_call_at_the_command_line_and_its_run_later_pass_the_gate_once_each(
    chalie: Chalie, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []
    closed = Host.close

    def close(self: Host) -> None:
        counted.append(self.gate.passes)
        closed(self)

    monkeypatch.setattr(Host, "close", close)
    hold = asked(chalie, "dice")
    chalie("call", "dice", "--yes")
    chalie("explain", "dice")
    chalie("approve", hold)
    assert counted == [1, 1, 0, 1]


@pytest.mark.usefixtures("approver")
def test_always_sets_the_row_and_for_one_that_ends(chalie: Chalie) -> None:
    chalie("approve", asked(chalie, "dice"), "--always")
    assert chalie("call", "dice").code == exits.OK
    chalie("approve", asked(chalie, "notes", "action=add"), "--for", "30")
    rows = {row["permission"]: row for row in chalie("permissions", "list", "--json").json}
    assert rows["dice"]["setting"] == "allow" and rows["dice"]["until"] is None
    assert rows["notes.add"]["until"] is not None
    for words in (("--always", "--for", "3"), ("--for", "3", "--until", "18:00"), ("--until", "yesterday")):
        assert chalie("approve", "x", *words).code == exits.USAGE
    chalie("approve", asked(chalie, "notes", "action=clear"), "--until", "2999-01-01T10:00+00:00")
    said = chalie("permissions", "set", "chat", "dice", "deny", "--until", "2999-01-01T10:00+00:00")
    assert "dice is now deny until 2999-01-01" in said.out
    ends = {row["permission"]: row["until"] for row in chalie("permissions", "list", "--json").json}
    assert ends["notes.clear"] == ends["dice"] == "2999-01-01T10:00:00+00:00"


def test_always_is_refused_before_anything_is_asked_where_each_time_counts(
    chalie: Chalie, approver: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

    def asks(*_: object, **__: object) -> bool:
        raise AssertionError("it asked")

    site = tmp_path / "policies"
    monkeypatch.syspath_prepend(str(site))
    files = {"each_time.py": EACH_TIME}
    points = {"chalie.policies": {"each": "each_time"}}
    packages.install(site, packages.Package(dist="chalie-policy-each", files=files, entry_points=points))
    chalie("index")
    chalie("enable", "chalie-policy-each")
    hold = asked(chalie, "dice")
    monkeypatch.setattr("chalie.cli.approve.proven", lambda host: "terminal:ada")
    monkeypatch.setattr("chalie.cli.approve.click.confirm", asks)
    monkeypatch.setattr("sys.stdin", Terminal())
    for words in (("--always",), ("--for", "5")):
        done = chalie("approve", hold, *words)
        assert done.code == exits.REFUSED
        assert "dice has to be asked about each time" in done.err
        assert "dice leave the table [not-allowed]" in done.err
        assert f"approve it once: chalie approve {hold}" in done.err
        assert done.out == ""
    with pytest.raises(AssertionError, match="it asked"):
        chalie("approve", hold)


@pytest.mark.usefixtures("approver")
def test_a_declined_call_is_refused_at_once_until_it_is_taken_back(chalie: Chalie) -> None:
    words = ("dice", "text=x", "--conversation", "talk")
    hold = asked(chalie, *words)
    assert chalie("decline", hold).code == exits.OK
    assert "code=declined" in chalie("call", *words).out
    assert f"chalie decline {hold} --undo" in chalie("explain", *words).out
    anywhere = chalie("explain", *words[:2]).out
    assert "in the conversation 'talk' this very call is refused at once: declined by token:phone" in anywhere
    assert f"to let it be asked again: chalie decline {hold} --undo" in anywhere
    assert "refused at once" not in chalie("explain", *words[:2], "--conversation", "another").out
    assert chalie("decline", hold, "--undo").code == exits.OK
    assert chalie("decline", hold, "--undo").code == exits.NOTHING
    asked(chalie, *words)


@pytest.mark.usefixtures("approver")
def test_decline_always_denies_the_permission(chalie: Chalie) -> None:
    declined = chalie("decline", asked(chalie, "notes", "action=clear"), "--always")
    assert "chalie permissions remove chat notes.clear --package chalie-ability-notes" in declined.err
    assert "permission-denied" in chalie("call", "notes", "action=clear", "--conversation", "other").out
    asked(chalie, "notes", "action=add")


@pytest.mark.usefixtures("approver")
def test_a_secret_is_masked_wherever_a_hold_is_shown(chalie: Chalie) -> None:
    hold = asked(chalie, "notes", "action=add", "password=hunter2")
    for words in (
        ("holds", "--json"),
        ("holds", hold),
        ("trail", "--json"),
        ("explain", "notes", "action=add"),
    ):
        assert "hunter2" not in chalie(*words).out
    assert "•••" in chalie("holds", hold).out


@pytest.mark.usefixtures("approver")
def test_a_secret_that_the_model_repeats_in_its_own_words_is_masked_too(chalie: Chalie) -> None:
    said = "logs in with hunter2 (or HUNTER2)"
    hold = asked(chalie, "notes", "action=add", "password=hunter2", f"act_summary={said}")
    (row,) = chalie("holds", "--json").json
    assert row["model_says"] == "logs in with ••• (or •••)"
    assert "hunter2" not in chalie("holds", hold).out.lower()
    assert '"password":"hunter2"' in chalie("approve", hold).out  # the tool itself gives it back


# an upgrade


@pytest.mark.usefixtures("approver")
def test_an_allow_lapses_with_an_upgrade_and_the_difference_is_said(
    chalie: Chalie, installed: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "upgraded"
    monkeypatch.syspath_prepend(str(site))
    old = packages.ability_package("counter", summary="Count things.", facts={"side_effect": packages.READ})
    installed_one = packages.install(site, old)
    chalie("index")
    chalie("permissions", "set", "chat", "counter", "allow")
    assert chalie("call", "counter").code == exits.OK
    assert chalie("permissions", "lint").code == exits.OK
    installed_one.uninstall()
    new = packages.ability_package(
        "counter",
        version="2.0",
        summary="Count things and send them away.",
        facts={"side_effect": packages.READ},
    )
    packages.install(site, new)
    chalie("index")
    lint = chalie("permissions", "lint")
    assert lint.code == exits.NOTHING
    assert "version: 1.0 -> 2.0" in lint.out
    explained = chalie("explain", "counter").out
    assert "counter was allowed on chat, by token:phone, but has changed since:" in explained
    assert 'summary: "Count things." -> "Count things and send them away."' in explained
    assert explained.rstrip().endswith("= ask")
    chalie("permissions", "set", "chat", "counter", "allow")
    assert chalie("permissions", "lint").code == exits.OK
    assert chalie("explain", "counter").out.rstrip().endswith("= allow")


# rows


@pytest.mark.usefixtures("approver")
def test_lint_names_rows_that_do_not_do_what_they_seem_to(chalie: Chalie, home: Path) -> None:
    given = [
        ("dice", "chalie-ability-dice", "allow"),
        ("notes.burn", "chalie-ability-notes", "deny"),
        ("dice", "chalie-ability-old-dice", "allow"),
        ("gone", "chalie-ability-gone", "allow"),
        ("_mcp_files_*", "files", "allow"),
        ("notes", "chalie-ability-notes", "deny"),
        ("notes.add", "chalie-ability-notes", "allow"),
    ]
    for permission, package, setting in given:
        assert (
            chalie("permissions", "set", "chat", permission, setting, "--package", package, "--force").code
            == exits.OK
        )
    rows = chalie("permissions", "lint", "--json").json
    assert {row["permission"]: row["reason"] for row in rows} == {
        "notes.burn": "notes has no action 'burn' (it has: add, clear), so the row matches no call",
        "dice": "dice is chalie-ability-dice's now, and the row is about chalie-ability-old-dice",
        "gone": "chalie-ability-gone is not installed",
        "_mcp_files_*": "no tool of files has a name that begins with _mcp_files_",
        "notes.add": "it has no effect: notes as a whole is denied on chat",
    }
    assert {row["package"] for row in rows if row["permission"] == "dice"} == {"chalie-ability-old-dice"}


@pytest.mark.usefixtures("approver")
@pytest.mark.parametrize(
    "pattern", ["*", "d*", "_mcp_*", "_mcp_f*s_read", "notes.*", "_mcp_files_*.x", "chalie*"]
)
def test_only_the_tools_of_a_server_are_named_by_a_pattern(chalie: Chalie, pattern: str) -> None:
    done = chalie("permissions", "set", "chat", pattern, "allow", "--package", "files")
    assert done.code == exits.USAGE
    assert "is no pattern" in done.err


# explaining


@pytest.mark.usefixtures("approver")
def test_explain_shows_every_verdict_and_runs_nothing(chalie: Chalie, home: Path) -> None:
    chalie("permissions", "set", "chat", "notes", "allow")
    done = chalie("explain", "notes", "action=clear")
    assert done.code == exits.OK
    assert done.out.splitlines()[1] == "permission notes.clear, side effect destructive"
    assert "you: notes is set to allow on chat, by token:phone" in done.out
    facts = chalie("explain", "notes", "--channel", "subconscious", "--json").json
    assert [(each["permission"], each["setting"]) for each in facts] == [
        ("notes.add", "deny"),
        ("notes.clear", "deny"),
    ]
    assert chalie("explain", "notes", "action=burn").code != exits.OK
    assert chalie("explain", "nothing_like_it").code == exits.NOTHING
    with Ledger.open(home / "ledger.sqlite") as ledger:
        assert ledger.holds.list() == ()
    assert chalie("trail", "--event", "call.").code == exits.NOTHING


# policies


POLICY = """
from chalie import Opinion, hookimpl

@hookimpl
def review_call(call):
    return Opinion("allow", "everything is fine")
"""


@pytest.mark.usefixtures("approver")
def test_a_policys_allow_counts_once_trusted_and_no_longer_when_its_files_change(
    chalie: Chalie, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "policies"
    monkeypatch.syspath_prepend(str(site))
    dist = "chalie-policy-lax"
    package = packages.Package(
        dist=dist, files={"lax_policy.py": POLICY}, entry_points={"chalie.policies": {"lax": "lax_policy"}}
    )
    lax = packages.install(site, package)
    chalie("index")
    assert "not enabled" in chalie("trust", dist).err
    chalie("enable", dist)
    assert (
        "(does not count: chalie-policy-lax is not trusted; chalie trust chalie-policy-lax)"
        in chalie("explain", "dice").out
    )
    assert chalie("trust", dist).code == exits.OK
    assert chalie("explain", "dice").out.rstrip().endswith("= allow")
    assert chalie("call", "dice").code == exits.OK
    # an editable install, or another program of the home, has another import path
    another = tmp_path / "another"
    another.mkdir()
    monkeypatch.syspath_prepend(str(another))
    chalie("index")
    assert chalie("explain", "dice").out.rstrip().endswith("= allow")
    chalie("distrust", dist)
    assert chalie("explain", "dice").out.rstrip().endswith("= ask")
    chalie("trust", dist)
    lax.rewrite("lax_policy.py", POLICY.replace("everything", "all"))
    chalie("index")
    assert chalie("explain", "dice").out.rstrip().endswith("= ask")
    assert "brings no policies" in chalie("trust", "chalie-ability-dice").err
    rows = chalie("trail", "--event", "trust.changed", "--json").json
    assert [row["setting"] for row in rows] == ["trusted", "distrusted", "trusted"]
    changes = chalie("trail", "--event", "policy.changed", "--json").json
    assert [dist in row["detail"] for row in reversed(changes)] == [True, True, False]


# what a tool prints

LOUD = """
from chalie import Ability, SideEffect, ToolResult

class Loud(Ability):
    actions = {"cry": SideEffect.WRITE}
    def name(self): return "loud"
    def summary(self): return "Cry out loud and say what was cried."
    def examples(self): return ["cry out loud", "shout", "be loud", "make noise", "yell now", "cry for me"]
    def search_tooltip(self): return "Crying out"
    def parameters(self): return {"type": "object", "properties": {"text": {"type": "string"}}}
    def classify(self, params):
        print("while it is judged")
        return "cry"
    def run(self, params):
        print("while it runs")
        return ToolResult.ok("cried")
"""


@pytest.mark.usefixtures("approver")
def test_what_a_tool_prints_is_no_part_of_the_json(
    chalie: Chalie, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "loud"
    monkeypatch.syspath_prepend(str(site))
    package = packages.Package(
        dist="chalie-ability-loud",
        files={"loud_tool.py": LOUD},
        entry_points={packages.GROUP: {"loud": "loud_tool"}},
    )
    packages.install(site, package)
    chalie("index")
    explained = chalie("explain", "loud", "text=a", "--json")
    assert [row["permission"] for row in explained.json] == ["loud.cry"]
    assert "while it is judged" in explained.err
    approved = chalie("approve", asked(chalie, "loud", "text=a"), "--json")
    assert approved.json["state"] == "done" and "cried" in approved.json["result"]
    assert "while it runs" in approved.err


def test_explain_names_the_channel_that_was_probably_meant(chalie: Chalie) -> None:
    done = chalie("explain", "dice", "--channel", "chta")
    assert done.code == exits.USAGE and "did you mean chat?" in done.err
    assert chalie("explain", "dice", "--channel", "web_search").code == exits.USAGE
