"""The pytest plugin: what its fixtures give, and that a run which needs none of them pays for none."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from chalie import Host
from chalie.testing import (
    Outcome,
    ScriptedApprover,
    Service,
    assert_error,
    assert_held,
    assert_ok,
)
from chalie.testing.clock import Clock, ticking

from tests.support import packages
from tests.support import wheels as building

ECHO = packages.ability_package(
    "echo",
    parameters={
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    },
    run="""
    if params["text"] == "bad":
        return ToolResult.error("that text is bad", code="bad-text", hint="pass another", valid=("good",))
    return ToolResult.ok({"text": params["text"]}, count=1)
    """,
)


@pytest.fixture(scope="module")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An import folder with the tool, the same for all tests: its catalogue is built once."""
    folder = tmp_path_factory.mktemp("echo")
    packages.install(folder, ECHO)
    return folder


@pytest.fixture(autouse=True)
def with_echo(echo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(echo))


def test_a_call_goes_down_the_whole_road_and_comes_back_taken_apart(
    call: Callable[..., Outcome], approver: ScriptedApprover
) -> None:
    outcome = call("echo", text="hello")
    assert assert_ok(outcome) == {"text": "hello"}
    assert (outcome.name, outcome.ok, outcome.meta) == ("echo", True, {"count": 1})
    assert [(view.name, view.arguments) for view in approver.asked] == [("echo", {"text": "hello"})]
    refused = assert_error(call("echo", {"text": "bad"}), "bad-text")
    assert (refused.message, refused.hint, refused.valid) == ("that text is bad", "pass another", ("good",))
    assert_error(call("echo"), "missing-params")


def test_the_host_has_a_home_and_an_environment_of_its_own(
    host: Host, chalie_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    assert host.config.home == chalie_home
    assert {name: value for name, value in os.environ.items() if name.startswith("CHALIE_")} == {
        "CHALIE_HOME": str(chalie_home)
    }


def test_a_home_can_be_configured_before_its_host_is_opened(
    chalie_home: Path, request: pytest.FixtureRequest
) -> None:
    (chalie_home / "config.toml").write_text('[channels.chat]\npins = ["echo"]\n')
    assert request.getfixturevalue("host").turn("chat").names == ("echo",)


def test_a_person_who_is_away_leaves_a_hold_that_can_be_answered_later(
    host: Host, call: Callable[..., Outcome], approver: ScriptedApprover
) -> None:
    approver.says("away")
    hold = assert_held(call("echo", text="later"))
    assert host.answer(hold, token=host.approver_token).state == "done"
    (envelope,) = host.inbox("test", "tester")
    assert assert_ok(envelope) == {"text": "later"}


def test_a_scripted_person_answers_in_order_and_then_as_always(
    call: Callable[..., Outcome], approver: ScriptedApprover
) -> None:
    approver.says("decline", "once")
    assert_error(call("echo", text="1"), "declined")
    assert_ok(call("echo", text="2"))
    approver.otherwise("decline")
    assert_error(call("echo", text="3"), "declined")
    approver.until(datetime(2999, 1, 1, tzinfo=UTC))
    assert_ok(call("echo", text="4"))
    assert_ok(call("echo", text="5"))
    assert len(approver.asked) == 4, "the last was covered by the allowance"
    with pytest.raises(ValueError, match="'maybe' is no answer; use one of once, always"):
        approver.says("maybe")


def test_an_assertion_that_fails_shows_the_whole_envelope(call: Callable[..., Outcome]) -> None:
    good, bad = call("echo", text="hello"), call("echo", text="bad")
    with pytest.raises(AssertionError, match=r"expected to succeed and ended as bad-text:\n\[echo\("):
        assert_ok(bad)
    with pytest.raises(AssertionError, match=r"expected to end as other and ended as bad-text:\n\[echo\("):
        assert_error(bad, "other")
    with pytest.raises(AssertionError, match=r"expected to end as bad-text and succeeded:\n\[echo\("):
        assert_error(good, "bad-text")
    with pytest.raises(AssertionError, match="expected to end as approval-pending and succeeded"):
        assert_held(good)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("plain words", "plain words"),
        ('{"a": [1]}', {"a": [1]}),
        ("[broken", "[broken"),
        ("17", 17),
        ("007", "007"),
        ("true", True),
    ],
)
def test_a_body_is_its_json_value_or_its_text(body: str, value: Any) -> None:
    assert assert_ok(f"[echo(status=success)]\n{body}\n[end:echo]") == value


