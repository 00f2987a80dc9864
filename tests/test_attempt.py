"""Calls of a program that asks the person in its own way, and later: `Turn.attempt` and `Turn.settle`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from chalie import AnswerKind, ChalieError, Host, NotAuthorised, Turn
from chalie.calls import Setting
from chalie.envelope import parse

from .support import packages

ONCE, DECLINE = AnswerKind.ONCE, AnswerKind.DECLINE


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with one line for each run of `send_words`."""
    return tmp_path_factory.mktemp("ran") / "ran"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory, written: Path) -> Iterator[Host]:
    """One host for all tests here, each of which has a conversation of its own."""
    run = f"""
        with open({str(written)!r}, "a") as file:
            print(params.get("text"), file=file)
        return ToolResult.ok({{"sent": params["text"], "long": "x" * 200_000 * (params["text"] == "long")}})
    """
    fake = "return ToolResult.error('I wait', code='approval-pending')"
    site = tmp_path_factory.mktemp("site")
    packages.install(site, packages.ability_package("send_words", run=run))
    packages.install(site, packages.ability_package("fake_wait", run=fake))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        with Host.open(tmp_path_factory.mktemp("home") / "home") as host:
            host.upkeep.refresh()
            yield host


@pytest.fixture
def ran(written: Path) -> Path:
    """The same file, with no line yet."""
    written.unlink(missing_ok=True)
    return written


def day(name: str) -> str:
    """Return the id of a conversation of the running test alone."""
    return f"{name} of {os.environ['PYTEST_CURRENT_TEST'].rpartition(' ')[0]}"


def a_turn(host: Host, conversation: str = "monday", principal: str = "ada") -> Turn:
    return host.turn("chat", principal=principal, conversation=day(conversation), active=["send_words"])


def lines(ran: Path) -> list[str]:
    return ran.read_text().splitlines() if ran.exists() else []


def test_a_call_that_is_asked_about_waits_and_says_what_it_waits_for(host: Host, ran: Path) -> None:
    turn = a_turn(host)
    text, hold = turn.attempt("send_words", {"text": "hi", "act_summary": "to greet"})
    assert parse(text).code == "approval-pending"
    assert hold is not None
    assert (hold.name, hold.arguments, hold.model_says) == ("send_words", {"text": "hi"}, "to greet")
    assert [view.id for view in turn.waiting()] == [hold.id]
    assert not lines(ran)


def test_a_call_that_need_not_be_asked_about_just_runs(host: Host) -> None:
    text, hold = a_turn(host).attempt("find_tools", {"query": ["send words"]})
    assert hold is None
    assert parse(text).status == "success"


def test_the_turns_own_approver_is_not_asked(host: Host, ran: Path) -> None:
    class Refused:
        def ask(self, hold: object) -> None:
            raise AssertionError("it must not be asked")

    turn = host.turn("chat", principal="ada", active=["send_words"], approver=Refused())  # type: ignore[arg-type]
    _, hold = turn.attempt("send_words", {"text": "hi"})
    assert hold is not None
    row = host.ledger.trail.query(event="call.refused", limit=1)[0]
    assert "the program that made the call asks about it itself" in str(row.detail)


def test_the_same_call_with_a_yes_runs_once_and_returns_its_result(host: Host, ran: Path) -> None:
    turn = a_turn(host)
    _, hold = turn.attempt("send_words", {"text": "hi"})
    assert hold is not None
    text, waits = turn.attempt("send_words", {"text": "hi"}, answer=ONCE, token=host.approver_token)
    assert waits is None
    assert '"sent":"hi"' in parse(text).body
    assert lines(ran) == ["hi"]
    assert host.inbox(day("monday"), principal="ada") == []
    again, waits = turn.attempt(
        "send_words", {"text": "hi"}, hold=hold.id, answer=ONCE, token=host.approver_token
    )
    assert (again, waits) == (text, None)
    assert lines(ran) == ["hi"]


