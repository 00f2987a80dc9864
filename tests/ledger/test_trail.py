"""The trail keeps what it is told, in order, and never changes it."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from chalie.ledger import EVENTS, Ledger
from hypothesis import given
from hypothesis import strategies as st

from .conftest import Clock


def test_every_column_comes_back(ledger: Ledger, clock: Clock) -> None:
    columns = {
        "call_id": "c1",
        "ordinal": 3,
        "channel": "chat",
        "principal": "ada",
        "conversation": "talk",
        "dist": "chalie-ability-weather",
        "name": "weather",
        "permission": "weather",
        "effect": "read",
        "setting": "allow",
        "status": "success",
        "code": "cancelled",
        "detail": "healed: Location -> location",
        "duration_us": 12,
        "by": "terminal:ada",
    }
    row_id = ledger.trail.append("call.started", arguments={"location": "Valletta"}, **columns)
    (row,) = ledger.trail.query()
    assert row.id == row_id
    assert row.at == datetime.fromtimestamp(clock.now, UTC)
    assert row.event == "call.started"
    assert row.arguments == '{"location":"Valletta"}'
    assert {name: getattr(row, name) for name in columns} == columns


def test_an_outcome_is_a_row_of_its_own_beside_its_intent(ledger: Ledger) -> None:
    ledger.trail.append("call.started", call_id="c1", name="weather")
    ledger.trail.outcome("c1", status="error", code="timed-out", duration_us=5, name="weather")
    outcome, intent = ledger.trail.query(call_id="c1")
    assert (intent.event, intent.status) == ("call.started", None)
    assert (outcome.event, outcome.status, outcome.code) == ("call.finished", "error", "timed-out")


def test_a_query_filters_and_pages_newest_first(ledger: Ledger, clock: Clock) -> None:
    for number in range(10):
        clock.now += 1
        ledger.trail.append(
            "call.started" if number % 2 else "package.enabled", call_id=f"c{number}", dist="d"
        )
    assert [row.call_id for row in ledger.trail.query(limit=3)] == ["c9", "c8", "c7"]
    page = ledger.trail.query(limit=3)
    assert [row.call_id for row in ledger.trail.query(before=page[-1].id, limit=2)] == ["c6", "c5"]
    assert len(ledger.trail.query(event="call.started")) == 5
    assert len(ledger.trail.query(event="call.")) == 5
    assert len(ledger.trail.query(event="call")) == 0
    since = datetime.fromtimestamp(clock.now, UTC) - timedelta(seconds=2)
    assert [row.call_id for row in ledger.trail.query(since=since)] == ["c9", "c8", "c7"]
    assert len(ledger.trail.query(until=since, dist="d")) == 7
    assert ledger.trail.query(dist="other") == ()


def test_a_row_can_not_be_changed_afterwards(ledger: Ledger, path: Path) -> None:
    ledger.trail.append("call.started", call_id="c1")
    with sqlite3.connect(path) as other, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        other.execute("UPDATE trail SET call_id = 'c2'")
    other.close()


@given(
    name=st.text(st.characters(exclude_categories=()), max_size=50),
    arguments=st.dictionaries(st.text(st.characters(exclude_categories=())), st.floats() | st.text()),
)
def test_no_text_whatever_stops_a_row(
    ledger_of_module: Ledger, name: str, arguments: dict[str, float | str]
) -> None:
    row_id = ledger_of_module.trail.append("call.refused", name=name, arguments=arguments)
    (row,) = ledger_of_module.trail.query(limit=1)
    assert row.id == row_id
    assert row.name == name.encode("utf-8", "backslashreplace").decode()


@pytest.fixture(scope="module")
def ledger_of_module(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    return Ledger.open(tmp_path_factory.mktemp("trail") / "ledger.sqlite")


def test_what_is_not_json_does_not_stop_a_row(ledger: Ledger) -> None:
    around: dict[str, object] = {}
    around["itself"] = around
    ledger.trail.append("call.refused", arguments=around)
    ledger.trail.append("call.refused", arguments={"set": {1}})
    second, first = ledger.trail.query()
    assert first.arguments == '"(not expressible as JSON)"'
    assert second.arguments == '{"set":"{1}"}'


def test_very_long_arguments_are_kept_as_size_hash_and_beginning(ledger: Ledger) -> None:
    arguments = {"text": "é" * 100_000}
    ledger.trail.append("call.started", arguments=arguments)
    whole = json.dumps(arguments, ensure_ascii=False, separators=(",", ":")).encode()
    kept = json.loads(ledger.trail.query()[0].arguments or "")
    assert kept["bytes"] == len(whole)
    assert kept["sha256"] == hashlib.sha256(whole).hexdigest()
    assert kept["head"].startswith('{"text":"éé')


def test_a_tool_name_of_any_length_is_kept_short(ledger: Ledger) -> None:
    ledger.trail.append("call.refused", name="x" * 1_000_000)
    assert len(ledger.trail.query()[0].name or "") == 512


def test_every_event_says_what_it_is() -> None:
    assert all("." in event and says for event, says in EVENTS.items())
