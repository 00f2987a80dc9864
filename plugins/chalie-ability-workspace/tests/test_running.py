"""Running a command: its environment, its end, and its output."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chalie_ability_workspace.bash import Bash

Call = Callable[..., Any]


def gone(pid: int, seconds: float = 10) -> bool:
    """Tell whether a process ends within a time; a zombie has ended."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout
        if not state.strip() or state.startswith("Z"):
            return True
        time.sleep(0.02)
    return False


def test_output_and_exit_code_come_back_in_order(call: Call) -> None:
    result = call(Bash, command="echo one; echo two >&2; echo three; exit 7")
    assert (result.status, result.body, result.meta["exit_code"]) == ("success", "one\ntwo\nthree\n", 7)


def test_it_runs_in_the_workspace_or_the_folder_asked_for(call: Call, work: Path) -> None:
    assert call(Bash, command="pwd").body.strip() == str(work.resolve())
    assert call(Bash, command="pwd", folder="inner").body.strip() == str(work.resolve() / "src")
    assert call(Bash, command="pwd", folder="out").code == "outside-workspace"
    assert call(Bash, command="pwd", folder="a.txt").code == "no-such-file"


def test_nothing_of_the_hosts_environment_reaches_the_command(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "CHALIE_APPROVER_TOKEN": "t", "BASH_ENV": "/tmp/x", "ENV": "/tmp/x", "LD_PRELOAD": "", "API_KEY": "k",
        "BASH_FUNC_ls%%": "() { echo shadowed; }", "PATH": "/tmp/bad:" + os.environ["PATH"], "CDPATH": "/",
        "GREP_OPTIONS": "-r", "A": "a\ntouch /tmp/x",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    lines = call(Bash, command="/usr/bin/env").body.splitlines()
    names = {line.partition("=")[0] for line in lines}
    assert names <= {"PATH", "HOME", "LANG", "TERM", "TMPDIR", "PWD", "SHLVL", "_", "OLDPWD"}
    path = next(line for line in lines if line.startswith("PATH="))
    assert path.startswith("PATH=/usr/bin:/bin:")
    assert "bad" not in path


def test_there_is_no_terminal_no_input_and_no_handle_of_the_hosts(call: Call, work: Path) -> None:
    opened = os.open(work / "a.txt", os.O_RDONLY)
    os.set_inheritable(opened, True)
    try:
        result = call(
            Bash, command="cat; (: < /dev/tty) 2>&1 | head -c 3; ls /proc/self/fd 2>/dev/null || true"
        )
    finally:
        os.close(opened)
    assert result.meta["exit_code"] == 0
    assert result.body.startswith("/bi")  # bash's own complaint that there is no such device
    assert str(opened) not in result.body.split() or opened <= 3


def test_bash_reads_no_start_files(call: Call) -> None:
    assert call(Bash, command="ps -o args= -p $$; true").body.startswith("/bin/bash --noprofile --norc -c ")


def test_it_leads_a_session_of_its_own(call: Call) -> None:
    result = call(Bash, command="ps -o sid= -p $$; echo $$")
    session, process = result.body.split()
    assert session == process != str(os.getsid(0))


def test_a_command_over_its_time_is_ended_with_everything_it_started(call: Call) -> None:
    command = "sleep 300 & echo $!; (sleep 300 & echo $!; wait) & trap '' TERM INT HUP; wait"
    result = call(Bash, command=command, timeout_s=0.7)
    assert result.code == "timed-out"
    assert "timeout_s=" in result.hint
    pids = [int(word) for word in result.message.split("before:")[1].split()]
    assert len(pids) == 2
    assert all(gone(pid) for pid in pids)


def test_a_cancelled_command_is_ended_with_everything_it_started(call: Call, bound: Any, work: Path) -> None:
    results: list[Any] = []
    thread = threading.Thread(
        target=lambda: results.append(call(Bash, command="sleep 300 & echo $! > pid; echo ready; wait"))
    )
    thread.start()
    until = time.monotonic() + 20
    while not ((work / "pid").exists() and (work / "pid").read_text().strip()) and time.monotonic() < until:
        time.sleep(0.01)
    bound.cancelled = True
    thread.join(20)
    assert results[0].code == "cancelled"
    assert gone(int((work / "pid").read_text()))


def test_what_a_command_leaves_running_is_ended_and_not_waited_for(call: Call) -> None:
    result = call(Bash, command="sleep 300 & echo $!", timeout_s=60)
    assert result.meta["seconds"] < 30
    assert gone(int(result.body))


def test_a_flood_of_output_is_kept_at_both_ends(call: Call) -> None:
    result = call(Bash, command="echo first; yes | head -c 5000000; echo last", output_bytes=2048)
    assert result.body.startswith("first\n")
    assert result.body.endswith("last\n")
    assert len(result.body) < 2200
    assert result.meta["left_out_bytes"] == 5_000_011 - 2048


def test_output_that_is_no_text_is_made_text(call: Call) -> None:
    assert call(Bash, command=r"printf 'a\0b\377c'").body == "a\ufffdb\ufffdc"


@pytest.mark.parametrize("command", ["a\0b", "echo \ud800"])
def test_a_command_that_cannot_be_passed_is_refused(command: str, call: Call) -> None:
    assert call(Bash, command=command).code == "invalid-param"


def test_importing_the_ability_loads_no_parser() -> None:
    code = (
        "import sys; from chalie_ability_workspace.bash import Bash; Bash().parameters();"
        "print([name for name in ('tree_sitter', 'tree_sitter_bash') if name in sys.modules])"
    )
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.stdout.strip() == "[]", done.stderr
