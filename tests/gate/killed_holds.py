"""A program for `test_killed_holds.py`: calls that wait for a person, in forks that SIGKILL ends anywhere.

Arguments: `kill` or `race`, a home, a seed and how many. Prints a line per failure, then a line of JSON.

`kill`: each fork asks about one call, has it approved and runs it, and ends itself before or after a function
it calls, Python's and C's alike. Half of the moments are drawn from the whole way, from before it is stored
to after its end is; the other half lie right before and after what writes, to the ledger, the secrets or the
outside. Another fork then looks at what is left, as the next host would. `race`: two processes with two
threads each approve the same holds, and run them.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

from chalie.calls import Answer, AnswerKind, HoldView
from chalie.dispatch.state import TurnState
from chalie.errors import ChalieError
from chalie.gate.answering import answered
from chalie.ledger import Hold
from chalie.result import ToolResult

from tests.dispatch.inside import Inside, Person, Plain

WRITES = frozenset({"execute", "fsync", "link", "mkdir", "open", "unlink", "write"})
WAYS = ("at once", "later", "later, with a secret", "at once, with a secret")


class Effect(Plain):
    """Leaves a line behind for each time it runs."""

    called = "effect"
    properties: ClassVar[dict[str, Any]] = {
        "n": {"type": "integer"},
        "key": {"type": "string", "writeOnly": True},
    }
    file: ClassVar[Path]

    def run(self, params: Any) -> ToolResult:
        append(self.file, params["n"])
        return ToolResult.ok("done")


class Asked(Person):
    """Says yes, and leaves a line behind that it was asked."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file = file

    def ask(self, hold: HoldView) -> Answer:
        append(self.file, hold.arguments["n"])
        return super().ask(hold)


def append(file: Path, number: int) -> None:
    out = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(out, f"{number}\n".encode())
    os.close(out)


def lines(file: Path, number: int) -> int:
    return file.read_text().splitlines().count(str(number)) if file.exists() else 0


def arguments(number: int, way: str) -> dict[str, Any]:
    return {"n": number, "key": f"secret-{number}"} if "secret" in way else {"n": number}


def ask_and_run(inside: Inside, turn: TurnState, number: int, way: str, asked: Path) -> None:
    """Go the whole way of one call that has to be asked about."""
    approver = turn.approver = Asked(asked) if way.startswith("at once") else None
    inside.dispatcher.call(turn, "effect", arguments(number, way))
    if approver is None:
        append(asked, number)
        (hold,) = [each for each in inside.gate.holds.list() if each.arguments["n"] == number]
        answered(
            inside.gate.holds, inside.ledger, inside.dispatcher.run_hold, hold.id, "once", "terminal:ada"
        )


class Killer:
    """Counts what is called, and ends the process at one moment.

    Args:
        moment: which one, or None to count only.
        writing: count only what is called to write, before and after it.
    """

    def __init__(self, moment: int | None, writing: bool) -> None:
        self.count = 0
        self._moment = moment
        self._writing = writing

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if self._writing and not (event.startswith("c_") and argument.__name__ in WRITES):
            return
        self.count += 1
        if self.count == self._moment:
            os.kill(os.getpid(), signal.SIGKILL)


