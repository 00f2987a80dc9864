"""No process of a server is left: not after closing, cancelling, a crash or a kill -9 of the host."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from chalie import Host
from chalie.envelope import parse
from chalie.errors import ChalieError
from chalie.mcp.guard import GONE_S

from tests.mcp.reaching import alive, allow_all, client, clinging, eventually, raw
from tests.mcp.stored import built, configure, listed, tool

HOST = """
import sys, time
from pathlib import Path
from chalie.mcp.client import Client
client = Client(Path(sys.argv[1]), connect_s=20, call_s=20)
client.refresh("raw")
print("reached", flush=True)
time.sleep(float(sys.argv[2]))
"""


def gone(pids: list[int]) -> None:
    """Fail unless all of them have ended in the stated time (and what a loaded machine takes to look)."""
    eventually(lambda: not alive(pids), GONE_S + 5)
    assert not alive(pids)
    assert len(pids) == 3


def test_after_closing_nothing_is_left_however_the_program_clings(home: Path, tmp_path: Path) -> None:
    configure(home, {"raw": raw(clings=str(tmp_path / "pids"))})
    with client(home) as reaching:
        reaching.refresh("raw")
        pids = clinging(tmp_path / "pids")
        assert alive(pids) == pids
    gone(pids)


def test_a_connection_that_is_given_up_while_it_opens_leaves_nothing(home: Path, tmp_path: Path) -> None:
    configure(home, {"raw": raw(clings=str(tmp_path / "pids"), hang="initialize")})
    with client(home, connect_s=1.0) as reaching:
        failed: list[ChalieError] = []

        def reach() -> None:
            try:
                reaching.refresh("raw")
            except ChalieError as error:
                failed.append(error)

        thread = threading.Thread(target=reach)
        thread.start()
        pids = clinging(tmp_path / "pids")
        thread.join(20)
        assert failed
        gone(pids)


def test_a_call_that_is_cancelled_while_its_server_starts_leaves_nothing(home: Path, tmp_path: Path) -> None:
    configure(home, {"raw": raw(clings=str(tmp_path / "pids"), hang="initialize")})
    listed(home, "raw", [tool("say")])
    built(home)
    with Host.open(home) as host:
        allow_all(host)
        turn = host.turn(active=["say"])
        answers: list[str] = []
        arguments = {"query": "x", "act_summary": "trying"}
        thread = threading.Thread(target=lambda: answers.append(turn.call("say", arguments)))
        thread.start()
        pids = clinging(tmp_path / "pids")
        turn.cancel()
        thread.join(20)
        assert [parse(text).code for text in answers] == ["cancelled"]
        gone(pids)


def test_a_program_that_crashed_takes_what_it_started_with_it(home: Path, tmp_path: Path) -> None:
    configure(home, {"raw": raw(clings=str(tmp_path / "pids"))})
    with client(home) as reaching:
        reaching.refresh("raw")
        pids = clinging(tmp_path / "pids")
        os.kill(pids[0], signal.SIGSEGV)
        gone(pids)
        assert reaching.refresh("raw").tools  # and it is started again


@pytest.mark.parametrize("how", ["killed", "exited"])
def test_a_host_that_ends_without_a_word_leaves_nothing(how: str, home: Path, tmp_path: Path) -> None:
    configure(home, {"raw": raw(clings=str(tmp_path / "pids"))})
    wait = "600" if how == "killed" else "0"
    host = subprocess.Popen([sys.executable, "-c", HOST, str(home), wait], stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    try:
        assert host.stdout.readline() == "reached\n"
        pids = clinging(tmp_path / "pids")
        if how == "killed":
            host.kill()
        host.wait(20)
        gone(pids)
    finally:
        host.kill()
        host.wait()
        host.stdout.close()


def test_a_killed_guard_takes_its_program_with_it(home: Path, tmp_path: Path) -> None:
    configure(home, {"raw": raw(clings=str(tmp_path / "pids"))})
    with client(home) as reaching:
        reaching.refresh("raw")
        program = clinging(tmp_path / "pids")[0]
        stat = Path(f"/proc/{program}/stat").read_text()
        os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)
        eventually(lambda: not alive([program]))
        assert not alive([program])
    for pid in clinging(tmp_path / "pids")[1:]:  # nobody was there to end these
        os.kill(pid, signal.SIGKILL)


def test_a_program_sees_a_plain_environment_and_its_entrys_own(home: Path, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    code = f"import json, os; open({str(seen)!r}, 'w').write(json.dumps(dict(os.environ)))"
    entry = {"command": sys.executable, "args": ["-I", "-c", code], "env": {"OWN": "yes"}}
    configure(home, {"raw": entry})
    os.environ["CHALIE_SECRET_OF_OURS"] = "x"
    try:
        with client(home) as reaching, pytest.raises(ChalieError):
            reaching.refresh("raw")
    finally:
        del os.environ["CHALIE_SECRET_OF_OURS"]
    found = json.loads(seen.read_text())
    assert found["OWN"] == "yes" and "CHALIE_SECRET_OF_OURS" not in found and "PATH" in found
