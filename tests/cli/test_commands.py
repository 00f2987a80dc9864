"""Every command against a home with generated packages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chalie import Host
from chalie.cli import exits
from chalie.envelope import parse

from tests.support import packages

Chalie = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("installed")


def test_list_shows_each_tool_with_its_package_and_strongest_effect(chalie: Chalie) -> None:
    done = chalie("list", "--json")
    assert done.code == exits.OK
    rows = {row["name"]: row for row in done.json["tools"]}
    assert set(rows) == {"dice", "notes"}
    assert rows["dice"]["package"] == "chalie-ability-dice"
    assert (rows["dice"]["effect"], rows["notes"]["effect"]) == ("read", "destructive")
    assert done.json["problems"] >= 1


def test_list_says_on_the_side_that_something_is_wrong(chalie: Chalie) -> None:
    done = chalie("list")
    assert "dice" in done.out
    assert "`chalie doctor` names them" in done.err


def test_list_of_one_package_shows_only_its_tools(chalie: Chalie) -> None:
    done = chalie("list", "chalie-ability-notes", "--json")
    assert [row["name"] for row in done.json["tools"]] == ["notes"]


def test_show_says_what_the_gate_answers_on_each_channel(chalie: Chalie) -> None:
    row = chalie("show", "notes", "--json").json
    settings = {each["permission"]: each["settings"] for each in row["permissions"]}
    assert settings["notes.clear"] == {"chat": "ask", "subconscious": "deny", "external_agent": "deny"}
    assert row["parameters"]["required"] == ["action"]
    text = chalie("show", "notes").out
    assert "notes.clear" in text and "destructive" in text and "action" in text


def test_show_takes_a_package_too(chalie: Chalie) -> None:
    package = chalie("show", "chalie-ability-dice", "--json").json
    assert (package["package"], package["state"]) == ("chalie-ability-dice", "ready")
    assert [row["name"] for row in package["tools"]] == ["dice"]


def test_show_of_nothing_known_says_how_to_search(chalie: Chalie) -> None:
    done = chalie("show", "weather")
    assert done.code == exits.NOTHING
    assert "no tool or package named 'weather' is installed [unknown-tool]" in done.err
    assert 'hint: search for one: chalie find "weather"' in done.err


def test_find_prints_the_body_of_find_tools(chalie: Chalie) -> None:
    done = chalie("find", "dice", "zzzzqqqq", "--json")
    assert done.code == exits.OK
    assert done.json["injected"] == [{"name": "dice", "summary": "Roll dice and report their sum."}]
    assert [row["entry"] for row in done.json["not_found"]] == ["zzzzqqqq"]


def test_find_is_the_search_a_model_gets(chalie: Chalie, home: Path) -> None:
    printed = chalie("find", "dice", "notess", "--json").json
    with Host.open(home) as host:
        frame = parse(host.turn("chat").call("find_tools", {"query": ["dice", "notess"]}))
    assert json.loads(frame.body) == printed


def test_find_that_finds_nothing_exits_1_and_names_the_reason(chalie: Chalie) -> None:
    done = chalie("find", "zzzzqqqq")
    assert done.code == exits.NOTHING
    assert done.out == ""
    assert "not found: zzzzqqqq (" in done.err


def test_find_explains_by_which_rung_each_was_found(chalie: Chalie) -> None:
    (row,) = chalie("find", "dice", "--explain", "--json").json["injected"]
    assert (row["rung"], row["distance"], row["entry"]) == ("exact", None, "dice")
    assert row["package"] == "chalie-ability-dice"


def test_a_call_that_has_to_be_asked_about_does_not_run_where_nobody_answers(chalie: Chalie) -> None:
    done = chalie("call", "dice")
    assert done.code == exits.REFUSED
    assert "status=error" in done.out and "do not retry" in done.out
    assert chalie("trail", "--event", "call.started").code == exits.NOTHING


def test_a_call_nobody_can_approve_is_refused_with_the_line_that_allows_it(chalie: Chalie) -> None:
    done = chalie("call", "dice", "--channel", "subconscious")
    assert done.code == exits.REFUSED
    assert done.out.startswith("[dice(status=error, code=permission-denied")
    assert "chalie permissions set subconscious dice allow --package chalie-ability-dice" in done.out


def test_a_call_with_the_token_of_an_approver_runs_once_and_says_who_said_yes(
    chalie: Chalie, token: str
) -> None:
    done = chalie("call", "dice", "text=hello", "--yes")
    assert done.code == exits.OK
    assert done.out.startswith("[dice(status=success)]\n")
    (row,) = chalie("trail", "--event", "approval.decided", "--json").json
    assert (row["setting"], row["by"], row["permission"]) == ("once", "token:phone", "dice")
    assert chalie("call", "dice").code == exits.REFUSED


def test_yes_without_terminal_or_token_runs_nothing(chalie: Chalie) -> None:
    done = chalie("call", "dice", "--yes")
    assert done.code == exits.REFUSED
    assert "[not-authorised]" in done.err and done.out == ""
    assert chalie("trail", "--event", "call.", "--json").code == exits.NOTHING


def test_a_call_as_json_is_the_parsed_envelope(chalie: Chalie, token: str) -> None:
    done = chalie("call", "dice", "text=hello", "--yes", "--json")
    assert done.json["status"] == "success"
    assert done.json["body"] == {"echo": {"text": "hello"}}


def test_a_value_is_read_as_json_only_where_the_tool_wants_no_text(chalie: Chalie, token: str) -> None:
    done = chalie("call", "notes", "action=add", "count=3", "--yes", "--json")
    assert done.json["body"] == {"echo": {"action": "add", "count": 3}}
    assert chalie("call", "dice", "text=3", "--yes", "--json").json["body"] == {"echo": {"text": "3"}}


def test_a_call_with_bad_arguments_exits_5_with_the_envelope_a_model_would_see(chalie: Chalie) -> None:
    done = chalie("call", "notes", "action=burn")
    assert done.code == exits.FAILED
    assert "code=unknown-action" in done.out or "code=invalid-param" in done.out


def test_a_call_of_an_unknown_tool_exits_1(chalie: Chalie) -> None:
    done = chalie("call", "nothing_like_it")
    assert done.code == exits.NOTHING
    assert "code=unknown-tool" in done.out


def test_a_secret_argument_is_masked_on_the_trail(chalie: Chalie, token: str) -> None:
    assert chalie("call", "notes", "action=add", "password=hunter2", "--yes").code == exits.OK
    done = chalie("trail", "--json")
    assert "hunter2" not in done.out and "password" in done.out


def test_a_permission_set_with_a_token_lets_the_call_run(chalie: Chalie, token: str) -> None:
    done = chalie("permissions", "set", "chat", "dice", "allow")
    assert (done.code, done.out) == (exits.OK, "chat: chalie-ability-dice:dice is now allow\n")
    assert chalie("call", "dice").code == exits.OK
    (row,) = [row for row in chalie("permissions", "list", "--json").json if row["setting"] == "allow"]
    assert (row["channel"], row["package"], row["permission"]) == ("chat", "chalie-ability-dice", "dice")
    assert (row["by"], row["installed"]) == ("token:phone", True)
    assert chalie("permissions", "remove", "chat", "dice").code == exits.OK
    assert chalie("call", "dice").code == exits.REFUSED
    assert chalie("permissions", "remove", "chat", "dice").code == exits.NOTHING


def test_a_permission_can_be_set_for_a_while(chalie: Chalie, token: str) -> None:
    assert chalie("permissions", "set", "chat", "dice", "allow", "--for", "10").code == exits.OK
    (row,) = [row for row in chalie("permissions", "list", "--json").json if row["until"]]
    assert row["permission"] == "dice"


def test_nobody_without_a_terminal_or_token_sets_a_permission(chalie: Chalie) -> None:
    done = chalie("permissions", "set", "chat", "dice", "allow")
    assert done.code == exits.REFUSED
    assert "[not-authorised]" in done.err
    assert {row["by"] for row in chalie("permissions", "list", "--json").json} == {"host"}


def test_a_permission_of_a_tool_nobody_has_needs_its_package_named(chalie: Chalie, token: str) -> None:
    done = chalie("permissions", "set", "chat", "email.send", "deny")
    assert done.code == exits.NOTHING
    assert "--package NAME" in done.err
    done = chalie("permissions", "set", "chat", "email.send", "deny", "--package", "chalie-ability-email")
    assert done.code == exits.OK
    (row,) = [row for row in chalie("permissions", "list", "--json").json if row["by"] != "host"]
    assert row["installed"] is False
    assert "known but not installed" in chalie("doctor").out


def test_a_permission_of_a_name_with_two_owners_needs_its_package_named(
    chalie: Chalie, token: str, site: Path
) -> None:
    packages.install(site, packages.ability_package("dice", dist="other-dice"))
    done = chalie("permissions", "set", "chat", "dice", "allow")
    assert done.code == exits.FAILED
    assert "several packages have a tool named 'dice': chalie-ability-dice, other-dice" in done.err


def test_a_delegate_channel_has_no_permissions_of_its_own(chalie: Chalie, token: str) -> None:
    done = chalie("permissions", "set", "web_search", "dice", "allow")
    assert done.code == exits.USAGE
    assert "takes the permissions of the turn that opens it" in done.err


def test_an_approver_token_is_shown_once_and_good_until_removed(
    chalie: Chalie, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = chalie("approvers", "add", "tablet").out.strip()
    assert [row["label"] for row in chalie("approvers", "list", "--json").json] == ["phone", "tablet"]
    assert made not in chalie("approvers", "list").out
    assert chalie("approvers", "add", "tablet").code == exits.USAGE
    assert chalie("approvers", "remove", "tablet").code == exits.OK
    assert chalie("approvers", "remove", "tablet").code == exits.NOTHING
    monkeypatch.setenv("CHALIE_APPROVER_TOKEN", made)
    assert chalie("call", "dice", "--yes").code == exits.REFUSED


def problems_of_packages(done: Any) -> list[Any]:
    """Return what is wrong with packages, whether or not this environment has an embedding model."""
    return [problem for problem in done.json["problems"] if problem["package"] != "chalie"]


def test_doctor_names_the_broken_package_and_the_line_that_repairs_it(chalie: Chalie) -> None:
    done = chalie("doctor", "--json")
    assert done.code == exits.NOTHING
    (problem,) = problems_of_packages(done)
    assert problem["package"] == "chalie-ability-broken"
    assert problem["entry_point"].endswith("broken = chalie_ability_broken")
    assert problem["phase"] == "import"
    assert "no such luck" in problem["reason"]
    assert "chalie" in problem["fix"] or "pip" in problem["fix"]
    assert problem["quarantined"] is True
    text = chalie("doctor").out
    for word in ("chalie-ability-broken", "import", "no such luck", problem["fix"]):
        assert word in text


def test_a_disabled_package_is_gone_and_comes_back(chalie: Chalie, token: str) -> None:
    done = chalie("disable", "Chalie_Ability_Broken", "chalie-ability-dice")
    assert done.code == exits.OK, done.err
    assert [row["name"] for row in chalie("list", "--json").json["tools"]] == ["notes"]
    done = chalie("doctor", "--json")
    assert problems_of_packages(done) == []
    assert {"chalie-ability-broken", "chalie-ability-dice"} <= {row["package"] for row in done.json["notes"]}
    assert "is disabled already" in chalie("disable", "chalie-ability-dice").out
    assert chalie("enable", "chalie-ability-dice").code == exits.OK
    assert [row["name"] for row in chalie("list", "--json").json["tools"]] == ["dice", "notes"]


def test_what_was_disabled_is_not_enabled_without_proof(chalie: Chalie) -> None:
    assert chalie("disable", "chalie-ability-dice").code == exits.OK
    assert chalie("enable", "chalie-ability-dice").code == exits.REFUSED
    assert "dice" not in {row["name"] for row in chalie("list", "--json").json["tools"]}


def test_enabling_or_disabling_what_is_not_installed_says_so(chalie: Chalie) -> None:
    for command in ("enable", "disable"):
        done = chalie(command, "chalie-ability-nowhere")
        assert done.code == exits.NOTHING
        assert "no package chalie-ability-nowhere is installed" in done.err
        assert "chalie install chalie-ability-nowhere" in done.err


def test_a_plugin_waits_until_a_person_enables_it_and_then_brings_its_command(
    chalie: Chalie, token: str, site: Path
) -> None:
    source = """
