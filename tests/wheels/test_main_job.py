"""The main job in a fresh environment, from wheels: find, call, remember, read the record."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from chalie.cli.demo_service import serving
from chalie.cli.exits import FAILED, NOTHING, OK, REFUSED
from chalie.envelope import parse

from tests.support import wheels as building

from .conftest import Program

QUESTION = "is there a way to check the weather in another city"


@pytest.fixture
def service() -> Iterator[str]:
    with serving() as address:
        yield address


def test_weather_is_found_by_meaning_and_by_its_name(chalie: Program) -> None:
    done = chalie("find", QUESTION, "--explain", "--json")
    assert done.returncode == OK, done.stderr
    first = json.loads(done.stdout)["injected"][0]
    assert (first["name"], first["rung"]) == ("weather", "prose")
    (only,) = json.loads(chalie("find", "weather", "--explain", "--json").stdout)["injected"]
    assert (only["name"], only["rung"]) == ("weather", "exact")


def test_what_no_tool_does_is_not_found(chalie: Program) -> None:
    done = chalie("find", "qqqqzzzz", "--json")
    assert done.returncode == NOTHING
    assert json.loads(done.stdout)["injected"] == []


def test_a_person_at_a_terminal_approves_one_call_with_yes(chalie: Program, service: str) -> None:
    said = chalie.at_terminal("call", "weather", "location=Valletta", "--yes", CHALIE_WEATHER_URL=service)
    assert said.code == OK, said.screen
    frame = parse(said.screen.strip())
    assert (frame.name, frame.status) == ("weather", "success")
    body = json.loads(frame.body)
    assert body["location"].startswith("Valletta")
    assert (body["condition"], body["temperature_c"]) == ("Clear", 24.1)
    (row,) = json.loads(chalie("trail", "--event", "approval.decided", "--json").stdout)
    assert row["by"].startswith("terminal:")


def test_a_person_is_shown_the_arguments_and_answers_once_always_or_no(chalie: Program, service: str) -> None:
    words = ("call", "weather", "location=Valletta")
    env = {"CHALIE_WEATHER_URL": service}
    once = chalie.at_terminal(*words, answers=[("[o]nce", "o\n")], **env)
    assert once.code == OK, once.screen
    assert '"location": "Valletta"' in once.screen
    denied = chalie.at_terminal(*words, answers=[("[o]nce", "d\n")], **env)
    assert denied.code == REFUSED
    assert "code=declined" in denied.screen
    always = chalie.at_terminal(*words, answers=[("[o]nce", "a\n")], **env)
    assert always.code == OK, always.screen
    assert chalie(*words, **env).returncode == OK


def test_a_token_approves_where_there_is_no_terminal_and_nothing_else_does(
    chalie: Program, service: str
) -> None:
    words = ("call", "weather", "location=Oslo", "--yes")
    refused = chalie(*words, CHALIE_WEATHER_URL=service)
    assert refused.returncode == REFUSED
    assert "[not-authorised]" in refused.stderr
    token = chalie.at_terminal("approvers", "add", "phone").screen.splitlines()[0]
    done = chalie(*words, CHALIE_WEATHER_URL=service, CHALIE_APPROVER_TOKEN=token)
    assert done.returncode == OK, done.stdout + done.stderr
    assert "Oslo" in done.stdout
    wrong = chalie(*words, CHALIE_WEATHER_URL=service, CHALIE_APPROVER_TOKEN=f"{token}x")
    assert wrong.returncode == REFUSED


def test_without_a_network_the_answer_is_an_error_that_says_so(chalie: Program) -> None:
    said = chalie.at_terminal(
        "call", "weather", "location=Valletta", "--yes", CHALIE_WEATHER_URL="http://127.0.0.1:9"
    )
    assert said.code == FAILED
    frame = parse(said.screen.strip())
    assert frame.code == "unreachable"
    assert frame.body and frame.hint


def test_a_memory_outlives_the_process_that_stored_it(chalie: Program) -> None:
    stored = chalie("call", "memory", "action=store", "text=Ada flies to Valletta on Friday.")
    assert stored.returncode == OK, stored.stdout
    recalled = chalie("call", "memory", "action=recall", "query=when does Ada fly to Valletta", "--json")
    assert "Ada flies to Valletta on Friday." in json.dumps(json.loads(recalled.stdout)["body"])
    other = chalie("call", "memory", "action=recall", "query=Valletta", "--principal", "bob")
    assert "Ada flies" not in other.stdout


def test_playbooks_are_listed_found_and_shown_whole(chalie: Program) -> None:
    rows = json.loads(chalie("skills", "--json").stdout)
    assert len(rows) >= 12
    name = rows[0]["name"]
    done = chalie("find", name, "--skills", "--json")
    assert done.returncode == OK
    assert name in {row["name"] for row in json.loads(done.stdout)["skills"]}
    assert rows[0]["description"] in chalie("skills", name).stdout


def test_the_demo_does_what_it_says(chalie: Program) -> None:
    done = chalie("demo")
    assert done.returncode == OK, done.stdout + done.stderr
    for words in (
        "[weather(status=success",
        "[memory(status=success",
        "Ada is flying to Valletta on Friday.",
    ):
        assert words in done.stdout


SCRIPT = """
from chalie import Answer, AnswerKind, Host

class Yes:
    def ask(self, hold):
        return Answer(AnswerKind.ONCE, by="test")

steps = iter([
    ("find_tools", {"query": ["check the weather in another city"]}),
    ("weather", {"location": "Valletta"}),
    ("find_tools", {"query": ["remember a fact"]}),
    ("memory", {"action": "store", "text": "It is clear in Valletta."}),
    None,
])

def model(messages, tools):
    call = next(steps)
    assert call is None or call[0] in {tool["name"] for tool in tools}, (call, tools)
    return {"call": call, "text": "\\n".join(message["content"] for message in messages)}

with Host.open(approver=Yes()) as host:
    print(answer(host, model, "What is the weather in Valletta? Keep it in mind."))
"""


def test_the_loop_of_the_documentation_finds_activates_and_calls_both_tools(
    chalie: Program, service: str
) -> None:
    page = (building.ROOT / "docs" / "embedding.md").read_text(encoding="utf-8")
    (block,) = (text for text in page.split("```python\n") if text.startswith("def answer("))
    loop = block.split("```")[0]
    assert len(loop.strip().splitlines()) <= 10
    done = building.checked(
        [str(chalie.python), "-c", loop + SCRIPT], env={**chalie.env, "CHALIE_WEATHER_URL": service}
    )
    assert "[weather(status=success" in done.stdout
    assert "[memory(status=success" in done.stdout


def test_nothing_of_a_healthy_environment_is_to_be_repaired(chalie: Program) -> None:
    done = chalie("doctor", "--json")
    assert done.returncode == OK, done.stdout
    assert json.loads(done.stdout)["problems"] == []


def test_shell_completion_offers_the_commands(chalie: Program) -> None:
    done = chalie(_CHALIE_COMPLETE="bash_complete", COMP_WORDS="chalie do", COMP_CWORD="1")
    assert done.stdout.split() == ["plain,doctor"]
    assert "_CHALIE_COMPLETE=bash_complete" in chalie(_CHALIE_COMPLETE="bash_source").stdout
