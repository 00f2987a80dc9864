"""Who may decide: the home's owner at a terminal, or an approver token; never what a tool starts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

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
