"""Background calls: a job whose process is gone is known to be interrupted, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest
from chalie.ledger import Ledger

from .conftest import Start

OPEN = """
    ledger = Ledger.open(Path(sys.argv[1]))
    ledger.jobs.open("theirs", dist="d", name="slow", principal="ada", conversation="talk")
    print("open", flush=True)
    sys.stdin.readline()
    ledger.close()
"""


def test_a_job_runs_and_ends_once(ledger: Ledger) -> None:
    ledger.jobs.open("c1", dist="d", name="slow", principal="ada", conversation="talk")
    job = ledger.jobs.get("c1")
    assert job is not None
    assert (job.state, job.dist, job.name, job.principal, job.conversation) == (
        "running",
        "d",
        "slow",
        "ada",
        "talk",
    )
    assert ledger.jobs.finish("c1", "failed", code="timed-out")
    assert not ledger.jobs.finish("c1", "done")
    job = ledger.jobs.get("c1")
    assert job is not None
    assert (job.state, job.code) == ("failed", "timed-out")
    assert job.ended_at is not None
    assert ledger.jobs.get("c2") is None
    assert [job.call_id for job in ledger.jobs.list(state="failed")] == ["c1"]
    assert ledger.jobs.list(state="running") == ()


def test_a_job_ends_in_a_state_that_exists(ledger: Ledger) -> None:
    ledger.jobs.open("c1", dist="d", name="slow")
    with pytest.raises(ValueError, match="done, failed or cancelled, not 'over'"):
        ledger.jobs.finish("c1", "over")


def test_only_the_jobs_of_a_killed_process_are_interrupted(ledger: Ledger, path: Path, start: Start) -> None:
    ledger.jobs.open("ours", dist="d", name="slow")
    other = start(OPEN, path)
    assert other.stdout is not None
    other.stdout.readline()
    assert ledger.jobs.mark_interrupted() == ()
    other.kill()
    other.wait(60)
    (job,) = ledger.jobs.mark_interrupted()
    assert (job.call_id, job.state) == ("theirs", "interrupted")
    assert (job.conversation, job.principal) == ("talk", "ada")
    assert ledger.jobs.get("theirs") == job
    assert ledger.jobs.mark_interrupted() == ()
    assert not ledger.jobs.finish("theirs")
    assert ledger.jobs.finish("ours")


def test_a_job_left_open_by_a_process_that_closed_is_interrupted(
    ledger: Ledger, path: Path, start: Start
) -> None:
    start(OPEN, path).communicate("go\n", timeout=60)
    assert [job.call_id for job in ledger.jobs.mark_interrupted()] == ["theirs"]


def test_a_forked_child_that_lives_on_does_not_keep_its_parents_job_running(
    ledger: Ledger, path: Path, start: Start
) -> None:
    code = """
        import signal
        ledger = Ledger.open(Path(sys.argv[1]))
        ledger.jobs.open("theirs", dist="d", name="slow")
        child = os.fork()
        if not child:
            sys.stdin.readline()  # lives on until the test lets it go
            os._exit(0)
        print("open", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    other = start(code, path)
    assert other.stdout is not None
    other.stdout.readline()
    other.wait(60)
    assert [job.call_id for job in ledger.jobs.mark_interrupted()] == ["theirs"]


def test_two_ledgers_of_one_process_are_both_alive(ledger: Ledger, path: Path) -> None:
    ledger.jobs.open("first", dist="d", name="slow")
    with Ledger.open(path) as second:
        second.jobs.open("second", dist="d", name="slow")
        assert second.jobs.mark_interrupted() == ()
        assert ledger.jobs.mark_interrupted() == ()
    assert [job.call_id for job in ledger.jobs.mark_interrupted()] == ["second"]
    with Ledger.open(path) as third:
        assert third.jobs.mark_interrupted() == ()


def test_marks_of_processes_that_ended_are_cleared_away(ledger: Ledger, path: Path, start: Start) -> None:
    other = start(OPEN, path)
    assert other.stdout is not None
    other.stdout.readline()
    other.kill()
    other.wait(60)
    assert len(list((path.parent / "alive").iterdir())) == 1
    ledger.jobs.mark_interrupted()
    assert list((path.parent / "alive").iterdir()) == []
