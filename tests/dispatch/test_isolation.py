"""An isolated package runs in a process of its own: what it does there costs its own call alone."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chalie import ToolResult

from .inside import Inside
from .waiting import wait_until

PACKAGE = """
import asyncio, ctypes, json, os, signal, subprocess, sys, threading, time
from chalie import Ability, SideEffect, ToolResult
from tests.dispatch.inside import Plain

class Base(Plain):
    isolate = True
    properties = {"do": {"type": "string"}, "text": {"type": "string"}}

class Away(Base):
    called = "away"
    def run(self, params):
        do = params.get("do", "pid")
        if do == "pid": return ToolResult.ok(os.getpid())
        if do == "echo": return ToolResult.ok(params["text"])
        if do == "exit": os._exit(7)
        if do == "segfault": ctypes.string_at(0)
        if do == "sysexit": raise SystemExit(3)
        if do == "raise": raise RuntimeError("in the worker")
        if do == "none": return None
        if do == "print":
            print("to stdout"); print("to stderr", file=sys.stderr); os.write(1, b"raw bytes\\n")
            sys.stdout.flush()
            return ToolResult.ok("printed")
        if do == "lastwords":
            print("these were my last words", flush=True); os._exit(9)
        if do == "hang": time.sleep(600)
        if do == "rich": return ToolResult.ok("x", rich={"a": [1]})
        if do == "badrich": return ToolResult.ok("x", rich={1, 2})
        if do == "body":
            odd = {"b": b"bytes", "s": {1}, "n": float("nan"), "u": "\\ud800"}
            return ToolResult.ok(odd, source="web")
        if do == "error": return ToolResult.error("no", code="my-own", hint="h", valid=("a", "b"), n=1)
        if do == "where":
            return ToolResult.ok({
                "tty": _tty(), "stdin": sys.stdin.read(), "session": os.getsid(0) == os.getpid(),
                "token": os.environ.get("CHALIE_APPROVER_TOKEN"), "argv": sys.argv,
            })
        if do == "context":
            c = self.context
            c.progress(0.5, "half")
            (c.data_folder / "mark").write_text("x")
            facts = [c.principal, c.conversation, c.channel, dict(c.client)]
            return ToolResult.ok([*facts, c.embed(["abc", "d"])])
        if do == "cancelled":
            self.context.progress(None, "waiting")
            while not self.context.cancelled: time.sleep(0.005)
            return ToolResult.ok("too late")
        if do == "child":
            child = subprocess.Popen(["sleep", "600"])
            self.context.progress(None, f"{child.pid} {os.getpid()}")
            time.sleep(600)
        if do == "grip":
            # a C call that holds the interpreter's lock, so that no thread of this process can run
            self.context.progress(None, f"{os.getpid()}")
            ctypes.PyDLL(None).sleep(600)

class Awaits(Base):
    called = "awaits"
    async def run(self, params):
        await asyncio.sleep(0)
        if params.get("do") == "long":
            self.context.progress(None, "waiting")
            await asyncio.sleep(600)
        return ToolResult.ok("awaited")

class Judges(Base):
    called = "judges"
    actions = {"look": SideEffect.READ, "wipe": SideEffect.DESTRUCTIVE}
    def classify(self, params):
        if params.get("do") == "exit": os._exit(1)
        if params.get("do") == "raise": raise ValueError("it speaks of a place")
        return params.get("do", "look")

class Lands(Base):
    called = "lands"
    side_effect = SideEffect.EXTERNAL_SEND
    def destination(self, params):
        if params.get("do") == "exit": os._exit(1)
        if params.get("do") == "raise": raise ValueError("nowhere")
        return {"here": self.context.conversation, "odd": [1]}.get(params.get("do"), "elsewhere")

def _tty():
    try:
        os.close(os.open("/dev/tty", os.O_RDWR))
    except OSError:
        return False
    return True
"""


@pytest.fixture
def away(inside: Inside, package: Callable[[str, str], Any]) -> Any:
    """A turn with the isolated package's abilities, and what was told of their progress."""
    module = package("away_package", PACKAGE)
    turn = inside.turn(inside.add(module.Away), inside.add(module.Awaits), inside.add(module.Judges))
    turn.told = []
    turn.progress = lambda call_id, fraction, message: turn.told.append(message)
    return turn


