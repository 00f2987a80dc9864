"""Eight programs on one home, all calling and recording at once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from chalie.config import Config
from chalie.ledger import Ledger

from tests.support import packages
from tests.support import wheels as building

PROCESSES = 8
SECONDS = 10

CALLS = """
import sys, time
from chalie import Host

with Host.open() as host:
    print("ready", flush=True)
    sys.stdin.readline()
    end = time.monotonic() + float(sys.argv[1])
    good = bad = 0
    while time.monotonic() < end:
        turn = host.turn("chat", principal=sys.argv[2], active=("echo",))
        text = turn.call("echo", {"text": str(good)})
        good, bad = good + ("status=success" in text), bad + ("status=success" not in text)
    print(good, bad)
"""


def test_eight_processes_that_call_and_record_for_ten_seconds_lose_nothing(tmp_path: Path) -> None:
    site, home = tmp_path / "site", tmp_path / "home"
    packages.install(site, packages.ability_package("echo", facts={"side_effect": packages.READ}))
    config = Config.load(home)
    with Ledger.open(config.ledger_path, retention=config.retention) as ledger:
        ledger.permissions.set("chat", "chalie-ability-echo", "echo", "allow", by="test")
    env = building.clean_environment(home, PYTHONPATH=str(site))
    running = [
        subprocess.Popen(
            [sys.executable, "-c", CALLS, str(SECONDS), f"agent-{number}"],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(PROCESSES)
    ]
    for process in running:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    counts = [tuple(map(int, process.communicate()[0].split())) for process in running]
    assert all(good > 0 and bad == 0 for good, bad in counts), counts
    with Ledger.open(config.ledger_path, retention=config.retention) as ledger:
        for number, (good, _) in enumerate(counts):
            rows = ledger.trail.query(principal=f"agent-{number}", limit=10**9)
            started = {row.call_id for row in rows if row.event == "call.started"}
            finished = [row for row in rows if row.event == "call.finished"]
            assert len(finished) == len(started) == good
            assert {row.call_id for row in finished} == started
            texts = [int(json.loads(row.arguments)["text"]) for row in rows if row.arguments]
            assert sorted(texts) == list(range(good))
