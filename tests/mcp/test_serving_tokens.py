"""Tokens of the HTTP door: what is kept of them, what they are good for, and how they are taken back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from chalie import Host
from chalie.cli import exits
from chalie.cli.main import main
from chalie.config import Config
from chalie.ledger import Ledger

from tests.support import packages

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ledger(home: Path) -> Iterator[Ledger]:
    config = Config.load(home)
    with Ledger.open(config.ledger_path, retention=config.retention) as opened:
        yield opened


@pytest.fixture
def chalie(home: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(list(words))
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_a_token_is_known_by_its_text_and_kept_as_a_hash_alone(ledger: Ledger) -> None:
    token = ledger.tokens.add("laptop", channel="chat", principal="ada", permissions=("weather",), by="me")
    row = ledger.tokens.check(token)
    assert row is not None
    assert (row.label, row.channel, row.principal, row.permissions) == ("laptop", "chat", "ada", ("weather",))
    assert ledger.tokens.check(token[:-1]) is None
    for file in ledger.path.parent.glob("ledger.sqlite*"):
        assert token.encode() not in file.read_bytes()
    (event,) = ledger.trail.query(event="token.added")
    assert (event.detail, event.channel, event.principal, event.by) == ("laptop", "chat", "ada", "me")


def test_a_revoked_token_is_good_for_nothing_and_its_successor_is_another(ledger: Ledger) -> None:
    first = ledger.tokens.add("laptop", channel="chat", principal="ada")
    before = ledger.tokens.check(first)
    assert ledger.tokens.revoke("laptop") and not ledger.tokens.revoke("laptop")
    assert ledger.tokens.check(first) is None
    after = ledger.tokens.check(ledger.tokens.add("laptop", channel="chat", principal="eve"))
    assert before is not None and after is not None and before.id != after.id


@pytest.mark.parametrize(
    ("label", "principal", "permissions"),
    [("", "ada", None), ("x" * 65, "ada", None), ("a\nb", "ada", None), ("a", " ", None), ("a", "b", ())],
)
def test_a_token_that_could_not_be_told_or_used_is_not_made(
    ledger: Ledger, label: str, principal: str, permissions: tuple[str, ...] | None
) -> None:
    with pytest.raises(ValueError):
        ledger.tokens.add(label, channel="chat", principal=principal, permissions=permissions)
    assert ledger.tokens.list() == ()


def test_a_mark_is_used_once_and_not_after_its_time(ledger: Ledger) -> None:
    late = 2**40
    assert ledger.seals.use("a", late) and not ledger.seals.use("a", late)
    assert ledger.seals.use("b", late) and not ledger.seals.use("c", 0.0)


def test_only_the_owner_at_a_terminal_or_an_approver_token_makes_and_revokes_tokens(chalie: Run) -> None:
    for words in (("add", "laptop"), ("revoke", "laptop")):
        code, out, err = chalie("tokens", *words)
        assert code == exits.REFUSED and "[not-authorised]" in err and not out


def test_the_command_line_makes_lists_and_revokes_tokens(
    chalie: Run, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHALIE_APPROVER_TOKEN", ledger.approvers.add("phone", by="test"))
    code, token, err = chalie("tokens", "add", "laptop", "--principal", "ada", "--permission", "weather")
    assert code == exits.OK and "cannot be shown again" in err
    row = ledger.tokens.check(token.strip())
    assert row is not None and (row.channel, row.permissions) == ("external_agent", ("weather",))
    assert chalie("tokens", "add", "laptop")[0] == exits.USAGE
    assert chalie("tokens", "add", "other", "--channel", "nowhere")[0] == exits.SETUP
    assert chalie("tokens", "add", "other", "--channel", "web_search")[0] == exits.USAGE
    (listed,) = json.loads(chalie("tokens", "--json")[1])
    assert listed["label"] == "laptop" and token.strip() not in json.dumps(listed)
    assert "weather" in chalie("tokens")[1]
    assert chalie("tokens", "revoke", "laptop")[0] == exits.OK
    assert chalie("tokens", "revoke", "laptop")[0] == exits.NOTHING
    assert "chalie tokens add" in chalie("tokens")[2]


@pytest.mark.usefixtures("site")
def test_a_turn_for_some_permissions_reaches_no_others_whatever_is_allowed(home: Path, site: Path) -> None:
    for name in ("alpha", "beta"):
        packages.install(site, packages.ability_package(name, facts={"side_effect": packages.READ}))
    with Host.open(home) as host:
        host.upkeep.refresh(None)
        for name in ("alpha", "beta"):
            host.ledger.permissions.set("chat", f"chalie-ability-{name}", name, "allow", by="test")
        turn = host.turn("chat", active=("alpha", "beta"), permissions=("alpha",))
        assert "status=success" in turn.call("alpha", {})
        refused = turn.call("beta", {})
        assert "code=permission-denied" in refused and "the token of this turn is for alpha alone" in refused
        assert "chalie permissions set" not in refused
        found = turn.call("find_tools", {"query": ["alpha", "beta"]})
        assert '"name":"alpha"' in found and '"reason":"hidden"' in found


def test_a_permission_reaches_its_actions_and_not_what_merely_begins_like_it() -> None:
    from chalie.calls import Channel

    channel = Channel("chat", "chat", True, (), False, permissions=("email", "notes.add"))
    assert channel.reaches("email") and channel.reaches("email.send") and channel.reaches("notes.add")
    assert (
        not channel.reaches("emails") and not channel.reaches("notes") and not channel.reaches("notes.clear")
    )
    assert Channel("chat", "chat", True, (), False).reaches("anything")