def body(inside: Inside, turn: Any, do: str, **more: Any) -> Any:
    frame = inside.call(turn, "away", {"do": do, **more})
    assert frame.status == "success", frame
    return json.loads(frame.body)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except OSError:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return not Path("/proc").exists()
    return state != "Z"


def test_one_worker_serves_the_package_and_its_module_never_enters_the_host(
    inside: Inside, away: Any
) -> None:
    first, second = body(inside, away, "pid"), body(inside, away, "pid")
    assert first == second != os.getpid()
    assert inside.loaded == []


@pytest.mark.parametrize("how", ["exit", "segfault"])
def test_a_crash_costs_that_call_alone(inside: Inside, away: Any, how: str) -> None:
    before = body(inside, away, "pid")
    assert inside.call(away, "away", {"do": how}).code == "worker-died"
    assert body(inside, away, "pid") != before
    detail = next(row.detail for row in inside.rows("call.finished") if row.code == "worker-died") or ""
    assert ("code 7" if how == "exit" else "SIGSEGV") in detail


def test_what_it_said_last_is_on_the_trail(inside: Inside, away: Any) -> None:
    assert inside.call(away, "away", {"do": "lastwords"}).code == "worker-died"
    assert "these were my last words" in (inside.rows()[-1].detail or "")


@pytest.mark.parametrize(
    ("do", "code"),
    [("sysexit", "unhandled-exception"), ("raise", "unhandled-exception"), ("none", "non-canonical-result")],
)
def test_what_python_can_catch_does_not_even_cost_the_worker(
    inside: Inside, away: Any, do: str, code: str
) -> None:
    before = body(inside, away, "pid")
    assert inside.call(away, "away", {"do": do}).code == code
    assert body(inside, away, "pid") == before


