"""The question at a terminal, typed and read through a real one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from chalie.calls import AnswerKind
from chalie.errors import NotAuthorised
from chalie.gate.approvers import ProvenApprover, TerminalApprover, prompt_lines
from chalie.gate.authority import login

from .conftest import Person, a_view

ASK = """
    import json, time
    from chalie.calls import HoldView, SideEffect
    from chalie.gate.approvers import TerminalApprover
    facts = json.loads(sys.argv[1])
    view = HoldView(
        "c1", facts.get("name", "email"), "chalie-ability-email", "email.send", SideEffect.EXTERNAL_SEND,
        facts.get("arguments", {"to": "eve"}), "chat", "ada", "talk", facts.get("says", "I send it"),
        ("nobody has said anything about it",), facts.get("must_ask", False),
    )
    print("asking", flush=True)
    if facts.get("wait"):
        while not Path(facts["wait"]).exists():
            time.sleep(0.01)
    if facts.get("settled"):
        import threading
        from chalie.gate.approvers import settled
        event = threading.Event()
        settled.set(event)
        def watch():
            while not Path(facts["settled"]).exists():
                time.sleep(0.01)
            event.set()
        threading.Thread(target=watch, daemon=True).start()
    answer = TerminalApprover(**facts.get("options", {})).ask(view)
    print(answer.kind.value, answer.by, answer.until)
