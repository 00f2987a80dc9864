"""Every bypass of the corpus, down the whole road: dispatcher, gate, a person, and the workspace's tools."""

from __future__ import annotations

import getpass
import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chalie.calls import Answer, AnswerKind, HoldView, SideEffect
from chalie.envelope import Frame, parse
from chalie.gate.gate import Gate
from chalie.gate.policies import Policies

from tests.dispatch.inside import CHAT, Inside, Person
from tests.gate.bypass_corpus import Case, cases, counts
from tests.gate.conftest import Hooks

# Tools and policy are tried from their source; they are installed only where a test is about installing.
for _package in ("chalie-ability-workspace", "chalie-policy-side-effects"):
    sys.path.append(str(Path(__file__).parents[2] / "plugins" / _package / "src"))

DIST = "chalie-ability-workspace"
CASES = cases()
_ORDINAL = itertools.count()


class Slow(Person):
    """A person during whose thinking somebody puts a link in the workspace; it is taken away by `undo`."""

    def __init__(self, kind: AnswerKind, meanwhile: dict[str, str]) -> None:
        super().__init__(kind)
        self.at = Path(os.environ["CHALIE_WORKSPACE_ROOTS"]) / meanwhile["path"]
        self.to = meanwhile["to"]
        self.aside = self.at.with_name("aside")

    def ask(self, hold: HoldView) -> Answer:
        if self.at.exists():
            self.at.rename(self.aside)
        self.at.symlink_to(self.to)
        return super().ask(hold)

    def undo(self) -> None:
        self.at.unlink()
        if self.aside.exists():
            self.aside.rename(self.at)