def in_fork(work: Callable[[], Any]) -> Any:
    """Run something in a fork and return what it returns, or None where it was killed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            os.write(writer, json.dumps(work()).encode())
            os._exit(0)
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return None
    assert os.WEXITSTATUS(status) == 0, "the fork failed"
    return json.loads(text)


def killed(home: Path, number: int, way: str, moment: int | None, writing: bool) -> int | None:
    """Go the way in a fork that is killed at a moment; return how many there are where it was not."""

    def work() -> int:
        return way_of(home, number, way, Killer(moment, writing))

    found: int | None = in_fork(work)
    return found


def way_of(home: Path, number: int, way: str, killer: Killer) -> int:
    inside = Inside(home)
    # no thread looks for approved holds here: what is counted has to be the same each time
    inside.dispatcher._held.watch = lambda: None  # type: ignore[method-assign]
    turn = inside.turn(inside.add(Effect, allow=False), conversation=f"talk-{number}")
    sys.setprofile(killer)
    ask_and_run(inside, turn, number, way, home / "asked")
    sys.setprofile(None)
    inside.close()
    return killer.count


def looked_over(home: Path, number: int, way: str) -> tuple[str, list[str]]:
    """Look at what a killed process left, go on from there, and return the state found and what is wrong."""

    def work() -> tuple[str, list[str]]:
        inside = Inside(home)
        inside.add(Effect, allow=False)
        inside.dispatcher.recover()
        effects, asked = home / "effects", lines(home / "asked", number)
        wrong: list[str] = []
        holds = [each for each in inside.gate.holds.list(ended=True) if each.arguments["n"] == number]
        if not holds:
            if asked or lines(effects, number):
                wrong.append("asked about or run without a hold")
            return "none", wrong
        if len(holds) > 1:
            wrong.append(f"{len(holds)} holds")
        hold = holds[0]
        before = lines(effects, number)
        wrong += judged(inside, hold, before)
        try:
            now = answered(
                inside.gate.holds, inside.ledger, inside.dispatcher.run_hold, hold.id, "once", "terminal:ada"
            )
            if hold.state not in ("pending", "approved", "not-started"):
                wrong.append(f"{hold.state} could be approved again")
            if now.state != "done" or lines(effects, number) != 1:
                wrong.append(f"approved again it is {now.state}, with {lines(effects, number)} effects")
        except ChalieError as error:
            if hold.state in ("pending", "approved", "not-started"):
                wrong.append(f"{hold.state} could not be approved: {error}")
        if lines(effects, number) > 1:
            wrong.append(f"run {lines(effects, number)} times")
        inside.dispatcher.recover()
        if hold.secret is not None and (home / "secrets" / hold.secret).exists():
            wrong.append("its secret is still there")
        inside.close()
        return hold.state, wrong

    found: tuple[str, list[str]] = in_fork(work)
    return found


def judged(inside: Inside, hold: Hold, effects: int) -> list[str]:
    """Return what is wrong with the state a killed process left: it must say what is known."""
    ended = [row for row in inside.rows("call.finished") if row.call_id == hold.call_id]
    if hold.state in ("pending", "approved", "not-started"):
        return [f"{hold.state}, but it took effect"] if effects else []
    if hold.state == "done":
        return [] if effects == 1 and len(ended) == 1 else [f"done: {effects} effects, {len(ended)} rows"]
    if hold.state == "interrupted":
        told = [each.text for each in inside.ledger.inbox.peek(hold.principal, hold.conversation)]
        known = any("whether it took effect is not known" in text for text in told)
        return [] if known and not ended else [f"interrupted: {told}, {len(ended)} rows"]
    return [f"left {hold.state}"]


def kill(home: Path, seed: int, runs: int) -> None:
    chance = random.Random(seed)
    Effect.file = home / "effects"
    home.mkdir(mode=0o700, exist_ok=True)
    states: Counter[str] = Counter()
    for number, way in enumerate(WAYS):  # here, so that every fork has imported what it needs
        way_of(home, 1_000_000 + number, way, Killer(None, False))
    moments = {
        (way, writing): killed(home, 2_000_000 + number, way, None, writing) or 0
        for number, way in enumerate(WAYS)
        for writing in (False, True)
    }
    assert all(moments.values())
    for number in range(runs):
        way, writing = WAYS[number % len(WAYS)], number // len(WAYS) % 2 == 0
        moment = chance.randrange(1, moments[way, writing] + 1)
        killed(home, number, way, moment, writing)
        state, wrong = looked_over(home, number, way)
        states[state] += 1
        for what in wrong:
            print(f"run {number} ({way}, moment {moment}): {what}")
    counts = {f"{way}{', writing' if writing else ''}": count for (way, writing), count in moments.items()}
    print(json.dumps({"moments": counts, "states": dict(states)}))


def race(home: Path, seed: int, holds: int) -> None:
    Effect.file = home / "effects"
    home.mkdir(mode=0o700, exist_ok=True)

    def opened() -> list[str]:
        inside = Inside(home)
        descriptor = inside.add(Effect, allow=False)
        for number in range(holds):
            turn = inside.turn(descriptor, conversation=f"talk-{number}")
            inside.dispatcher.call(turn, "effect", {"n": number})
        return [hold.id for hold in inside.gate.holds.list()]

    ids: list[str] = in_fork(opened)
    ready, go = os.pipe()
    racers = [racer(home, ids, ready, seed + number) for number in range(2)]
    os.write(go, b"..")
    outcomes: Counter[str] = Counter()
    for pid, results in racers:
        with os.fdopen(results, "rb") as pipe:
            outcomes.update(json.loads(pipe.read()))
        os.waitpid(pid, 0)
    for number in range(holds):
        if lines(home / "effects", number) != 1:
            print(f"hold {number} was executed {lines(home / 'effects', number)} times")
    print(json.dumps({"outcomes": dict(outcomes)}))


def racer(home: Path, ids: list[str], ready: int, seed: int) -> tuple[int, int]:
    """Start a process whose two threads approve all the holds; return its id and where its outcomes come."""
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        return child, reader
    inside = Inside(home)
    inside.add(Effect, allow=False)
    outcomes: list[str] = []
    barrier = threading.Barrier(2)

    def approve() -> None:
        for hold_id in ids:
            barrier.wait(60)
            try:
                answered(
                    inside.gate.holds,
                    inside.ledger,
                    inside.dispatcher.run_hold,
                    hold_id,
                    AnswerKind.ONCE,
                    f"terminal:{seed}",
                )
                outcomes.append("approved")
            except ChalieError as error:
                outcomes.append(error.code)
            inside.dispatcher.run_hold(hold_id)  # as a host does that finds it approved

    os.read(ready, 1)
    threads = [threading.Thread(target=approve) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.write(writer, json.dumps(Counter(outcomes)).encode())
    os._exit(0)


if __name__ == "__main__":
    {"kill": kill, "race": race}[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
