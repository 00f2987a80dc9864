from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from chalie.discovery.evaluate import Confusion, QuestionsRefused, evaluate

TOOLS = [
    {"name": "get_weather", "summary": "Weather forecast of a city.", "examples": ["will it rain tomorrow"]},
    {"name": "Mail.send", "summary": "Send an email to somebody.", "parameters": [{"name": "recipient"}]},
    {"name": "play/music", "summary": "Play a song.", "parameters": ["title"]},
    {"name": "currency", "description": "Exchange rates.", "parameters": {"properties": {"from": {}}}},
]
QUERIES = [
    {"query": "is rain expected in Rome tomorrow", "expected": ["get_weather"]},
    {"query": "write an email to my boss", "expected": ["Mail.send"]},
    {"query": "put on a song by the band and mail it to Tom", "expected": ["play/music", "Mail.send"]},
    {"query": "how are you", "expected": []},
    {"query": "thanks a lot", "expected": []},
]
KEYS = [
    "queries",
    "hit@1",
    "hit@3",
    "hit@5",
    "mrr",
    "recall@5",
    "answered",
    "wrongly_answered",
    "rungs",
    "p50_ms",
    "p99_ms",
    "build_s",
    "index_bytes",
]


def written(folder: Path, tools: Any = TOOLS, queries: Any = QUERIES) -> Path:
    path = folder / "set.json"
    path.write_text(json.dumps({"source": "made up", "tools": tools, "queries": queries}))
    return path


def test_a_report_has_the_promised_keys_in_order(tmp_path: Path, model: Path) -> None:
    report = evaluate(written(tmp_path), model).as_json()
    assert list(report) == KEYS
    assert report["queries"] == 5 and report["hit@1"] == report["hit@5"] == report["mrr"] == 1.0
    assert report["recall@5"] == 1.0 and report["answered"] == 1.0 and report["wrongly_answered"] == 0.0
    assert report["rungs"] == {"exact": 0, "name": 0, "prose": 3, "none": 2}
    assert report["index_bytes"] > 0 and 0 < report["p50_ms"] <= report["p99_ms"]


def test_ranks_are_measured_with_the_ceiling_off_and_answers_with_it_on(tmp_path: Path, model: Path) -> None:
    report = evaluate(written(tmp_path), model, ceiling=0.0)
    assert report.hit_at[1] == 1.0 and report.answered == 0.0 and report.wrongly_answered == 0.0
    report = evaluate(written(tmp_path), model, ceiling=math.inf)
    assert report.answered == 1.0 and report.wrongly_answered == 1.0


def test_confusions_name_who_came_first_instead(tmp_path: Path, model: Path) -> None:
    queries = [{"query": "will it rain tomorrow in the city", "expected": ["currency"]}] * 2
    report = evaluate(written(tmp_path, queries=queries), model)
    assert report.confusions == (Confusion("currency", "get_weather", 2),)
    assert report.hit_at[1] == 0.0 and report.wrongly_answered is None


def test_twins_in_normal_form_are_kept_apart(tmp_path: Path, model: Path) -> None:
    tools = [{"name": "get_user", "summary": "A"}, {"name": "getUser", "summary": "B"}]
    queries = [{"query": "getUser", "expected": ["getUser"]}, {"query": "get_user", "expected": ["get_user"]}]
    assert evaluate(written(tmp_path, tools, queries), model).hit_at[1] == 1.0


def test_two_tools_of_one_name_stand_in_two_packages(tmp_path: Path, model: Path) -> None:
    tools = [{"name": "run", "summary": "Start a program."}, {"name": "run", "summary": "Jog in the park."}]
    queries = [{"query": "go jogging outside in the park", "expected": ["run"]}]
    assert evaluate(written(tmp_path, tools, queries), model).hit_at[1] == 1.0


def test_questions_can_come_from_another_file(tmp_path: Path, model: Path) -> None:
    other = tmp_path / "questions.json"
    other.write_text(json.dumps({"queries": QUERIES[:1]}))
    assert evaluate(written(tmp_path), model, questions=other).queries == 1


def test_progress_is_told(tmp_path: Path, model: Path) -> None:
    told: list[tuple[int, int]] = []
    evaluate(written(tmp_path), model, progress=lambda done, total: told.append((done, total)))
    assert told == [(number, 5) for number in range(1, 6)]


@pytest.mark.parametrize(
    ("tools", "queries", "what"),
    [
        (None, [], "no list `tools`"),
        ([], [], "no list `tools`"),
        ([{"summary": "x"}], [], r"tools\[0\] has no name"),
        (TOOLS, None, "no list `queries`"),
        (TOOLS, ["x"], r"queries\[0\] has no query"),
        (TOOLS, [{"query": "x", "expected": ["nobody"]}], "expects nobody, which no tool is called"),
        (TOOLS, [{"query": "x", "expcted": ["currency"]}], "an empty one says that nothing fits"),
        (TOOLS, [{"query": "x", "expected": None}], "an empty one says that nothing fits"),
        ([{**TOOLS[0], "parameters": [1]}], QUERIES, "parameters is neither"),
        ([{**TOOLS[0], "parameters": {"properties": {"q": 5}}}], QUERIES, "parameters is neither"),
        ([{**TOOLS[0], "parameters": {"properties": []}}], QUERIES, "parameters is neither"),
    ],
)
def test_a_file_of_another_form_is_refused_with_the_place(
    tmp_path: Path, model: Path, tools: Any, queries: Any, what: str
) -> None:
    with pytest.raises(QuestionsRefused, match=what):
        evaluate(written(tmp_path, tools, queries), model)


@pytest.mark.parametrize("text", ["", "[]", "{", "\x00", "[" * 100_000])
def test_a_file_that_is_no_json_object_is_refused(tmp_path: Path, model: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(QuestionsRefused, match=r"x\.json"):
        evaluate(path, model)


def test_without_answerable_questions_nothing_is_said_of_them(tmp_path: Path, model: Path) -> None:
    report = evaluate(written(tmp_path, queries=[QUERIES[-1]]), model)
    said = report.as_json()
    assert [said[key] for key in KEYS[1:7]] == [None] * 6
    assert said["wrongly_answered"] == 0.0
    said = evaluate(written(tmp_path, queries=QUERIES[:1]), model).as_json()
    assert said["wrongly_answered"] is None and said["hit@1"] == 1.0


def test_what_was_answered_though_nothing_fits_is_named(tmp_path: Path, model: Path) -> None:
    asked = [{"query": "weather forecast for a city", "expected": []}, *QUERIES]
    report = evaluate(written(tmp_path, queries=asked), model)
    (intruder,) = report.intruders
    assert (intruder.query, intruder.got) == ("weather forecast for a city", "get_weather")
    assert intruder.distance is not None and report.wrongly_answered == pytest.approx(1 / 3)