import click
from chalie import hookimpl

@click.command(help="Say hello.")
def hello():
    click.echo("hello from a plugin")

@hookimpl
def register_commands():
    return {"hello": hello}
"""
    packages.install(
        site,
        packages.Package(
            dist="chalie-hello",
            files={"chalie_hello.py": source},
            entry_points={"chalie.plugins": {"hello": "chalie_hello"}},
        ),
    )
    assert chalie("hello").code == exits.USAGE
    assert "installed, not enabled: chalie enable chalie-hello" in chalie("list").out
    done = chalie("enable", "chalie-hello")
    assert (done.code, done.out) == (exits.OK, "chalie-hello: enabled: plugins\n")
    assert chalie("hello").out == "hello from a plugin\n"
    assert "hello" in chalie("--help").out
    assert chalie("disable", "chalie-hello").code == exits.OK
    assert chalie("hello").code == exits.USAGE


def test_enabling_lapses_when_the_files_change_and_doctor_says_so(
    chalie: Chalie, token: str, site: Path
) -> None:
    package = packages.Package(
        dist="chalie-quiet",
        files={"chalie_quiet.py": "FIRST = 1\n"},
        entry_points={"chalie.plugins": {"quiet": "chalie_quiet"}},
    )
    put = packages.install(site, package)
    assert chalie("enable", "chalie-quiet").code == exits.OK
    assert "chalie-quiet" not in {row["package"] for row in chalie("doctor", "--json").json["notes"]}
    put.rewrite("chalie_quiet.py", "SECOND = 22\n")
    chalie("index")
    (note,) = [row for row in chalie("doctor", "--json").json["notes"] if row["package"] == "chalie-quiet"]
    assert note["reason"] == "its files changed since it was enabled, so enabling lapsed"
    assert note["fix"] == "chalie enable chalie-quiet"
    assert "installed, not enabled" in chalie("list").out


def test_index_says_what_is_there_and_fails_where_something_cannot_be_read(chalie: Chalie) -> None:
    done = chalie("index", "--json")
    assert done.code == exits.NOTHING
    assert done.json["abilities"] == 2 and done.json["problems"] >= 1


def test_the_trail_is_filtered_and_paged(chalie: Chalie, token: str) -> None:
    for _ in range(3):
        assert chalie("call", "dice", "--yes", "--conversation", "monday").code == exits.OK
    assert chalie("call", "notes", "action=add", "--yes").code == exits.OK
    rows = chalie("trail", "--tool", "dice", "--event", "call.finished", "--json").json
    assert len(rows) == 3 and {row["conversation"] for row in rows} == {"monday"}
    first = chalie("trail", "--tool", "dice", "--event", "call.finished", "-n", "1", "--json").json
    assert first == rows[:1]
    before = str(first[0]["id"])
    rest = chalie("trail", "--tool", "dice", "--event", "call.finished", "--before", before, "--json").json
    assert rest == rows[1:]
    assert chalie("trail", "--since", "1h", "--package", "chalie-ability-notes", "--json").json
    assert chalie("trail", "--call", rows[0]["call_id"], "--json").json
    assert "dice" in chalie("trail").out


def test_a_configuration_that_cannot_be_read_is_one_line_and_exit_code_3(chalie: Chalie, home: Path) -> None:
    (home / "config.toml").write_text("[limits]\nworkers = 'many'\n")
    done = chalie("list")
    assert done.code == exits.SETUP
    assert done.out == ""
    assert done.err.startswith("chalie: ") and "[bad-config]" in done.err and "workers" in done.err


def test_an_unexpected_error_keeps_its_traceback(chalie: Chalie, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(Host, "open", fail)
    with pytest.raises(ZeroDivisionError, match="a bug"):
        chalie("list")