def test_prints_never_reach_the_hosts_own_output(
    inside: Inside, away: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    assert inside.call(away, "away", {"do": "print"}).body == "printed"
    assert inside.call(away, "away", {"do": "echo", "text": "x"}).body == "x"
    assert capfd.readouterr() == ("", "")


def test_it_has_no_terminal_no_input_and_no_approver_token(
    inside: Inside, away: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHALIE_APPROVER_TOKEN", "secret")
    where = body(inside, away, "where")
    assert where["tty"] is False and where["stdin"] == "" and where["token"] is None


def test_it_has_no_terminal_even_where_the_host_has_one(tmp_path: Path) -> None:
    """The host runs on a pseudo-terminal of its own, as from a person's shell."""
    import pty

    (tmp_path / "away_package.py").write_text(PACKAGE, encoding="utf-8")
    source = f"""
        import sys, pathlib
        sys.path.insert(0, {str(tmp_path)!r})
        from tests.dispatch.inside import Inside
        import away_package, os
        os.close(os.open("/dev/tty", os.O_RDWR))   # the host itself does have one
        inside = Inside(pathlib.Path({str(tmp_path)!r}) / "home")
        frame = inside.call(inside.turn(inside.add(away_package.Away)), "away", {{"do": "where"}})
        pathlib.Path({str(tmp_path)!r}, "answer").write_text(frame.body)
        inside.close()
    """
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", textwrap.dedent(source)])
    printed = b""
    try:
        while chunk := os.read(terminal, 4096):
            printed += chunk
    except OSError:  # how Linux says that the other end is closed
        pass
    assert os.waitpid(pid, 0)[1] == 0, printed.decode()
    os.close(terminal)
    assert json.loads((tmp_path / "answer").read_text())["tty"] is False


def test_the_context_is_the_same_as_in_the_host(inside: Inside, away: Any) -> None:
    away.client = {"tz": "UTC"}
    away.conversation = "c1"
    assert body(inside, away, "context") == ["ada", "c1", "chat", {"tz": "UTC"}, [[3.0, 1.0], [1.0, 1.0]]]
    assert away.told == ["half"]
    assert (inside.home / "data" / "chalie-ability-test" / "mark").exists()


def test_a_result_crosses_as_it_would_have_been_shown(inside: Inside, away: Any) -> None:
    frame = inside.call(away, "away", {"do": "body"})
    assert json.loads(frame.body) == {"b": "bytes", "s": [1], "n": None, "u": "\ufffd"}
    assert frame.meta == {"source": "web"}
    frame = inside.call(away, "away", {"do": "error"})
    assert (frame.code, frame.hint, frame.valid, frame.meta) == ("my-own", "h", ("a", "b"), {"n": 1})
    inside.call(away, "away", {"do": "rich"})
    assert away.rich == {3: {"a": [1]}}
    assert inside.call(away, "away", {"do": "badrich"}).code == "non-canonical-result"


def test_any_text_crosses_and_comes_back(inside: Inside, away: Any) -> None:
    for text in ("é\n\u2028\x00", '{"id": 1}\n', "\U0001f600", "x" * 900_000):
        frame = inside.call(away, "away", {"do": "echo", "text": text})
        assert frame.status == "success"
        assert frame.body[:10] == text[:10]


def test_an_async_ability_is_awaited_in_the_worker(inside: Inside, away: Any) -> None:
    assert inside.call(away, "awaits").body == "awaited"
    assert asyncio.run(inside.acall(away, "awaits")).body == "awaited"


def test_its_own_classify_runs_in_the_worker_too(inside: Inside, away: Any) -> None:
    inside.call(away, "judges", {"do": "wipe"})
    assert away.records[-1].permission == "judges.wipe"
    assert inside.call(away, "judges", {"do": "exit"}).code == "approval-pending"
    assert away.records[-1].permission == "judges"
    assert inside.loaded == []


def test_why_its_classify_raised_is_told(inside: Inside, package: Callable[[str, str], Any]) -> None:
    turn = inside.turn(inside.add(package("away_package", PACKAGE).Judges))
    call = inside.dispatcher.examine(turn, "judges", {"do": "raise"})
    assert not isinstance(call, ToolResult)
    assert (call.must_ask, call.asked_because) == (True, "it speaks of a place")


@pytest.mark.parametrize(
    ("do", "lands"), [("here", True), ("there", False), ("odd", False), ("raise", False), ("exit", False)]
)
def test_where_it_sends_to_is_computed_in_the_worker_too(
    inside: Inside, package: Callable[[str, str], Any], do: str, lands: bool
) -> None:
    turn = inside.turn(inside.add(package("away_package", PACKAGE).Lands), conversation="talk")
    call = inside.dispatcher.examine(turn, "lands", {"do": do})
    assert not isinstance(call, ToolResult)
    assert call.lands_in_current_conversation is lands
    assert inside.loaded == []


def test_a_call_past_its_limit_ends_the_worker_and_all_it_started(
    opened: Any, package: Callable[[str, str], Any]
) -> None:
    inside = opened()
    module = package("away_package", PACKAGE)
    turn = inside.turn(inside.add(module.Away, time_limit_s=0.5))
    told: list[str] = []
    frame = inside.call(
        turn, "away", {"do": "child"}, progress=lambda call_id, fraction, message: told.append(message)
    )
    assert frame.code == "timed-out"
    child, worker = map(int, told[0].split())
    wait_until(lambda: not alive(worker) and not alive(child))
    assert inside.call(turn, "away", {"do": "echo", "text": "next"}).body == "next"


def test_a_sync_call_is_told_of_its_cancel_and_the_worker_lives(inside: Inside, away: Any) -> None:
    before = body(inside, away, "pid")
    away.progress = lambda call_id, fraction, message: inside.dispatcher.cancel(call_id)
    frame = inside.call(away, "away", {"do": "cancelled"})
    assert frame.code == "cancelled" and "too late" not in frame.body
    away.progress = None
    assert body(inside, away, "pid") == before


def test_an_async_call_is_cancelled_for_real(inside: Inside, away: Any) -> None:
    before = body(inside, away, "pid")
    away.progress = lambda call_id, fraction, message: inside.dispatcher.cancel(call_id)
    assert inside.call(away, "awaits", {"do": "long"}).code == "cancelled"
    away.progress = None
    assert body(inside, away, "pid") == before


def test_a_call_that_does_not_look_is_ended_with_its_worker(
    inside: Inside, away: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chalie.dispatch.isolation.GRACE_S", 0.1)
    told: list[str] = []

    def progress(call_id: str, fraction: float | None, message: str) -> None:
        told.append(message)
        inside.dispatcher.cancel(call_id)

    assert inside.call(away, "away", {"do": "child"}, progress=progress).code == "cancelled"
    child, worker = map(int, told[0].split())
    wait_until(lambda: not alive(worker) and not alive(child))
    assert inside.call(away, "away", {"do": "echo", "text": "next"}).body == "next"


def test_a_package_that_changed_gets_a_new_worker(inside: Inside, away: Any) -> None:
    before = body(inside, away, "pid")
    inside.stamps["chalie-ability-test"] = "2"
    after = body(inside, away, "pid")
    assert after != before and not alive(before)


def test_a_package_that_cannot_be_imported_there_costs_its_call(
    inside: Inside, package: Callable[[str, str], Any]
) -> None:
    module = package("away_package", PACKAGE)
    turn = inside.turn(inside.add(module.Away, target="away_package_that_is_gone:Away"))
    assert inside.call(turn, "away").code == "unhandled-exception"
    assert "ModuleNotFoundError" in (inside.rows()[-1].detail or "")


def test_calls_of_one_package_run_one_after_the_other_and_none_is_lost(inside: Inside, away: Any) -> None:
    texts: list[str] = []

    def call(number: int) -> None:
        texts.append(inside.call(away, "away", {"do": "echo", "text": str(number)}).body)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(texts, key=int) == [str(number) for number in range(12)]


def test_a_call_behind_one_that_hangs_is_busy_in_the_end(
    inside: Inside, away: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    body(inside, away, "pid")
    monkeypatch.setattr(inside.dispatcher._maker._workers, "_start_s", 0.2)
    monkeypatch.setattr("chalie.dispatch.isolation.GRACE_S", 0.2)
    begun = threading.Event()
    away.progress = lambda *_: begun.set()
    thread = threading.Thread(target=lambda: inside.call(away, "away", {"do": "child"}))
    thread.start()
    assert begun.wait(10)
    assert inside.call(away, "away", {"do": "pid"}).code == "busy"
    away.cancel.cancel()
    thread.join(10)
    assert not thread.is_alive()


def test_closing_the_host_ends_its_workers(inside: Inside, away: Any) -> None:
    worker = body(inside, away, "pid")
    inside.dispatcher.close(drain_s=0.0)
    wait_until(lambda: not alive(worker))
    assert inside.call(away, "away").code == "cancelled"


@pytest.mark.parametrize("do", ["child", "grip"])
def test_none_of_its_processes_outlives_a_host_that_was_killed(tmp_path: Path, do: str) -> None:
    (tmp_path / "away_package.py").write_text(PACKAGE, encoding="utf-8")
    source = f"""
        import sys, pathlib
        sys.path.insert(0, {str(tmp_path)!r})
        from tests.dispatch.inside import Inside
        import away_package
        inside = Inside(pathlib.Path({str(tmp_path)!r}) / "home")
        turn = inside.turn(inside.add(away_package.Away))
        inside.call(turn, "away", {{"do": {do!r}}}, progress=lambda *told: print(told[2], flush=True))
    """
    host = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(source)], stdout=subprocess.PIPE, text=True
    )
    assert host.stdout is not None
    started = [int(word) for word in host.stdout.readline().split()]
    assert started and all(map(alive, started))
    host.send_signal(signal.SIGKILL)
    host.wait()
    host.stdout.close()
    wait_until(lambda: not any(map(alive, started)))


def test_the_rows_of_an_isolated_call_are_the_same(inside: Inside, away: Any) -> None:
    inside.call(away, "away", {"do": "echo", "text": "x"})
    assert [row.event for row in inside.rows()] == ["call.started", "call.finished"]


def test_an_option_isolates_a_package_that_does_not_ask_for_it(
    inside: Inside, package: Callable[[str, str], Any]
) -> None:
    from attrs import evolve
    from chalie.config import PackageOptions

    module = package("away_package", PACKAGE)
    turn = inside.turn(inside.add(module.Away, isolate=False))
    assert inside.call(turn, "away").body == str(os.getpid())
    inside.dispatcher._maker._config = evolve(
        inside.config, packages={"chalie-ability-test": PackageOptions(isolate=True)}
    )
    inside.dispatcher._maker._options.clear()
    assert inside.call(turn, "away").body != str(os.getpid())
    assert inside.call(turn, "away", {"do": "exit"}).code == "worker-died"