def test_a_yes_counts_in_a_later_turn_of_the_conversation_too(host: Host, ran: Path) -> None:
    a_turn(host).attempt("send_words", {"text": "hi"})
    a_turn(host).attempt("send_words", {"text": "hi"}, answer=ONCE, token=host.approver_token)
    assert lines(ran) == ["hi"]


@pytest.mark.parametrize("changed", [{"text": "all my keys"}, {}])
def test_a_yes_is_for_the_very_arguments_that_were_asked_about(
    host: Host, ran: Path, changed: dict[str, str]
) -> None:
    turn = a_turn(host)
    _, hold = turn.attempt("send_words", {"text": "hi"})
    _, other = turn.attempt("send_words", changed, answer=ONCE, token=host.approver_token)
    assert hold is not None and other is not None
    assert other.id != hold.id
    assert not lines(ran)


def test_a_yes_before_anybody_was_asked_is_none(host: Host, ran: Path) -> None:
    _, hold = a_turn(host).attempt("send_words", {"text": "hi"}, answer=ONCE, token=host.approver_token)
    assert hold is not None
    assert not lines(ran)


def test_a_yes_of_another_conversation_is_none_here(host: Host, ran: Path) -> None:
    a_turn(host, "monday").attempt("send_words", {"text": "hi"})
    a_turn(host, "tuesday").attempt("send_words", {"text": "hi"}, answer=ONCE, token=host.approver_token)
    assert not lines(ran)


def test_without_a_token_that_the_home_knows_an_answer_is_nobodys(host: Host, ran: Path) -> None:
    turn = a_turn(host)
    _, hold = turn.attempt("send_words", {"text": "hi"})
    assert hold is not None
    with pytest.raises(NotAuthorised, match="not known to this home"):
        turn.attempt("send_words", {"text": "hi"}, answer=ONCE, token="made-up")
    with pytest.raises(NotAuthorised, match="not known to this home"):
        turn.settle(hold.id, ONCE, token="made-up")
    assert not lines(ran)
    assert [view.id for view in turn.waiting()] == [hold.id]


def test_what_was_declined_is_never_run(host: Host, ran: Path) -> None:
    turn = a_turn(host)
    _, hold = turn.attempt("send_words", {"text": "hi"})
    assert hold is not None
    text = turn.settle(hold.id, DECLINE, token=host.approver_token)
    assert parse(text).code == "declined"
    assert parse(turn.settle(hold.id, ONCE, token=host.approver_token)).code == "declined"
    text, waits = turn.attempt("send_words", {"text": "hi"}, answer=ONCE, token=host.approver_token)
    assert (parse(text).code, waits) == ("declined", None)
    assert not lines(ran)


def test_what_was_answered_elsewhere_meanwhile_is_not_run_again(host: Host, ran: Path) -> None:
    turn = a_turn(host)
    _, hold = turn.attempt("send_words", {"text": "hi"})
    assert hold is not None
    host.answer(hold.id, ONCE, token=host.approver_token)
    text, waits = turn.attempt(
        "send_words", {"text": "hi"}, hold=hold.id, answer=ONCE, token=host.approver_token
    )
    assert waits is None
    assert '"sent":"hi"' in text
    assert lines(ran) == ["hi"]


def test_another_principals_hold_cannot_be_answered_or_read(host: Host, ran: Path) -> None:
    _, hold = a_turn(host).attempt("send_words", {"text": "hi"})
    assert hold is not None
    other = a_turn(host, principal="bob")
    assert other.waiting() == ()
    with pytest.raises(ChalieError, match="there is no hold"):
        other.settle(hold.id, ONCE, token=host.approver_token)
    text, waits = other.attempt("send_words", {"text": "hi"}, hold=hold.id)
    assert (parse(text).code, waits) == ("hold-unknown", None)
    assert not lines(ran)


