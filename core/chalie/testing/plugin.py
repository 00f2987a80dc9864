"""Fixtures for the tests of abilities, policies and skills: pytest loads this file by its entry point.

It is loaded in every run of an environment that has Chalie, so whatever costs something is imported by the
fixture that needs it. A project's own fixture of the same name goes before the one here.

`host` has a home of its own and sees the packages of the environment: what is installed, and the project the
test file belongs to, also where that is not installed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ..host import Host
    from ..turn import Turn
    from .approver import ScriptedApprover
    from .clock import Clock
    from .outcome import Outcome
    from .service import Service

__all__ = ["approver", "call", "chalie_home", "clock", "host", "service", "turn"]


@pytest.fixture
def chalie_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of the test's own, which `CHALIE_HOME` names; no other variable of Chalie's is set."""
    for name in [name for name in os.environ if name.startswith("CHALIE_")]:
        monkeypatch.delenv(name)
    home = tmp_path / "chalie-home"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("CHALIE_HOME", str(home))
    return home


@pytest.fixture
def approver() -> ScriptedApprover:
    """The person who is asked: answers as `says` scripts it, yes otherwise; `asked` keeps the questions."""
    from .approver import ScriptedApprover

    return ScriptedApprover()


@pytest.fixture
def host(
    chalie_home: Path,
    approver: ScriptedApprover,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Host]:
    """An open host. The project's own policies are enabled, and their allow counts."""
    from .homes import open_host
    from .project import project_above, site_of

    project = project_above(request.path)
    cache = tmp_path_factory.getbasetemp()
    if project is not None and not _installed(project.dist):
        for entry in reversed(site_of(project, cache / f"site-{project.dist}")):
            monkeypatch.syspath_prepend(entry)
    enabled = None if project is None else project.dist
    with open_host(chalie_home, cache, approver=approver, enabled=enabled) as opened:
        yield opened


def _installed(dist: str) -> bool:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        distribution(dist)
    except PackageNotFoundError:
        return False
    return True


@pytest.fixture
def turn(host: Host) -> Turn:
    """A turn on `chat` for the principal `tester`, in which every installed tool can be called."""
    snapshot = host.snapshot
    names = [snapshot.exposed(item) for _, item in snapshot.abilities()]
    return host.turn("chat", principal="tester", conversation="test", active=names)


@pytest.fixture
def call(turn: Turn) -> Callable[..., Outcome]:
    """Call a tool down the whole road: `call("dice", sides=20)` returns an `Outcome`.

    Arguments that are no Python names go in as a mapping: `call("dice", {"sides": 20})`.
    """
    from .outcome import Outcome

    def made(name: str, arguments: dict[str, Any] | None = None, /, **more: Any) -> Outcome:
        given = {"act_summary": "a test", **(arguments or {}), **more}
        return Outcome.of(turn.call(name, given))

    return made


@pytest.fixture
def clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    """A clock that stands at 2026-05-04T12:00:00Z until moved; the project's code and the test see it."""
    from datetime import UTC, datetime

    from .clock import Clock, ticking
    from .project import project_above

    project = project_above(request.path)
    values = [v for lines in (project.entry_points.values() if project else ()) for v in lines.values()]
    modules = {value.partition(":")[0].strip().partition(".")[0] for value in values}
    modules.add(request.module.__name__.partition(".")[0])
    with ticking(Clock(datetime(2026, 5, 4, 12, tzinfo=UTC), modules), monkeypatch.setattr) as standing:
        yield standing


@pytest.fixture
def service() -> Iterator[Service]:
    """An HTTP server on this machine: `service.answers("/v1/find", {"found": []})`, `service.requests`."""
    from .service import running

    with running() as started:
        yield started
