"""Time limits and cancellation: what is late or not wanted is not delivered, and nothing is held up."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from chalie.dispatch.state import CancelToken
from chalie.result import ToolResult

from .doing import Doing, doing, doing_async
from .inside import Inside, Person, Plain
from .waiting import wait_until

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


def test_the_limit_covers_the_making_of_text_out_of_a_body_on_every_way_to_run(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    class Slow:
        def __str__(self) -> str:
            gate.wait(30)
            return "late"

    async def late() -> ToolResult:
        return ToolResult.ok([Slow()])

    turn = inside.turn(
        inside.add(doing(monkeypatch, lambda: ToolResult.ok([Slow()])), time_limit_s=0.05),
        inside.add(doing_async(monkeypatch, late), time_limit_s=0.05),
    )
    codes = [inside.call(turn, "doing").code, inside.call(turn, "doing_async").code]

    async def both() -> list[str | None]:
        frames = [await inside.acall(turn, "doing"), await inside.acall(turn, "doing_async")]
        return [frame.code for frame in frames]

    assert codes + asyncio.run(both()) == ["timed-out"] * 4


def test_a_body_whose_objects_raise_what_ends_programs_costs_its_call_alone(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ends:
        def __str__(self) -> str:
            raise SystemExit(3)

    async def ends() -> ToolResult:
        return ToolResult.ok([Ends()])

    turn = inside.turn(
        inside.add(doing(monkeypatch, lambda: ToolResult.ok([Ends()]))),
        inside.add(doing_async(monkeypatch, ends)),
    )
    frames = [
        inside.call(turn, "doing"),
        inside.call(turn, "doing_async"),
        asyncio.run(inside.acall(turn, "doing")),
        asyncio.run(inside.acall(turn, "doing_async")),
    ]
    assert [frame.code for frame in frames] == ["unhandled-exception"] * 4


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
    options = inside.dispatcher._maker._options_of
    assert (options(limited)[1], options(free)[1]) == (7.0, 30.0)
    inside.dispatcher._maker._config = evolve(
        inside.config, packages={"chalie-ability-test": PackageOptions(time_limit_s=2.0)}
    )
    inside.dispatcher._maker._options.clear()
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


@pytest.mark.parametrize("awaited", [False, True])
def test_an_async_ability_is_stopped_by_its_turns_cancel_wherever_it_runs(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, awaited: bool
) -> None:
    stopped = threading.Event()

    async def sleeps() -> Any:
        threading.Thread(target=turn.cancel.cancel).start()
        try:
            await asyncio.sleep(30)
        finally:
            stopped.set()

    turn = inside.turn(inside.add(doing_async(monkeypatch, sleeps)))
    call = inside.dispatcher.call, inside.dispatcher.acall
    text = asyncio.run(call[1](turn, "doing_async")) if awaited else call[0](turn, "doing_async")
    assert "code=cancelled" in text
    assert stopped.wait(10)


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
