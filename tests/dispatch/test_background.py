"""Calls that go on after they were acknowledged."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest
from chalie.envelope import parse
from chalie.errors import LedgerUnavailable
from chalie.result import ToolResult

from .inside import QUIET, Inside, Plain
from .waiting import wait_until


class Job(Plain):
    called = "job"
    properties = {"fail": {"type": "boolean"}}
    over = threading.Event()
    begun = threading.Event()

    def run(self, params: Any) -> ToolResult:
        self.begun.set()
        self.over.wait(30)
        if params.get("fail"):
            raise RuntimeError("in the background")
        return ToolResult.ok("done", rich={"card": 1})


@pytest.fixture(autouse=True)
def events(monkeypatch: pytest.MonkeyPatch) -> Any:
    over = threading.Event()
    monkeypatch.setattr(Job, "over", over)
    monkeypatch.setattr(Job, "begun", threading.Event())
    yield
    over.set()


def test_a_background_call_is_acknowledged_at_once_and_delivered_when_it_is_done(inside: Inside) -> None:
    turn = inside.turn(inside.add(Job), conversation="c1")
    acknowledged = inside.call(turn, "job", {"async": True})
    assert acknowledged.status == "success" and acknowledged.meta["state"] == "running"
    call_id = str(acknowledged.meta["call"])
    job = inside.ledger.jobs.get(call_id)
    assert job is not None and job.state == "running"
    assert inside.ledger.inbox.peek("ada", "c1") == () and turn.records == []
    Job.over.set()
    wait_until(lambda: bool(inside.delivered))
    (message,) = inside.ledger.inbox.take("ada", "c1")
    frame = parse(message.text)
    assert (frame.name, frame.body, message.call_id) == ("job", "done", call_id)
    assert inside.delivered == [("c1", call_id, message.text)]
    wait_until(lambda: inside.ledger.jobs.get(call_id).state == "done")  # type: ignore[union-attr]
    assert [row.event for row in inside.rows()] == ["call.started", "call.finished"]
    assert turn.rich == {1: {"card": 1}} and turn.records[0].status == "success"


def test_an_error_is_delivered_like_a_result(inside: Inside) -> None:
    Job.over.set()
    turn = inside.turn(inside.add(Job), conversation="c1")
    call_id = str(inside.call(turn, "job", {"async": True, "fail": True}).meta["call"])
    wait_until(lambda: inside.ledger.jobs.get(call_id).state == "failed")  # type: ignore[union-attr]
    (message,) = inside.ledger.inbox.take("ada", "c1")
    assert parse(message.text).code == "unhandled-exception"
    assert "RuntimeError: in the background" in (inside.rows()[-1].detail or "")


def test_async_is_read_as_the_word_it_is(inside: Inside) -> None:
    Job.over.set()
    turn = inside.turn(inside.add(Job))
    assert inside.call(turn, "job", {"async": "false"}).body == "done"
    assert inside.call(turn, "job", {"async": "true"}).meta["state"] == "running"


def test_a_channel_that_does_not_offer_it_refuses_and_runs_nothing(inside: Inside) -> None:
    turn = inside.turn(inside.add(Job), channel=QUIET)
    frame = inside.call(turn, "job", {"async": True})
    assert frame.code == "background-not-offered"
    assert inside.loaded == [] and inside.gate.passes == 0


def test_async_abilities_and_acall_go_to_the_background_too(inside: Inside) -> None:
    class Later(Plain):
        called = "later"

        async def run(self, params: Any) -> ToolResult:
            await asyncio.sleep(0)
            return ToolResult.ok("later")

    turn = inside.turn(inside.add(Later), conversation="c1")
    assert asyncio.run(inside.acall(turn, "later", {"async": True})).meta["state"] == "running"
    wait_until(lambda: bool(inside.delivered))
    assert parse(inside.delivered[0][2]).body == "later"


def test_a_background_call_outlives_its_turns_cancellation_and_ends_by_its_own(inside: Inside) -> None:
    turn = inside.turn(inside.add(Job), conversation="c1")
    call_id = str(inside.call(turn, "job", {"async": True}).meta["call"])
    assert Job.begun.wait(10)
    turn.cancel.cancel()
    assert inside.dispatcher.cancel(call_id)
    Job.over.set()
    wait_until(lambda: inside.ledger.jobs.get(call_id).state == "cancelled")  # type: ignore[union-attr]
    (message,) = inside.ledger.inbox.take("ada", "c1")
    assert parse(message.text).code == "cancelled" and "done" not in message.text


def test_closing_waits_for_what_ends_in_time(inside: Inside) -> None:
    turn = inside.turn(inside.add(Job), conversation="c1")
    inside.call(turn, "job", {"async": True})
    assert Job.begun.wait(10)
    closing = threading.Thread(target=lambda: inside.dispatcher.close(drain_s=30))
    closing.start()
    Job.over.set()
    closing.join(10)
    assert not closing.is_alive()
    assert parse(inside.ledger.inbox.take("ada", "c1")[0].text).body == "done"


def test_closing_marks_and_delivers_what_does_not_end_and_drops_what_it_gives_later(inside: Inside) -> None:
    turn = inside.turn(inside.add(Job), conversation="c1")
    call_id = str(inside.call(turn, "job", {"async": True}).meta["call"])
    assert Job.begun.wait(10)
    inside.dispatcher.close(drain_s=0.0)
    job = inside.ledger.jobs.get(call_id)
    assert job is not None and job.state == "cancelled"
    (message,) = inside.ledger.inbox.take("ada", "c1")
    frame = parse(message.text)
    assert frame.code == "cancelled" and "not known" in (frame.hint or "")
    rows = len(inside.rows())
    Job.over.set()
    wait_until(lambda: not [t for t in threading.enumerate() if t.name.startswith("chalie-background")])
    assert inside.ledger.inbox.take("ada", "c1") == () and len(inside.rows()) == rows
    assert inside.call(turn, "job").code == "cancelled"


def test_at_most_so_many_run_at_once_and_the_others_wait_their_turn(opened: Any) -> None:
    inside = opened(workers=2)
    running: list[int] = []
    most: list[int] = []
    lock = threading.Lock()

    class Counts(Plain):
        called = "counts"

        def run(self, params: Any) -> ToolResult:
            with lock:
                running.append(1)
                most.append(len(running))
            threading.Event().wait(0.005)
            with lock:
                running.pop()
            return ToolResult.ok()

    turn = inside.turn(inside.add(Counts), conversation="c1")
    for _ in range(20):
        assert inside.call(turn, "counts", {"async": True}).meta["state"] == "running"
    wait_until(lambda: len(inside.delivered) == 20)
    assert max(most) <= 2


def test_a_job_that_cannot_be_recorded_is_not_run(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise LedgerUnavailable("disk full")

    monkeypatch.setattr(inside.ledger.jobs, "open", full)
    turn = inside.turn(inside.add(Job))
    assert inside.call(turn, "job", {"async": True}).code == "cannot-record"
    assert not Job.begun.is_set()


def test_a_listener_that_raises_costs_nobody_the_delivery(inside: Inside) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("listener")

    Job.over.set()
    inside.dispatcher._background._deliver = broken
    turn = inside.turn(inside.add(Job), conversation="c1")
    call_id = str(inside.call(turn, "job", {"async": True}).meta["call"])
    wait_until(lambda: inside.ledger.jobs.get(call_id).state == "done")  # type: ignore[union-attr]
    assert len(inside.ledger.inbox.take("ada", "c1")) == 1


def test_the_calls_of_a_host_that_was_killed_are_delivered_as_lost_by_the_next(
    opened: Any, tmp_path: Path
) -> None:
    inside = opened()
    source = f"""
        import os, pathlib, signal
        from tests.dispatch.inside import Inside
        from tests.dispatch.test_background import Job
        inside = Inside(pathlib.Path({str(inside.home)!r}))
        turn = inside.turn(inside.add(Job), conversation="c1")
        print(inside.call(turn, "job", {{"async": True}}).meta["call"], flush=True)
        assert Job.begun.wait(10)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == -9, done.stderr
    call_id = done.stdout.strip()
    assert inside.dispatcher.recover() == 1
    (message,) = inside.ledger.inbox.take("ada", "c1")
    frame = parse(message.text)
    assert (frame.name, frame.code, message.call_id) == ("job", "cancelled", call_id)
    events = [(row.event, row.code) for row in inside.rows() if row.call_id == call_id]
    assert events == [("call.started", None), ("call.finished", "cancelled")]
    assert inside.dispatcher.recover() == 0
