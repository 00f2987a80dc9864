"""The pool: bounded, loses no work, waits for nobody for ever."""

from __future__ import annotations

import threading
import time

import pytest
from chalie.dispatch.pool import Busy, Pool

from .waiting import wait_until

# --- the pool ---------------------------------------------------------------------------------------------


def test_a_pool_never_has_more_threads_than_workers_and_loses_no_work() -> None:
    pool = Pool("test", 3)
    running: list[int] = []
    most: list[int] = []
    lock = threading.Lock()

    def work(number: int) -> int:
        with lock:
            running.append(number)
            most.append(len(running))
        time.sleep(0.001)
        with lock:
            running.remove(number)
        return number

    tickets = [pool.submit(lambda number=number: work(number)) for number in range(100)]
    assert [ticket.result() for ticket in tickets] == list(range(100))
    assert max(most) <= 3
    pool.close()


def test_workers_that_wait_for_work_of_their_own_pool_do_not_wait_for_ever() -> None:
    pool = Pool("test", 1)
    inner = pool.submit(lambda: pool.submit(lambda: pool.submit(lambda: "deep").result()).result())
    assert inner.result(limit_s=10) == "deep"
    pool.close()


def test_a_full_queue_is_busy_and_what_waits_is_given_up_when_the_pool_closes() -> None:
    over = threading.Event()
    pool = Pool("test", 1, most_queued=1)
    first = pool.submit(lambda: over.wait(30))
    wait_until(lambda: first.state == "running")
    waiting = pool.submit(lambda: None)
    with pytest.raises(Busy):
        pool.submit(lambda: None)
    pool.close()
    from chalie.dispatch.pool import Cancelled

    with pytest.raises(Cancelled):
        waiting.result()
    with pytest.raises(Busy):
        pool.submit(lambda: None)
    over.set()
    assert first.result()


def test_waiting_in_the_queue_does_not_count_as_running_time() -> None:
    over = threading.Event()
    pool = Pool("test", 1)
    first = pool.submit(lambda: over.wait(30))
    second = pool.submit(lambda: "ran")
    threading.Timer(0.15, over.set).start()
    assert second.result(limit_s=0.1) == "ran"
    assert first.result()
    pool.close()
