"""What decisions, holds and judging a command cost: probes that print one line of JSON, as in `probes.py`."""

from __future__ import annotations

import os
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

POLICIES, ROWS = 20, 10_000

#: command lines as coding agents write them, of every action.
COMMANDS = (
    "ls -la",
    "cat README.md",
    "grep -rn --include='*.py' TODO src",
    "sed -n 1,80p src/main.py",
    "find . -name '*.toml' -type f",
    "git status",
    "git diff HEAD~1 -- src",
    "python -m pytest -q tests",
    "mkdir -p build && cp README.md build",
    "cat a.txt | sort | uniq -c | head -20",
    "curl -sS https://example.org/data.json",
    "pip install requests",
    "rm -rf build",
    'for f in *.py; do echo "$f"; done',
    "FOO=bar make all 2>&1 | tail -50",
    "bash -c 'echo hi'",
)


class Hooks:
    """Policies as the loader gives them."""

    def __init__(self, decide: dict[str, dict[str, Callable[[Any], Any]]]) -> None:
        self._decide = decide
        self.loaded = frozenset(decide)

    def authors(self, hook: str) -> tuple[str, ...]:
        return tuple(dist for dist, hooks in self._decide.items() if hook in hooks)

    def deciding(self, hook: str) -> list[tuple[str, Callable[[Any], Any]]]:
        return [(dist, hooks[hook]) for dist, hooks in self._decide.items() if hook in hooks]


def decision() -> dict[str, Any]:
    """Time the gate's decision on a call: with policies that have nothing to say, and with an opinion each.

    What the policies themselves take is next to nothing in both. They run on the gate's thread, and where
    that stands on another CPU, waking it, and being woken, takes what the machine takes to wake an idle CPU:
    on a virtual one several times all the rest. So the decision is timed on one CPU, and once more on all of
    them beside a bare hand-over between two threads.
    """
    from chalie.calls import Call, Channel, Opinion, SideEffect
    from chalie.gate.gate import Gate
    from chalie.gate.policies import Policies
    from chalie.ledger import Ledger

    channel = Channel("chat", "chat", has_person=True, pins=(), background=True)
    opinion = Opinion("ask", "it sends something to somebody")
    hooks = {
        "silent": {"review_call": lambda _: None, "limit_call": lambda _: None},
        "speaking": {"review_call": lambda _: opinion, "limit_call": lambda _: None},
    }
    call = Call(
        "chalie-ability-email", "email", "email.send", SideEffect.EXTERNAL_SEND,
        {"to": "eve@example.org", "text": "hello"}, "chat", "ada", "talk", "h",
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, Ledger.open(Path(folder) / "ledger.sqlite") as ledger:
        for at in range(ROWS):
            ledger.permissions.set("chat", f"package-{at}", f"tool_{at}", "allow", by="benchmark")

        def gate(name: str) -> Gate:
            """Return a gate whose thread is started where this one may run now."""
            gate = Gate(ledger, Policies(Hooks({f"policy-{at}": hooks[name] for at in range(POLICIES)})))
            said = gate.decide(call, channel)
            if said.setting.value != "ask" or len(said.verdicts) != (POLICIES if name == "speaking" else 1):
                raise SystemExit(f"{name}: {said}")
            return gate

        found = {}
        with _one_cpu():
            for name in hooks:
                decides = gate(name).decide
                found[name] = _median(lambda: decides(call, channel), 5000)  # noqa: B023  (called at once)
        decides, handed = gate("silent").decide, _handed()
        ours, peer = [], []
        for _ in range(5000):
            ours.append(_timed(lambda: decides(call, channel)))
            peer.append(_timed(handed))
        return {**found, "spread": statistics.median(ours), "handed": statistics.median(peer)}


@contextmanager
def _one_cpu() -> Iterator[None]:
    """Keep this thread, and those it starts meanwhile, on one CPU where the system can."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    all_of_them = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(all_of_them)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, all_of_them)


def _handed() -> Callable[[], object]:
    """Return what hands nothing over to another thread and waits until that has seen it."""
    reader, writer = os.pipe()
    seen = threading.Lock()
    seen.acquire()

    def serve() -> None:
        while True:
            os.read(reader, 1)
            seen.release()

    def hand() -> None:
        os.write(writer, b".")
        seen.acquire(timeout=10)

    threading.Thread(target=serve, daemon=True).start()
    return hand


def held(name: str) -> dict[str, Any]:
    """Time a call that is asked about, approved at once and run, and one bare durable commit, in turn.

    Args:
        name: of a trivial tool.
    """
    from chalie import Answer, AnswerKind, Host

    class Yes:
        def ask(self, hold: Any) -> Any:
            return Answer(AnswerKind.ONCE, by="benchmark")

    ours: list[float] = []
    peer: list[float] = []
    with Host.open(approver=Yes()) as host:
        bare = sqlite3.connect(host.config.home / "bare.sqlite", isolation_level=None)
        bare.execute("PRAGMA journal_mode=WAL")
        bare.execute("PRAGMA synchronous=FULL")
        bare.execute("CREATE TABLE IF NOT EXISTS rows (at REAL, text TEXT)")
        (tool,) = host.snapshot.resolve(name)
        host.ledger.permissions.remove("chat", tool.dist, name, by="benchmark")  # another probe's
        turn = host.turn("chat", conversation="bench", active=(name,))
        for at in range(300):
            begun = time.perf_counter()
            text = turn.call(name, {"text": f"hello {at}"})
            ours.append(time.perf_counter() - begun)
            if "status=success" not in text:
                raise SystemExit(text)
            begun = time.perf_counter()
            bare.execute("INSERT INTO rows VALUES (?, ?)", (begun, text))
            peer.append(time.perf_counter() - begun)
        bare.close()
        ended = [hold for hold in host.holds.list(ended=True) if hold.state == "done"]
    if len(ended) < len(ours):
        raise SystemExit(f"{len(ended)} holds for {len(ours)} calls")
    return {"ours": statistics.median(ours), "peer": statistics.median(peer)}


def judged() -> dict[str, Any]:
    """Time what `bash` says of command lines."""
    sys.path.append(str(ROOT / "plugins" / "chalie-ability-workspace" / "src"))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CHALIE_WORKSPACE_ROOTS"] = folder
        for name in ("src", "tests", "build"):
            (Path(folder) / name).mkdir()
        for name in ("README.md", "a.txt", "src/main.py"):
            (Path(folder) / name).write_text("text\n", encoding="utf-8")
        from chalie_ability_workspace.bash import Bash

        bash = Bash()
        actions = {command: bash.classify({"command": command}) for command in COMMANDS}
        if set(actions.values()) != {"read", "write", "network", "install", "destructive"}:
            raise SystemExit(f"not of every action: {actions}")
        taken = [
            _timed(lambda: bash.classify({"command": command}))  # noqa: B023  (called at once)
            for _ in range(100)
            for command in COMMANDS
        ]
    return {"seconds": statistics.median(taken)}


def _median(what: Callable[[], Any], times: int) -> float:
    return statistics.median(_timed(what) for _ in range(times))


def _timed(what: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    what()
    return time.perf_counter() - begun


PROBES = {"decision": decision, "held": held, "judged": judged}
