"""Permission rows: what covers a call, until when, and how soon everybody sees a change."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from chalie.calls import Setting
from chalie.errors import LedgerUnavailable
from chalie.ledger import Ledger

from .conftest import Clock, Start

BY = "terminal:ada"


def test_a_row_is_found_by_channel_package_and_permission_alone(ledger: Ledger) -> None:
    ledger.permissions.set("chat", "mail", "email", "allow", by=BY)
    row = ledger.permissions.get("chat", "mail", "email")
    assert row is not None
    assert (row.setting, row.by, row.until, row.default) == (Setting.ALLOW, BY, None, False)
    assert ledger.permissions.get("subconscious", "mail", "email") is None
    assert ledger.permissions.get("chat", "other", "email") is None
    assert ledger.permissions.get("chat", "mail", "Email") is None


def test_an_actions_own_row_goes_before_the_bare_one(ledger: Ledger) -> None:
    ledger.permissions.set("chat", "mail", "email", "allow", by=BY)
    ledger.permissions.set("chat", "mail", "email.send", "deny", by=BY)

    def setting(permission: str) -> Setting | None:
        row = ledger.permissions.for_call("chat", "mail", "email", permission)
        return row.setting if row else None

    assert setting("email.send") is Setting.DENY
    assert setting("email.read") is Setting.ALLOW
    assert setting("email") is Setting.ALLOW
    ledger.permissions.remove("chat", "mail", "email", by=BY)
    assert setting("email.read") is None
    assert setting("email") is None


def test_a_row_counts_until_its_time_is_over(ledger: Ledger, clock: Clock) -> None:
    until = datetime.fromtimestamp(clock.now, UTC) + timedelta(minutes=10)
    ledger.permissions.set("chat", "mail", "email", "ask", by=BY)
    ledger.permissions.set("chat", "mail", "email.send", "allow", by=BY, until=until)
    clock.now += 599
    assert ledger.permissions.get("chat", "mail", "email.send") is not None
    clock.now += 1
    assert ledger.permissions.get("chat", "mail", "email.send") is None
    row = ledger.permissions.for_call("chat", "mail", "email", "email.send")
    assert row is not None
    assert row.setting is Setting.ASK
    assert [row.permission for row in ledger.permissions.list()] == ["email"]


def test_a_row_that_could_mean_nothing_is_refused(ledger: Ledger, clock: Clock) -> None:
    now = datetime.fromtimestamp(clock.now, UTC)
    with pytest.raises(ValueError, match="already over"):
        ledger.permissions.set("chat", "mail", "email", "allow", by=BY, until=now)
    with pytest.raises(ValueError, match="needs a time zone"):
        ledger.permissions.set("chat", "mail", "email", "allow", by=BY, until=datetime(2100, 1, 1))
    with pytest.raises(ValueError, match="'internal' is the host's own"):
        ledger.permissions.set("chat", "mail", "email", Setting.INTERNAL, by=BY)
    with pytest.raises(ValueError, match="sometimes"):
        ledger.permissions.set("chat", "mail", "email", "sometimes", by=BY)
    with pytest.raises(ValueError, match="who set it"):
        ledger.permissions.set("chat", "mail", "email", "allow", by="")
    assert ledger.permissions.list() == ()
    assert ledger.trail.query() == ()


def test_every_change_is_on_the_trail_with_who_made_it(ledger: Ledger) -> None:
    ledger.permissions.set("chat", "mail", "email", "allow", by=BY)
    assert ledger.permissions.remove("chat", "mail", "email", by="token:phone")
    assert not ledger.permissions.remove("chat", "mail", "email", by="token:phone")
    removed, changed = ledger.trail.query()
    assert (changed.event, changed.setting, changed.by) == ("permission.changed", "allow", BY)
    assert (changed.channel, changed.dist, changed.permission) == ("chat", "mail", "email")
    assert (removed.event, removed.by) == ("permission.removed", "token:phone")


def test_a_change_that_cannot_be_recorded_is_not_made(ledger: Ledger) -> None:
    with ledger._fast.transaction() as connection:
        connection.execute(
            "CREATE TRIGGER no_trail BEFORE INSERT ON trail BEGIN SELECT RAISE(ABORT, 'no trail'); END"
        )
    with pytest.raises(LedgerUnavailable, match="no trail"):
        ledger.permissions.set("chat", "mail", "email", "allow", by=BY)
    assert ledger.permissions.get("chat", "mail", "email") is None


def test_a_change_by_another_process_is_seen_by_the_next_look(
    ledger: Ledger, path: Path, start: Start
) -> None:
    assert ledger.permissions.get("chat", "mail", "email") is None
    for setting in ("allow", "deny"):
        code = "Ledger.open(Path(sys.argv[1])).permissions.set('chat', 'mail', 'email', sys.argv[2], by='x')"
        assert start(code, path, setting).wait(60) == 0
        row = ledger.permissions.get("chat", "mail", "email")
        assert row is not None
        assert row.setting == setting


def test_rows_are_not_read_again_for_what_others_write_on_the_trail(ledger: Ledger, path: Path) -> None:
    ledger.permissions.set("chat", "mail", "email", "allow", by=BY)
    before = ledger.permissions.get("chat", "mail", "email")
    with Ledger.open(path) as other:
        other.trail.append("call.started")
        assert ledger.permissions.get("chat", "mail", "email") is before
        other.permissions.set("chat", "mail", "other", "allow", by=BY)
        assert ledger.permissions.get("chat", "mail", "email") is not before


def test_what_was_asked_for_without_a_row_is_listed_and_is_no_row(ledger: Ledger) -> None:
    for _ in range(2):
        ledger.permissions.note("chat", "mail", "email.send")
    assert ledger.permissions.get("chat", "mail", "email.send") is None
    assert ledger.permissions.list() == ()
    (row,) = ledger.permissions.list(asked=True)
    assert (row.permission, row.setting, row.by, row.default) == ("email.send", Setting.ASK, "", True)
    ledger.permissions.set("chat", "mail", "email.send", "deny", by=BY)
    (row,) = ledger.permissions.list(asked=True)
    assert (row.setting, row.default) == (Setting.DENY, False)


def test_threads_that_look_while_rows_change_end_with_the_last_change(ledger: Ledger) -> None:
    stop = threading.Event()
    seen: list[set[str]] = []

    def look() -> None:
        found: set[str] = set()
        while not stop.is_set():
            row = ledger.permissions.get("chat", "mail", "email")
            found.add(row.setting if row else "none")
        seen.append(found)

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(20):
        setting = Setting.ALLOW if number % 2 else Setting.DENY
        ledger.permissions.set("chat", "mail", "email", setting, by=BY)
        row = ledger.permissions.get("chat", "mail", "email")
        assert row is not None
        assert row.setting is setting
    stop.set()
    for thread in threads:
        thread.join()
    assert all(found <= {"none", "allow", "deny"} for found in seen)
    assert len(seen) == 3
