"""Whatever an ability does, the turn goes on: wrong results, errors, hangs, cancellation."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from chalie.dispatch.pool import Busy, Pool
from chalie.dispatch.state import CancelToken
from chalie.errors import ArgumentRefused
from chalie.result import ToolResult

from .inside import Inside, Plain


class Doing(Plain):
    """Does what the test sets."""

    called = "doing"
    do: Any = None

    def run(self, params: Any) -> Any:
        return type(self).do()


class DoingAsync(Plain):
    called = "doing_async"
    do: Any = None

    async def run(self, params: Any) -> Any:
        return await type(self).do()


@pytest.fixture
def gate() -> Any:
    """An event that hanging abilities wait for; raised at the test's end, so that no thread outlives it."""
    over = threading.Event()
    yield over
    over.set()


def doing(monkeypatch: pytest.MonkeyPatch, do: Callable[[], Any]) -> type[Doing]:
    monkeypatch.setattr(Doing, "do", staticmethod(do))
    return Doing


def doing_async(monkeypatch: pytest.MonkeyPatch, do: Callable[[], Any]) -> type[DoingAsync]:
    monkeypatch.setattr(DoingAsync, "do", staticmethod(do))
    return DoingAsync


def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.005)


async def _a_coroutine() -> ToolResult:
    return ToolResult.ok()