class Road:
    """The way of a call through everything real, in a home where rows allow the tools or none does."""

    def __init__(self, home: Path, *, rows: bool) -> None:
        from chalie_ability_workspace.bash import Bash
        from chalie_ability_workspace.deleting import FileDelete
        from chalie_ability_workspace.delivering import FileDeliver
        from chalie_ability_workspace.editing import Edit
        from chalie_ability_workspace.listing import FileList
        from chalie_ability_workspace.plan import Plan
        from chalie_ability_workspace.reading import Read
        from chalie_ability_workspace.writing import Write
        from chalie_policy_side_effects.policy import review_call

        hooks = Hooks(policy={"review_call": review_call})
        self.inside = Inside(home)
        policies = Policies(hooks, deadline_ms=60_000, trusted=lambda _: True)
        self.inside.gate = Gate(self.inside.ledger, policies, ask_timeout_s=None)
        self.inside.dispatcher._approach._gate = self.inside.gate
        tools = (Bash, FileDelete, FileDeliver, Edit, FileList, Plan, Read, Write)
        self.tools = [self.inside.add(tool, DIST, allow=rows) for tool in tools]

    def call(self, case: Case, kind: AnswerKind) -> tuple[Frame, Person]:
        """Make a call in a conversation of its own; return its result and who may have been asked."""
        person = Person(kind) if case.meanwhile is None else Slow(kind, case.meanwhile)
        turn = self.inside.turn(
            *self.tools,
            channel=CHAT,
            principal=getpass.getuser(),
            conversation=f"case {next(_ORDINAL)}",
            approver=person,
        )
        return parse(self.inside.dispatcher.call(turn, case.tool, case.arguments)), person


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with what the cases speak of, beside folders that must stay as they are."""
    top = tmp_path_factory.mktemp("bypass").resolve()
    root, outside = top / "work", top / "outside"
    for folder in (
        root / "src",
        root / ".git" / "hooks",
        root / "chalie-home",
        root / "moved" / "deep",
        root / "secrets",
        root / "sub" / ".aws",
        outside,
        top / "work2",
    ):
        folder.mkdir(parents=True)
    (outside / "far.txt").write_text("CANARY\n")
    (root / "a.txt").write_text("one\ntwo\n")
    (root / "src" / "main.py").write_text("print('hello')\n")
    for name in (
        ".env", ".env.example", ".git/config", "moved/far.txt", "moved/deep/far.txt", "secrets/keys.py",
        "sub/.aws/x.py", "private_key.py",
    ):  # fmt: skip
        (root / name).write_text("KEY=CANARY\n")
    for name, target in {
        "out": outside, "out.txt": outside / "far.txt", "dangling": outside / "new.txt", "inner": "src",
        "innocent": ".git", "notes.txt": ".env", "chain": "out", "src/up": "../..", "hooks": ".git/hooks",
    }.items():  # fmt: skip
        (root / name).symlink_to(target)
    return top


@pytest.fixture(autouse=True)
def workspace(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHALIE_WORKSPACE_ROOTS", str(top / "work"))
    monkeypatch.setenv("CHALIE_HOME", str(top / "work" / "chalie-home"))


@pytest.fixture(scope="module")
def roads(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[bool, Road]]:
    made = {rows: Road(tmp_path_factory.mktemp("home"), rows=rows) for rows in (False, True)}
    yield made
    for road in made.values():
        road.inside.close()


def state(top: Path) -> dict[str, Any]:
    """Return everything there is, with the content of files; links are not followed."""
    return {
        str(path.relative_to(top)): None if path.is_symlink() or path.is_dir() else path.read_bytes()
        for path in top.rglob("*")
    }


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_bypass_gets_the_answer_it_should(case: Case, roads: dict[bool, Road], top: Path) -> None:
    before = state(top)
    if case.expect == "refused":
        frame, person = roads[False].call(case, AnswerKind.ONCE)
        if isinstance(person, Slow):
            assert len(person.shown) == 1, frame
            person.undo()
        assert frame.status == "error", frame
        assert frame.code == case.code or not case.code, frame
        assert "CANARY" not in str(frame)
    elif case.expect == "allow":
        frame, person = roads[False].call(case, AnswerKind.DECLINE)
        assert frame.status == "success", frame
        assert person.shown == []
    else:
        frame, person = roads[False].call(case, AnswerKind.DECLINE)
        assert (frame.code, len(person.shown)) == ("declined", 1), frame
        assert person.shown[0].effect not in (SideEffect.READ, SideEffect.COMPUTATION)
        if case.expect == "always":
            frame, person = roads[True].call(case, AnswerKind.DECLINE)
            assert (frame.code, len(person.shown)) == ("declined", 1), frame
            assert person.shown[0].must_ask
    assert state(top) == before


def test_the_corpus_is_as_large_as_promised_and_names_no_case_twice() -> None:
    by_kind = {kind: sum(n for (k, _), n in counts().items() if k == kind) for kind, _ in counts()}
    assert by_kind["command"] >= 400
    assert by_kind["path"] >= 150
    assert set(by_kind) >= {"command", "path", "argument", "name", "timing"}
    seen = [(case.tool, str(case.arguments), str(case.meanwhile)) for case in CASES]
    assert len(seen) == len(set(seen))


def test_rows_that_allow_the_tools_do_what_they_say(roads: dict[bool, Road]) -> None:
    """Else `always` above would prove nothing."""
    case = Case("command", "", "", "", "bash", {"command": "true & true"})
    frame, person = roads[True].call(case, AnswerKind.DECLINE)
    assert frame.status == "success"
    assert person.shown == []


@pytest.mark.parametrize(
    ("tool", "arguments", "why"),
    [
        ("write", {"path": ".git/hooks/new", "content": "x"}, ".git"),
        ("bash", {"command": "ls 'a"}, "not a command that a shell's grammar takes"),
        (
            "bash",
            {"command": "ls", "approvalRequired": True, "approvalReason": "unsure; all is well"},
            "the model asks for a person, saying 'unsure; all is well'",
        ),
    ],
)
def test_a_person_sees_in_the_tools_words_why_a_call_is_asked_about_each_time(
    roads: dict[bool, Road], tool: str, arguments: dict[str, Any], why: str
) -> None:
    _, person = roads[True].call(Case("", "", "", "", tool, arguments), AnswerKind.DECLINE)
    (shown,) = person.shown
    assert shown.must_ask
    assert any(why in reason for reason in shown.reasons), shown.reasons
    assert not any("could not be told" in reason for reason in shown.reasons)