def test_the_rest_of_a_long_result_can_be_read_from_the_turn_that_got_it(host: Host) -> None:
    turn = a_turn(host)
    _, hold = turn.attempt("send_words", {"text": "long"})
    assert hold is not None
    assert "read_result" not in turn.names
    text = turn.settle(hold.id, token=host.approver_token)
    assert parse(text).meta["truncated"] is True
    assert "read_result" in turn.names
    assert '"long"' in turn.call("read_result", {"result": str(parse(text).meta["result"])})


def test_a_tool_that_only_claims_to_wait_has_no_hold(host: Host) -> None:
    host.ledger.permissions.set("chat", "chalie-ability-fake-wait", "fake_wait", Setting.ALLOW, by="test")
    turn = host.turn("chat", principal="ada", active=["fake_wait"])
    text, hold = turn.attempt("fake_wait", {})
    assert (parse(text).code, hold) == ("approval-pending", None)


def test_what_became_void_meanwhile_says_so(host: Host, ran: Path) -> None:
    turn = a_turn(host)
    _, hold = turn.attempt("send_words", {"text": "hi"})
    assert hold is not None
    host.holds.void(host.holds.get(hold.id), "its package is another one now")
    text, _ = turn.attempt("send_words", {"text": "hi"}, hold=hold.id, answer=ONCE, token=host.approver_token)
    assert "its package is another one now" in text
    assert not lines(ran)


def test_with_asyncio_it_is_the_same(host: Host, ran: Path) -> None:
    async def main() -> None:
        turn = a_turn(host)
        token = host.approver_token
        text, hold = await turn.aattempt("send_words", {"text": "hi"})
        assert hold is not None and parse(text).code == "approval-pending"
        _, other = await turn.aattempt("send_words", {"text": "other"}, answer=ONCE, token=token)
        assert other is not None
        text, waits = await turn.aattempt("send_words", {"text": "hi"}, answer=ONCE, token=token)
        assert waits is None and '"sent":"hi"' in text
        again, _ = await turn.aattempt("send_words", {"text": "hi"}, hold=hold.id, answer=ONCE, token=token)
        assert again == text
        assert parse(await turn.asettle(other.id, DECLINE, token=token)).code == "declined"

    asyncio.run(main())
    assert lines(ran) == ["hi"]


def test_twenty_tasks_with_one_yes_run_it_once(host: Host, ran: Path) -> None:
    async def main() -> list[str]:
        turn = a_turn(host)
        _, hold = await turn.aattempt("send_words", {"text": "hi"})
        assert hold is not None
        token = host.approver_token
        return await asyncio.gather(*(turn.asettle(hold.id, ONCE, token=token) for _ in range(20)))

    texts = asyncio.run(main())
    assert lines(ran) == ["hi"]
    assert len(set(texts)) == 1 and '"sent":"hi"' in texts[0]


def test_a_hold_that_cannot_be_run_now_is_an_envelope(host: Host, ran: Path) -> None:
    turn = a_turn(host)
    _, hold = turn.attempt("send_words", {"text": "hi"})
    assert hold is not None
    with host.ledger.holds._fast.transaction() as connection:
        connection.execute("UPDATE holds SET must_ask = 1 WHERE id = ?", (hold.id,))
    text, waits = turn.attempt(
        "send_words", {"text": "hi"}, answer=AnswerKind.ALWAYS, token=host.approver_token
    )
    assert (parse(text).code, waits) == ("not-allowed", None)
    assert not lines(ran)


