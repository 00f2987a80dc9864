"""Who may decide: the home's owner at a terminal, or an approver token; never what a tool starts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest
from chalie.errors import NotAuthorised
from chalie.gate.authority import Authority, login
from chalie.ledger import Ledger

from .conftest import Person

PROVE = """
    from chalie.errors import NotAuthorised
    from chalie.gate.authority import Authority
    from chalie.ledger import Ledger
    home = Path(sys.argv[1])
    with Ledger.open(home / "ledger.sqlite") as ledger:
        try:
            print(Authority(ledger, home).prove(None))
        except NotAuthorised as error:
            print("no:", error.message)
"""


def test_the_owner_at_a_terminal_may(tmp_path: Path, person: Callable[..., Person]) -> None:
    assert person(PROVE, tmp_path).ends().strip() == f"terminal:{login()}"


def test_whose_input_is_not_the_terminal_may_not(tmp_path: Path, person: Callable[..., Person]) -> None:
    assert "no: " in (out := person(PROVE, tmp_path, stdin=False).ends())
    assert "standard input is not a terminal" in out


def test_somebody_who_does_not_own_the_home_may_not(tmp_path: Path, person: Callable[..., Person]) -> None:
    code = "import os\nos.geteuid = lambda: 12345" + PROVE.replace("    ", "", 1).replace("\n    ", "\n")
    assert f"no: 12345 does not own the home {tmp_path}" in person(code, tmp_path).ends()


def test_a_process_without_a_terminal_may_not_even_with_a_terminal_as_input(tmp_path: Path) -> None:
    import pty
    from textwrap import dedent

    master, slave = pty.openpty()
    code = "import os, sys\nfrom pathlib import Path\n" + dedent(PROVE)
    out = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        stdin=slave,
        capture_output=True,
        text=True,
        check=True,
        start_new_session=True,  # what a tool starts: no controlling terminal
    ).stdout
    os.close(master)
    os.close(slave)
    assert "no: only the home's owner at a terminal, or an approver token, may do that" in out
    assert "/dev/tty cannot be opened" in out


HOST = """
    import subprocess, time
    from chalie.ledger import Ledger
    home, how = Path(sys.argv[1]), sys.argv[2]
    ledger = Ledger.open(home / "ledger.sqlite")
    if how == "neighbour":  # of a shell that started both
        code = "import sys, time; from pathlib import Path; from chalie.ledger import Ledger; "
        code += "Ledger.open(Path(sys.argv[1])).present(); print(flush=True); time.sleep(600)"
        start = [sys.executable, "-c", code, str(home / "ledger.sqlite")]
        host = subprocess.Popen(start, stdout=subprocess.PIPE)
        host.stdout.readline()
    elif how != "not a host":
        ledger.present()
    run = [sys.executable, "-c", sys.argv[3], str(home)]
    if how == "orphan":  # its parent ends before it asks
        run = ["/bin/sh", "-c", 'exec 3<&0; "$@" $$ <&3 &', "sh", *run]
    subprocess.run(run)
    if how == "orphan":
        while not (home / "said").exists():
            time.sleep(0.01)
    if how == "neighbour":
        host.kill()
"""


def _proves(person: Callable[..., Person], home: Path, how: str) -> str:
    code = "import os, sys, time\nfrom pathlib import Path\n"
    if how == "orphan":
        code += (
            "while os.getppid() != 1 and Path(f'/proc/{os.getppid()}/comm').read_text() == 'sh\\n': pass\n"
        )
    code += dedent(PROVE) + "Path(home, 'said').touch()\n"
    return person(HOST, home, how, code).ends().strip()


@pytest.mark.parametrize("how", ["child", "orphan"])
def test_what_a_host_starts_may_not_even_at_the_hosts_own_terminal(
    tmp_path: Path, person: Callable[..., Person], how: str
) -> None:
    said = _proves(person, tmp_path, how)
    assert said.startswith("no: only the home's owner at a terminal, or an approver token, may do that: ")
    assert "this was started by a program that runs tools (process " in said


@pytest.mark.parametrize("how", ["not a host", "neighbour"])
def test_a_person_may_beside_a_host_that_runs_at_the_same_terminal(
    tmp_path: Path, person: Callable[..., Person], how: str
) -> None:
    assert _proves(person, tmp_path, how) == f"terminal:{login()}"


def test_a_token_is_named_and_an_unknown_one_refused(ledger: Ledger, tmp_path: Path) -> None:
    authority = Authority(ledger, tmp_path)
    token = ledger.approvers.add("phone")
    assert authority.prove(token) == "token:phone"
    with pytest.raises(NotAuthorised, match="the approver token is not known to this home"):
        authority.prove("chalie_guess")
    ledger.approvers.remove("phone")
    with pytest.raises(NotAuthorised, match="not known"):
        authority.prove(token)


def test_a_wrong_token_is_refused_at_the_owners_terminal_too(
    tmp_path: Path, person: Callable[..., Person]
) -> None:
    out = person(PROVE.replace("prove(None)", "prove('chalie_guess')"), tmp_path).ends()
    assert "no: the approver token is not known" in out


def test_the_name_of_the_account_does_not_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    name = login()
    for variable in ("USER", "LOGNAME", "USERNAME"):
        monkeypatch.setenv(variable, "somebody-else")
    assert login() == name