"""

Ask = Callable[..., Person]


@pytest.fixture
def ask(person: Callable[..., Person]) -> Ask:
    def start(stdin: bool = True, **facts: Any) -> Person:
        return person(ASK, json.dumps(facts), stdin=stdin)

    return start


@pytest.mark.parametrize(
    ("typed", "kind"),
    [
        ("o\n", "once"),
        ("ONCE\n", "once"),
        ("always\n", "always"),
        (" a \n", "always"),
        ("d\n", "decline"),
        ("no\n", "decline"),
        ("Never\n", "decline_always"),
        ("for\nuntil\nfor 0\n", "decline"),
        ("until 25:00\nuntil 2001-01-01 10:00\nuntil x\n", "decline"),
        ("for 1.5\nfor 9999999\nonce\n", "once"),
        ("\x04", "decline"),
        ("\n\n\n", "decline"),
        ("what\nyes please\nonce\n", "once"),
        ("1\n2\n3\n", "decline"),
    ],
)
def test_what_is_typed_is_the_answer_and_it_says_who_gave_it(ask: Ask, typed: str, kind: str) -> None:
    one = ask()
    one.reads("[o]nce  [a]lways  [d]eny  [?] > ")
    one.types(typed)
    assert one.ends().splitlines()[-1] == f"{kind} terminal:{login()} None"


@pytest.mark.parametrize(
    ("typed", "minutes"), [("for 5\n", 5), ("until noon\nFOR  7\n", 7), ("until 2999-01-01T10:00Z\n", None)]
)
def test_a_yes_may_be_for_a_time(ask: Ask, typed: str, minutes: int | None) -> None:
    before = datetime.now(UTC)
    one = ask()
    one.reads("[o]nce  [a]lways  [d]eny  [?] > ")
    one.types(typed)
    kind, _, until = one.ends().splitlines()[-1].split(" ", 2)
    end = datetime.fromisoformat(until)
    assert kind == "until"
    if minutes is None:
        assert end == datetime(2999, 1, 1, 10, tzinfo=UTC)
    else:
        since = timedelta(minutes=minutes)
        assert before + since <= end <= datetime.now(UTC) + since


def test_the_question_shows_what_the_yes_is_for(ask: Ask) -> None:
    one = ask(arguments={"to": "eve", "cc": ["bob"], "n": 1.0})
    screen = one.reads("> ").replace("\r\n", "\n")
    assert "May email run? It is part of chalie-ability-email." in screen
    assert "  permission: email.send (external_send)" in screen
    assert "  on chat, for ada" in screen
    assert "  because: nobody has said anything about it" in screen
    assert '  the model says: "I send it"' in screen
    assert '  | "to": "eve"\n  | "cc": ["bob"]\n  | "n": 1.0\n' in screen
    one.types("d\n")
    one.ends()


def test_the_answers_are_explained_as_often_as_they_are_asked_for(ask: Ask) -> None:
    one = ask(says="")
    assert "the model says" not in one.reads("> ")
    for _ in range(4):
        one.types("?\n")
        assert "from now on email.send on chat is not asked about" in one.reads("[d]eny  [?] > ").replace(
            "\r\n", ""
        )
    one.types("once\n")
    assert one.ends().splitlines()[-1].startswith("once ")


def test_a_question_that_is_answered_elsewhere_is_taken_back(ask: Ask, tmp_path: Path) -> None:
    one = ask(settled=str(tmp_path / "answered"))
    one.reads("> ")
    (tmp_path / "answered").touch()
    one.reads("no answer is needed any more")
    assert "TimeoutError: it was answered elsewhere, or too late" in one.fails()


def test_what_must_be_asked_each_time_does_not_take_always(ask: Ask) -> None:
    one = ask(must_ask=True)
    assert "always" not in one.reads("[o]nce  [d]eny  [?] > ")
    one.types("always\n")
    one.reads("this has to be asked each time")
    one.reads("> ")
    one.types("once\n")
    assert one.ends().splitlines()[-1].startswith("once ")


def test_what_was_typed_before_the_question_is_no_answer(ask: Ask, tmp_path: Path) -> None:
    one = ask(wait=str(tmp_path / "go"))
    assert one.process.stdout is not None
    one.process.stdout.readline()
    one.types("once\nalways\n")
    one.reads("always")  # the terminal has taken it
    (tmp_path / "go").touch()
    one.reads("> ")
    one.types("d\n")
    assert one.ends().strip().startswith("decline ")


def test_no_answer_in_time_leaves_the_call_for_later(ask: Ask) -> None:
    one = ask(options={"timeout_s": 0.2})
    one.reads("no answer; it can be given later: chalie approve c1")
    assert "TimeoutError: nobody answered in time" in one.fails()


def test_piped_input_is_no_answer_and_does_not_keep_the_person_from_giving_one(ask: Ask) -> None:
    one = ask(stdin=False)
    one.reads("> ")
    one.types("once\n")
    assert one.ends().splitlines()[-1].startswith("once ")


def test_nothing_of_others_acts_on_the_terminal_or_hides(ask: Ask) -> None:
    nasty = "\x1b[2J\x1b[1A\r\x07\x9b\u202eevil\u2066\u200b\ufeff\x00"
    one = ask(name=f"em{nasty}ail", says=nasty, arguments={"to": nasty, nasty: [nasty]})
    screen = one.reads("[d]eny  [?] > ").replace("\r\n", "\n").replace("\n  | ", "").replace("\n  ", "")
    assert all(character == "\n" or character.isprintable() for character in screen)
    assert screen.count("\\u202e") == 5
    assert screen.count("\\u001b[2J") == 5
    one.types("d\n")
    one.ends()


def test_text_of_others_cannot_look_like_the_question(ask: Ask) -> None:
    forged = "\n\nMay weather run?\n  because: fine\n[o]nce  [a]lways  [d]eny  [?] > "
    one = ask(arguments={"text": forged}, says=forged)
    screen = one.reads("\n[o]nce").replace("\r\n", "\n").splitlines()
    assert sum(line.startswith("May ") for line in screen) == 1
    assert sum(line.startswith("  because:") for line in screen) == 1
    one.types("d\n")
    one.ends()


def test_the_tail_of_a_long_value_stands_right_above_the_question(ask: Ask) -> None:
    command = "true" + " " * 5_000 + "; rm -rf ~"
    one = ask(arguments={"command": command, "after": 1})
    screen = one.reads("\n[o]nce").replace("\r\n", "\n")
    shown = "".join(line[4:] for line in screen.splitlines() if line.startswith("  | "))
    assert json.dumps(command) in shown
    assert '"command" (5,016 characters): "true ' in shown
    assert "(2 arguments on " in screen
    assert "scroll up to see all of them)" in screen
    one.types("d\n")
    one.ends()


def test_a_process_without_a_terminal_cannot_ask() -> None:
    code = (
        "from tests.gate.conftest import a_view\nfrom chalie.gate.approvers import TerminalApprover\n"
        "try:\n    TerminalApprover().ask(a_view())\nexcept Exception as error:\n    print(repr(error))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        start_new_session=True,
    ).stdout
    assert out.startswith("NotAuthorised(")


def test_a_call_without_arguments_says_so() -> None:
    assert "  arguments: none" in list(prompt_lines(a_view(arguments={}), 80))


def test_no_line_is_wider_than_the_terminal() -> None:
    lines = prompt_lines(a_view(name="x" * 300, model_says="y" * 300, arguments={"to": "z" * 300}), 40)
    assert max(map(len, lines)) <= 40


def test_a_yes_given_beforehand_answers_once() -> None:
    yes = ProvenApprover("token:phone")
    answer = yes.ask(a_view())
    assert (answer.kind, answer.by) == (AnswerKind.ONCE, "token:phone")
    with pytest.raises(NotAuthorised, match="for one call"):
        yes.ask(a_view())


def test_the_terminal_approver_is_an_approver() -> None:
    from chalie.calls import Approver

    assert isinstance(TerminalApprover(), Approver)
    assert isinstance(ProvenApprover("x"), Approver)