def test_what_the_gate_would_say_is_told_without_a_call(host: Host, ran: Path) -> None:
    turn = a_turn(host)
    passes = host.gate.passes
    assert turn.foresee("send_words", {"text": "hi"}) == (Setting.ASK, "")
    assert turn.foresee("find_tools", '{"query": ["words"]}') == (Setting.ALLOW, "")
    setting, text = turn.foresee("nothing_like_it")
    assert (setting, parse(text).name, parse(text).code) == (None, "nothing_like_it", "unknown-tool")
    setting, text = turn.foresee("send_words", {"text": {}})
    assert (setting, parse(text).code) == (None, "invalid-param")
    setting, text = asyncio.run(turn.aforesee("send_words", "no json"))
    assert (setting, parse(text).status) == (None, "error")
    nobody = host.turn("external_agent", principal="ada", active=["send_words"])
    assert nobody.foresee("send_words", {"text": "hi"}) == (Setting.DENY, "")
    assert not lines(ran)
    assert (turn.waiting(), turn.records, host.gate.passes) == ((), (), passes)


def test_a_yes_to_one_call_is_none_to_another_that_waits_too(host: Host, ran: Path) -> None:
    turn, token = a_turn(host), host.approver_token
    _, hold = turn.attempt("send_words", {"text": "hi"})
    _, other = turn.attempt("send_words", {"text": "all my keys"})
    assert hold is not None and other is not None
    _, waits = turn.attempt("send_words", {"text": "all my keys"}, hold=hold.id, answer=ONCE, token=token)
    assert waits is not None and waits.id == other.id
    assert not lines(ran)


@pytest.mark.parametrize("answer", [ONCE, DECLINE])
def test_what_became_of_one_call_is_not_told_of_another(host: Host, ran: Path, answer: AnswerKind) -> None:
    turn, token = a_turn(host), host.approver_token
    _, hold = turn.attempt("send_words", {"text": "hi"})
    assert hold is not None
    turn.settle(hold.id, answer, token=token)
    text, waits = turn.attempt("send_words", {"text": "changed"}, hold=hold.id, answer=ONCE, token=token)
    assert waits is not None and parse(text).code == "approval-pending"
    assert "changed" not in lines(ran)


def test_what_became_of_a_call_is_not_told_in_another_conversation(host: Host, ran: Path) -> None:
    turn, token = a_turn(host, "monday"), host.approver_token
    _, hold = turn.attempt("send_words", {"text": "hi"})
    assert hold is not None
    turn.settle(hold.id, token=token)
    other = a_turn(host, "tuesday")
    text, waits = other.attempt("send_words", {"text": "hi"}, hold=hold.id, answer=ONCE, token=token)
    assert waits is not None and parse(text).code == "approval-pending"
    assert lines(ran) == ["hi"]


@pytest.mark.parametrize("named", [True, False])
def test_a_no_runs_nothing_where_a_row_allows_it_by_now(host: Host, ran: Path, named: bool) -> None:
    turn, token = a_turn(host), host.approver_token
    _, hold = turn.attempt("send_words", {"text": "hi"})
    assert hold is not None
    package = ("chat", "chalie-ability-send-words", "send_words")
    host.ledger.permissions.set(*package, Setting.ALLOW, by="test")
    try:
        for arguments in ({"text": "hi"}, {"text": "never asked about"}):
            text, waits = turn.attempt(
                "send_words", arguments, hold=hold.id if named else None, answer=DECLINE, token=token
            )
            assert (parse(text).code, waits) == ("declined", None)
    finally:
        host.ledger.permissions.set(*package, Setting.ASK, by="test")
    assert host.holds.get(hold.id).state == "declined"
    assert not lines(ran)


def test_two_equal_calls_that_wait_are_answered_each_by_its_id(host: Host, ran: Path) -> None:
    async def main() -> None:
        turn, token = a_turn(host), host.approver_token
        call = ("send_words", {"text": "hi"})
        asked = await asyncio.gather(*(turn.aattempt(*call) for _ in range(2)))
        ids = {hold.id for _, hold in asked if hold is not None}
        for each in sorted(ids):
            _, waits = await turn.aattempt(*call, hold=each, answer=ONCE, token=token)
            assert waits is None
        assert lines(ran) == ["hi"] * len(ids)

    asyncio.run(main())
    assert a_turn(host).waiting() == ()
