"""Many processes on one ledger, and processes that are killed: nothing that was reported is lost."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest
from chalie.ledger import Ledger

from .conftest import Start

WORK = """
    path, me, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    ledger = Ledger.open(path)
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(rounds):
        call = f"{me}-{n}"
        ledger.permissions.for_call("chat", "d", "t", "t.read")
        ledger.trail.append("call.started", call_id=call, arguments={"n": n})
        if n % 25 == 0:
            ledger.permissions.set("chat", me, f"t{n}", "allow", by="x")
            ledger.inbox.deliver("ada", "talk", call, call)
        ledger.trail.outcome(call, status="success", code=None, duration_us=1)
    print("done", flush=True)
"""


def test_eight_processes_that_decide_and_record_at_once_lose_nothing(path: Path, start: Start) -> None:
    running = [start(WORK, path, f"p{n}", 250) for n in range(8)]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in running:
        out, err = process.communicate(timeout=120)
        assert (out, err, process.returncode) == ("done\n", "", 0)
    with Ledger.open(path) as ledger:
        rows = ledger.trail.query(event="call.", limit=100_000)
        for event in ("call.started", "call.finished"):
            calls = sorted(row.call_id or "" for row in rows if row.event == event)
            assert calls == sorted(f"p{me}-{n}" for me in range(8) for n in range(250))
        assert len(ledger.permissions.list()) == 80
        assert len(ledger.trail.query(event="permission.changed", limit=1000)) == 80
        assert len(ledger.inbox.take("ada", "talk")) == 80


def test_a_message_is_taken_by_one_of_many_processes(path: Path, start: Start) -> None:
    with Ledger.open(path) as ledger:
        for number in range(40):
            ledger.inbox.deliver("ada", "talk", f"c{number}", "text")
    code = """
        ledger = Ledger.open(Path(sys.argv[1]))
        print("ready", flush=True)
        sys.stdin.readline()
        print(*[message.call_id for message in ledger.inbox.take("ada", "talk")])
    """
    running = [start(code, path) for _ in range(4)]
    for process in running:
        assert process.stdout is not None
        process.stdout.readline()
    taken = [process.communicate("go\n", timeout=60)[0].split() for process in running]
    assert sorted(call for calls in taken for call in calls) == sorted(f"c{n}" for n in range(40))


@pytest.mark.parametrize("seed", range(6))
def test_a_killed_process_leaves_every_row_that_it_reported(path: Path, seed: int, start: Start) -> None:
    code = """
        ledger = Ledger.open(Path(sys.argv[1]))
        for n in range(10**9):
            ledger.trail.append("call.started", call_id=f"c{n}", detail="x" * (n % 3000))
            print(f"c{n}", flush=True)
            if n % 50 == 49:
                ledger.permissions.set("chat", "d", f"t{n}", "allow", by="x")
                print(f"t{n}", flush=True)
    """
    process = start(code, path)
    assert process.stdout is not None
    lines: list[str] = []
    enough = random.Random(seed).randrange(1, 400)
    for line in process.stdout:
        lines.append(line.strip())
        if len(lines) == enough:
            process.kill()
            break
    lines += process.stdout.read().splitlines()
    process.wait(60)
    reported = {line for line in lines if line[1:].isdigit()}  # the last may have been cut by the kill
    with Ledger.open(path) as ledger:
        calls = {row.call_id for row in ledger.trail.query(event="call.started", limit=1_000_000)}
        rows = {row.permission for row in ledger.permissions.list()}
        changes = {row.permission for row in ledger.trail.query(event="permission.changed", limit=100_000)}
    last = {f"c{len(calls) - 1}"}  # recorded, and killed before it was reported
    assert {line for line in reported if line.startswith("c")} <= calls
    assert calls - reported <= last
    assert {line for line in reported if line.startswith("t")} <= rows
    assert rows == changes


def test_many_threads_of_one_process_lose_nothing(ledger: Ledger) -> None:
    def record(me: int) -> None:
        for number in range(200):
            ledger.trail.append("call.started", call_id=f"{me}-{number}")
            if number % 50 == 0:
                ledger.permissions.set("chat", f"d{me}", f"t{number}", "allow", by="x")

    threads = [threading.Thread(target=record, args=(me,)) for me in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ledger.trail.query(event="call.started", limit=10_000)) == 1200
    assert len(ledger.permissions.list()) == 24