WRONG: list[Any] = [
    lambda: None,
    lambda: "text",
    lambda: {"status": "success"},
    lambda: [ToolResult.ok()],
    lambda: _a_coroutine(),
    lambda: ValueError,
    lambda: ToolResult,
    lambda: ValueError("returned, not raised"),
    lambda: (ToolResult.ok() for _ in range(1)),
    lambda: 0,
]


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_no_result_is_refused_on_every_way_to_run(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, wrong: Callable[[], Any]
) -> None:
    async def wrong_async() -> Any:
        return wrong()

    turn = inside.turn(
        inside.add(doing(monkeypatch, wrong)), inside.add(doing_async(monkeypatch, wrong_async))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a coroutine that nobody awaits would be reported
        frames = [
            inside.call(turn, "doing"),
            inside.call(turn, "doing_async"),
            asyncio.run(inside.acall(turn, "doing")),
            asyncio.run(inside.acall(turn, "doing_async")),
        ]
        gc.collect()
    assert [frame.code for frame in frames] == ["non-canonical-result"] * 4


def test_a_sync_run_that_returns_a_coroutine_is_told_to_say_async(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = inside.turn(inside.add(doing(monkeypatch, lambda: _a_coroutine())))
    assert "`async def`" in (inside.call(turn, "doing").hint or "")


class Unprintable(Exception):
    def __str__(self) -> str:
        raise SystemExit("no text")

    __repr__ = __str__


def _recursion() -> Any:
    return _recursion()


def _raising(error: BaseException) -> Callable[[], Any]:
    def do() -> Any:
        raise error

    return do


ERRORS: list[tuple[Callable[[], Any], str]] = [
    (_raising(RuntimeError("secret path /etc/x")), "RuntimeError: secret path /etc/x"),
    (_raising(SystemExit(3)), "SystemExit: 3"),
    (_raising(KeyboardInterrupt()), "KeyboardInterrupt"),
    (_raising(GeneratorExit()), "GeneratorExit"),
    (_raising(asyncio.CancelledError()), "CancelledError"),
    (_raising(StopIteration(5)), "StopIteration: 5"),
    (_raising(MemoryError()), "MemoryError"),
    (_raising(Unprintable()), "Unprintable: (its message could not be read: SystemExit)"),
    (_recursion, "RecursionError: maximum recursion depth exceeded"),
    (_raising(RuntimeError("x" * 100_000)), "RuntimeError: xxx"),
]


@pytest.mark.parametrize(("do", "detail"), ERRORS)
def test_whatever_an_ability_raises_is_an_envelope_and_its_text_is_for_the_trail_only(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, do: Callable[[], Any], detail: str
) -> None:
    async def do_async() -> Any:
        return do()

    turn = inside.turn(inside.add(doing(monkeypatch, do)), inside.add(doing_async(monkeypatch, do_async)))
    texts = [
        inside.dispatcher.call(turn, "doing"),
        inside.dispatcher.call(turn, "doing_async"),
        asyncio.run(inside.dispatcher.acall(turn, "doing")),
        asyncio.run(inside.dispatcher.acall(turn, "doing_async")),
    ]
    for text in texts:
        assert "code=unhandled-exception" in text
        assert "secret path" not in text and "Traceback" not in text and len(text) < 500
    details = [row.detail or "" for row in inside.rows("call.finished")]
    assert len(details) == 4
    for each in details:
        # Python itself turns a StopIteration that leaves a coroutine into a RuntimeError.
        assert each.startswith(detail) or "StopIteration" in each
        assert len(each) <= 2000
    assert inside.call(turn, "nothing").code == "unknown-tool"  # the turn lives


def test_an_argument_that_the_ability_refuses_is_an_answer_and_no_failure(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = ArgumentRefused("units is not one of them", hint="pass units=", valid=("metric", "imperial"))
    frame = inside.call(inside.turn(inside.add(doing(monkeypatch, _raising(refused)))), "doing")
    assert (frame.code, frame.valid) == ("invalid-param", ("metric", "imperial"))


def test_a_body_that_cannot_be_looked_at_is_the_abilitys_failure(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hostile:
        def __str__(self) -> str:
            raise SystemExit

        __repr__ = __str__

    turn = inside.turn(inside.add(doing(monkeypatch, lambda: ToolResult.ok({"a": Hostile()}))))
    frame = inside.call(turn, "doing")
    assert frame.code == "unhandled-exception"
    assert inside.rows()[-1].code == "unhandled-exception"


def test_an_ability_whose_constructor_raises_costs_only_the_call(inside: Inside) -> None:
    class Broken(Plain):
        called = "broken"
        armed = False

        def __init__(self) -> None:
            if self.armed:
                raise SystemExit("constructor")

    turn = inside.turn(inside.add(Broken))
    Broken.armed = True
    assert inside.call(turn, "broken").code == "unhandled-exception"


def test_an_instance_is_fresh_for_each_call_and_knows_its_turn(inside: Inside) -> None:
    seen: list[Any] = []

    class Knows(Plain):
        called = "knows"

        def run(self, params: Any) -> ToolResult:
            seen.append(self)
            context = self.context
            vectors = context.embed(["abc"])
            (context.data_folder / "mark").write_text("x")
            return ToolResult.ok(
                [context.principal, context.conversation, context.channel, dict(context.client), vectors]
            )

    turn = inside.turn(inside.add(Knows), principal="bob", conversation="c9", client={"tz": "UTC"})
    body = inside.call(turn, "knows").body
    assert body == '["bob","c9","chat",{"tz":"UTC"},[[3.0,1.0]]]'
    inside.call(turn, "knows")
    assert seen[0] is not seen[1]
    assert (inside.home / "data" / "chalie-ability-test" / "mark").exists()


def test_a_client_telemetry_is_not_the_abilitys_to_change(inside: Inside) -> None:
    class Changes(Plain):
        called = "changes"

        def run(self, params: Any) -> ToolResult:
            self.context.client["tz"] = "changed"  # type: ignore[index]
            return ToolResult.ok()

    turn = inside.turn(inside.add(Changes), client={"tz": "UTC"})
    assert inside.call(turn, "changes").code == "unhandled-exception"
    assert turn.client == {"tz": "UTC"}


# --- where it runs ----------------------------------------------------------------------------------------


def test_a_sync_ability_without_a_limit_runs_on_the_callers_own_thread(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = inside.turn(inside.add(doing(monkeypatch, lambda: ToolResult.ok(threading.get_ident()))))
    assert inside.call(turn, "doing").body == str(threading.get_ident())


def test_a_blocking_ability_leaves_the_event_loop_free_for_a_fast_one(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    async def quick() -> ToolResult:
        return ToolResult.ok("quick")

    def block() -> ToolResult:
        gate.wait(30)
        return ToolResult.ok("slow")

    turn = inside.turn(inside.add(doing(monkeypatch, block)), inside.add(doing_async(monkeypatch, quick)))

    async def both() -> tuple[str, str]:
        slow = asyncio.create_task(inside.dispatcher.acall(turn, "doing"))
        fast = await inside.dispatcher.acall(turn, "doing_async")
        assert not slow.done()
        gate.set()
        return fast, await slow

    fast, slow = asyncio.run(both())
    assert "quick" in fast and "slow" in slow


def test_a_person_who_takes_long_to_answer_does_not_hold_up_the_event_loop(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    from .inside import Person

    class Slow(Person):
        def ask(self, hold: Any) -> Any:
            gate.wait(30)
            return super().ask(hold)

    descriptor = inside.add(doing(monkeypatch, lambda: ToolResult.ok("ran")), allow=False)
    turn = inside.turn(descriptor, approver=Slow())

    async def main() -> str:
        call = asyncio.create_task(inside.dispatcher.acall(turn, "doing"))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not call.done()
        gate.set()
        return await call

    assert "ran" in asyncio.run(main())


def test_an_async_ability_runs_on_the_running_loop_or_on_the_hosts_own(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def where() -> ToolResult:
        return ToolResult.ok(f"{threading.current_thread().name}")

    turn = inside.turn(inside.add(doing_async(monkeypatch, where)))
    assert inside.call(turn, "doing_async").body == "chalie-loop"
    assert asyncio.run(inside.acall(turn, "doing_async")).body == threading.current_thread().name


def test_an_async_ability_can_be_called_from_inside_a_running_loop_without_await(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def tick() -> ToolResult:
        await asyncio.sleep(0)
        return ToolResult.ok("ticked")

    turn = inside.turn(inside.add(doing_async(monkeypatch, tick)))

    async def main() -> str:
        return inside.call(turn, "doing_async").body

    assert asyncio.run(main()) == "ticked"


def test_progress_reaches_the_turns_listener_and_its_mistakes_are_not_the_abilitys(inside: Inside) -> None:
    told: list[tuple[str, float | None, str]] = []

    class Long(Plain):
        called = "long"

        def run(self, params: Any) -> ToolResult:
            self.context.progress(0.5, "half")
            self.context.progress(7)
            self.context.progress(None, "almost")
            return ToolResult.ok()

    turn = inside.turn(inside.add(Long), progress=lambda *all_: told.append(all_))
    inside.call(turn, "long")
    call_id = turn.records[0].call_id
    assert told == [(call_id, 0.5, "half"), (call_id, 1.0, ""), (call_id, None, "almost")]

    def broken(*_: object) -> None:
        raise RuntimeError("listener")

    assert inside.call(turn, "long", progress=broken).status == "success"


# --- time limits ------------------------------------------------------------------------------------------


def test_a_call_past_its_limit_is_timed_out_and_its_thread_counted_until_it_ends(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    turn = inside.turn(inside.add(doing(monkeypatch, lambda: gate.wait(30)), time_limit_s=0.05))
    frame = inside.call(turn, "doing")
    assert frame.code == "timed-out" and "0.05 s" in frame.body
    assert inside.dispatcher.lost == 1
    assert inside.rows()[-1].code == "timed-out"
    gate.set()
    wait_until(lambda: inside.dispatcher.lost == 0)
    assert len(inside.rows()) == 2  # what it returned in the end is nobody's


def test_an_ability_that_looks_is_told_that_its_time_is_over(inside: Inside) -> None:
    ended = threading.Event()

    class Looks(Plain):
        called = "looks"
        time_limit_s = 0.05

        def run(self, params: Any) -> ToolResult:
            wait_until(lambda: self.context.cancelled)
            ended.set()
            return ToolResult.ok()

    assert inside.call(inside.turn(inside.add(Looks)), "looks").code == "timed-out"
    assert ended.wait(10)


def test_the_limit_holds_on_every_way_to_run(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    async def sleeps() -> None:
        await asyncio.sleep(30)

    turn = inside.turn(
        inside.add(doing(monkeypatch, lambda: gate.wait(30)), time_limit_s=0.05),
        inside.add(doing_async(monkeypatch, sleeps), time_limit_s=0.05),
    )
    codes = [
        inside.call(turn, "doing_async").code,
        asyncio.run(inside.acall(turn, "doing")).code,
        asyncio.run(inside.acall(turn, "doing_async")).code,
    ]
    assert codes == ["timed-out"] * 3


def test_an_async_ability_that_blocks_the_hosts_loop_is_left_behind_with_it(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    monkeypatch.setattr("chalie.dispatch.loop.GRACE_S", 0.05)
    block = [True]

    async def blocks() -> ToolResult:
        if block.pop() if block else False:
            gate.wait(30)
        return ToolResult.ok("free")

    turn = inside.turn(inside.add(doing_async(monkeypatch, blocks), time_limit_s=0.05))
    assert inside.call(turn, "doing_async").code == "timed-out"
    assert inside.dispatcher.lost == 1
    assert inside.call(turn, "doing_async").body == "free"
    gate.set()
    wait_until(lambda: inside.dispatcher.lost == 0)


def test_stuck_threads_are_replaced_up_to_a_bound_and_then_calls_are_busy(
    opened: Any, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    inside = opened(workers=1)
    turn = inside.turn(inside.add(doing(monkeypatch, lambda: gate.wait(30)), time_limit_s=0.02))
    codes = [inside.call(turn, "doing").code for _ in range(6)]
    assert codes == ["timed-out"] * 5 + ["busy"]
    assert inside.dispatcher.lost == 5
    gate.set()
    wait_until(lambda: inside.dispatcher.lost == 0)
    monkeypatch.setattr(Doing, "do", staticmethod(lambda: ToolResult.ok("free")))
    assert inside.call(turn, "doing").body == "free"


def test_a_persons_limit_comes_before_the_abilitys_and_that_before_the_default(opened: Any) -> None:
    from attrs import evolve

    from chalie.config import PackageOptions

    class Limited(Plain):
        called = "limited"
        time_limit_s = 7.0

    class Free(Plain):
        called = "free"

    inside = opened(call_s=30.0)
    limited, free = inside.add(Limited), inside.add(Free)
    options = inside.dispatcher._options_of
    assert (options(limited)[1], options(free)[1]) == (7.0, 30.0)
    inside.dispatcher._config = evolve(
        inside.config, packages={"chalie-ability-test": PackageOptions(time_limit_s=2.0)}
    )
    inside.dispatcher._options.clear()
    assert (options(limited)[1], options(free)[1]) == (2.0, 2.0)


# --- cancellation -----------------------------------------------------------------------------------------


def test_after_a_cancel_no_result_is_delivered_and_the_host_lives(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    begun = threading.Event()

    def block() -> ToolResult:
        begun.set()
        gate.wait(30)
        return ToolResult.ok("too late")

    turn = inside.turn(inside.add(doing(monkeypatch, block)))

    async def main() -> list[str]:
        call = asyncio.create_task(inside.dispatcher.acall(turn, "doing"))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        turn.cancel.cancel()
        first = await call
        return [first, await inside.dispatcher.acall(turn, "doing")]

    running, later = asyncio.run(main())
    assert "code=cancelled" in running and "too late" not in running
    assert "code=cancelled" in later and "was not run" in later
    gate.set()
    wait_until(lambda: inside.dispatcher.lost == 0)
    assert [row.code for row in inside.rows("call.finished")] == ["cancelled"]
    again = inside.turn(*turn.active.values())
    assert inside.call(again, "doing").body == "too late"


def test_a_result_that_is_ready_in_the_moment_of_the_cancel_is_not_delivered(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = inside.turn()

    def cancels_itself() -> ToolResult:
        turn.cancel.cancel()
        return ToolResult.ok("ready")

    async def cancels_itself_async() -> ToolResult:
        return cancels_itself()

    sync = inside.add(doing(monkeypatch, cancels_itself))
    awaited = inside.add(doing_async(monkeypatch, cancels_itself_async))
    for way in range(4):
        turn = inside.turn(sync, awaited)
        name = ("doing", "doing_async")[way % 2]
        text = (
            inside.dispatcher.call(turn, name)
            if way < 2
            else asyncio.run(inside.dispatcher.acall(turn, name))
        )
        assert "code=cancelled" in text and "ready" not in text


def test_cancelling_the_awaiting_task_cancels_an_async_ability_for_real(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleaned: list[str] = []

    async def main() -> None:
        begun = asyncio.Event()

        async def sleeps() -> Any:
            begun.set()
            try:
                await asyncio.sleep(30)
            finally:
                cleaned.append("up")

        turn = inside.turn(inside.add(doing_async(monkeypatch, sleeps)))
        call = asyncio.create_task(inside.dispatcher.acall(turn, "doing_async"))
        await begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.sleep(0)

    asyncio.run(main())
    assert cleaned == ["up"]
    wait_until(lambda: len(inside.rows("call.finished")) == 1)
    assert inside.rows()[-1].code == "cancelled"


def test_a_call_whose_task_is_cancelled_while_a_person_thinks_never_runs(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    from .inside import Person

    asked = threading.Event()
    ran: list[int] = []

    class Slow(Person):
        def ask(self, hold: Any) -> Any:
            asked.set()
            gate.wait(30)
            return super().ask(hold)

    descriptor = inside.add(doing(monkeypatch, lambda: ran.append(1)), allow=False)
    turn = inside.turn(descriptor, approver=Slow())

    async def main() -> None:
        call = asyncio.create_task(inside.dispatcher.acall(turn, "doing"))
        while not asked.is_set():
            await asyncio.sleep(0.001)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(main())
    gate.set()
    wait_until(lambda: inside.dispatcher._road.lost == 0)
    wait_until(lambda: bool(inside.rows("call.refused")))
    assert ran == [] and inside.rows("call.started") == []


def test_one_running_call_can_be_cancelled_by_its_id(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    begun = threading.Event()

    def block() -> ToolResult:
        begun.set()
        gate.wait(30)
        return ToolResult.ok("late")

    turn = inside.turn(inside.add(doing(monkeypatch, block), time_limit_s=30))
    texts: list[str] = []
    thread = threading.Thread(target=lambda: texts.append(inside.dispatcher.call(turn, "doing")))
    thread.start()
    assert begun.wait(10)
    assert inside.dispatcher.cancel(f"{turn.id}-1")
    thread.join(10)
    assert "code=cancelled" in texts[0]
    assert not inside.dispatcher.cancel(f"{turn.id}-1")
    assert not turn.cancel.cancelled


def test_a_delegates_calls_are_cancelled_with_the_turn_that_opened_it(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    above = inside.turn()
    below = inside.turn(
        inside.add(doing(monkeypatch, lambda: above.cancel.cancel() or ToolResult.ok("late"))),
        parent=above.cancel,
    )
    assert inside.call(below, "doing").code == "cancelled"


def test_a_listener_of_a_token_is_called_once_wherever_in_the_chain_it_was_raised() -> None:
    above = CancelToken()
    token = CancelToken(above)
    heard: list[int] = []
    remove = token.listen(lambda: heard.append(1))
    above.cancel()
    above.cancel()
    assert heard == [1] and token.cancelled
    token.listen(lambda: heard.append(2))
    assert heard == [1, 2]
    remove()


def test_a_removed_listener_is_not_called() -> None:
    token = CancelToken()
    heard: list[int] = []
    token.listen(lambda: heard.append(1))()
    token.cancel()
    assert heard == []


# --- Ctrl-C and exit --------------------------------------------------------------------------------------


def test_ctrl_c_during_a_call_reaches_the_program_and_is_recorded_as_cancelled(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pressed() -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            pass

    turn = inside.turn(inside.add(doing(monkeypatch, pressed)))
    with pytest.raises(KeyboardInterrupt):
        inside.dispatcher.call(turn, "doing")
    assert inside.rows()[-1].code == "cancelled"
    assert turn.records[0].code == "cancelled"


def test_a_stuck_ability_does_not_hold_up_exit() -> None:
    source = """
        import sys, tempfile, pathlib, time
        from tests.dispatch.inside import Inside, Plain
        class Hangs(Plain):
            called = "hangs"
            time_limit_s = 0.05
            def run(self, params): time.sleep(600)
        inside = Inside(pathlib.Path(tempfile.mkdtemp()))
        turn = inside.turn(inside.add(Hangs))
        print(inside.call(turn, "hangs").code, flush=True)
        inside.close()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout.strip(), done.returncode) == ("timed-out", 0), done.stderr


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