def asked(url: str, **more: Any) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, **more), timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_a_service_answers_as_scripted_and_keeps_what_it_was_asked(service: Service) -> None:
    service.answers("/v1/find", {"found": [1]})
    service.answers("/v1/add", lambda request: {"got": request.json}, method="POST", status=201)
    service.answers("/v1/busy", "slow down", status=429, headers={"Retry-After": "3"})
    assert asked(f"{service.url}/v1/find?q=a%20b&empty=") == (200, b'{"found": [1]}')
    assert asked(f"{service.url}/v1/add", data=b"[1]", method="POST") == (201, b'{"got": [1]}')
    assert asked(f"{service.url}/v1/busy") == (429, b"slow down")
    assert asked(f"{service.url}/v1/none") == (
        404,
        b"no answer to GET /v1/none is scripted; there is one to GET /v1/find, POST /v1/add, GET /v1/busy\n",
    )
    first = service.requests[0]
    assert (first.method, first.path, first.query) == ("GET", "/v1/find", {"q": "a b", "empty": ""})
    assert [request.path for request in service.requests[1:]] == ["/v1/add", "/v1/busy", "/v1/none"]


def test_a_service_can_break_off_and_hang(service: Service) -> None:
    service.breaks_off("/gone")
    service.hangs("/stuck")
    with pytest.raises(ConnectionError):
        asked(f"{service.url}/gone")
    with pytest.raises(TimeoutError):
        urllib.request.urlopen(f"{service.url}/stuck", timeout=0.05)
    service.answers("/gone", "back")
    assert asked(f"{service.url}/gone") == (200, b"back")


MODULE = """
import datetime as d, time
from datetime import date, datetime, timezone
from time import time as seconds

def told():
    return [
        time.time(), time.time_ns() / 1e9, seconds(), datetime.now(timezone.utc).timestamp(),
        d.datetime.now(d.UTC).timestamp(), datetime.utcnow().replace(tzinfo=timezone.utc).timestamp(),
        datetime.now().timestamp(), d.datetime.today().timestamp(),
    ]

def days():
    return [date.today(), d.date.today(), datetime.now().date()]

def kinds():
    made = datetime(2020, 1, 2, 3)
    read = datetime.fromisoformat("2020-01-02")
    return type(made), isinstance(made, datetime), isinstance(made, date), read
"""


@pytest.mark.parametrize("imported", ["before", "after"])
def test_the_code_of_a_package_sees_the_clock_whenever_it_was_imported(
    imported: str, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib
    import time

    name = f"ticking_{imported}"
    (site / f"{name}.py").write_text(MODULE)
    module = importlib.import_module(name) if imported == "before" else None
    before = time.time()
    clock = Clock(datetime(2026, 5, 4, 12, tzinfo=UTC), [name])
    with ticking(clock, monkeypatch.setattr):
        module = module or importlib.import_module(name)
        assert set(module.told()) == {clock.time()}
        clock.move(hours=36)
        assert set(module.told()) == {datetime(2026, 5, 6, tzinfo=UTC).timestamp()}
        assert {day.isoformat() for day in module.days()} <= {"2026-05-05", "2026-05-06"}
        clock.set("2020-01-01T02:00:00+02:00")
        assert clock.now() == datetime(2020, 1, 1, tzinfo=UTC)
        assert time.time() >= before, "what the clock does not reach keeps the real time"
        assert module.kinds() == (datetime, True, True, datetime(2020, 1, 2))
    assert module.told()[0] >= before, "the clock is out of force"
    with pytest.raises(ValueError, match="has no time zone"):
        clock.set("2020-01-01T02:00:00")


def test_the_clock_fixture_reaches_this_very_test(clock: Clock) -> None:
    import time

    assert time.time() == clock.time() == datetime(2026, 5, 4, 12, tzinfo=UTC).timestamp()


PROJECT = """
[project]
name = "chalie-ability-echo"
version = "0.1"
[project.entry-points."chalie.abilities"]
echo = "chalie_ability_echo"
[project.entry-points."chalie.policies"]
careful = "echo_policy"
[tool.pytest.ini_options]
asyncio_default_fixture_loop_scope = "function"
"""
POLICY = """
from chalie import Opinion, hookimpl

@hookimpl
def review_call(call):
    return Opinion("allow", "it is only an echo")
"""
TEST = """
from chalie.testing import assert_ok

def test_the_tool_of_the_project(call, approver, host):
    assert assert_ok(call("echo", text="hello")) == {"text": "hello"}
    assert approver.asked == [], "the project's policy is enabled and trusted"
    assert not [problem for problem in host.problems() if problem.phase != "pin"]
"""


def test_a_project_that_is_not_installed_is_tested_as_it_lies_there(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "tests").mkdir()
    (project / "pyproject.toml").write_text(PROJECT)
    (project / "src" / "chalie_ability_echo.py").write_text(ECHO.files["chalie_ability_echo.py"])  # type: ignore[arg-type]
    (project / "src" / "echo_policy.py").write_text(POLICY)
    (project / "tests" / "test_echo.py").write_text(TEST)
    building.checked(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=project,
        env=building.clean_environment(tmp_path / "home"),
    )


def test_loading_the_plugin_imports_no_room_of_the_host() -> None:
    code = (
        "import sys, pytest\nbefore = set(sys.modules)\nimport chalie.testing.plugin\n"
        "import json; print(json.dumps(sorted(set(sys.modules) - before - {'json'})))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert [name for name in json.loads(found) if not name.startswith("json.")] == [
        "chalie",
        "chalie.testing",
        "chalie.testing.plugin",
    ]
