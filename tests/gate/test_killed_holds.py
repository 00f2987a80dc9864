"""At most once, whatever ends a process and whoever approves: real processes, killed and racing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def program(*words: object) -> tuple[list[str], dict[str, Any]]:
    """Run the program beside this file; return the failures it names and what it counted."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.gate.killed_holds", *map(str, words)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=3000,
    )
    assert done.returncode == 0, done.stderr
    *failures, counted = done.stdout.splitlines()
    return failures, json.loads(counted)


def test_a_process_killed_anywhere_between_asking_and_recording_leaves_what_is_known(tmp_path: Path) -> None:
    runs = int(os.environ.get("CHALIE_TEST_KILLED_HOLDS", "200"))
    seed = int(os.environ.get("CHALIE_TEST_SEED", "20"))
    failures, counted = program("kill", tmp_path / "home", seed, runs)
    assert failures == []
    # the moments lie on all of the way: no hold yet, each state between, and the end
    assert {"none", "pending", "not-started", "interrupted", "done"} <= set(counted["states"])


def test_two_processes_with_two_threads_each_execute_every_hold_once(tmp_path: Path) -> None:
    holds = int(os.environ.get("CHALIE_TEST_RACED_HOLDS", "100"))
    failures, counted = program("race", tmp_path / "home", 7, holds)
    assert failures == []
    assert sum(counted["outcomes"].values()) == 4 * holds
    assert set(counted["outcomes"]) <= {"approved", "already-decided"}
