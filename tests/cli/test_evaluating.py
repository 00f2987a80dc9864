"""`chalie evaluate` on files that are not what it takes: said in one line, with the place."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chalie.catalogue.descriptor import EntryPoint
from chalie.cli import exits
from chalie.discovery.embedding import model_folder

Chalie = Callable[..., Any]

TOOL = {"name": "weather", "summary": "Weather forecast of a city.", "examples": ["will it rain"]}
QUERY = {"query": "will it rain", "expected": ["weather"]}


@pytest.mark.parametrize(
    ("tools", "queries", "said"),
    [
        ([], [QUERY], "no list `tools`, or an empty one"),
        ([TOOL], [], "no list `queries`, or an empty one"),
        ([{"name": "weather"}], [QUERY], "tools[0] (weather) has no summary, a text"),
        ([TOOL | {"summary": 5}], [QUERY], "tools[0] (weather) has no summary, a text"),
        ([TOOL | {"examples": "will it rain"}], [QUERY], "examples is no list of texts"),
        ([TOOL | {"examples": 5}], [QUERY], "examples is no list of texts"),
        ([TOOL | {"parameters": 5}], [QUERY], "parameters is neither a JSON Schema nor a list"),
        ([TOOL], [QUERY | {"expected": "weather"}], "queries[0]: expected is no list of tools' names"),
        ([TOOL], [QUERY | {"expected": ["wether"]}], "expects wether, which no tool is called"),
        ([TOOL], ["will it rain"], "queries[0] has no query"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_with_its_place(
    chalie: Chalie, tmp_path: Path, tools: Any, queries: Any, said: str
) -> None:
    point = EntryPoint("chalie-model-static", "chalie.models", "static", "chalie_model_static")
    file = tmp_path / "questions.json"
    file.write_text(json.dumps({"tools": tools, "queries": queries}))
    done = chalie("evaluate", str(file), "--model", str(model_folder(None, [point])))
    assert done.code == exits.USAGE
    assert done.out == "" and done.err.startswith("chalie: ") and "[bad-file]" in done.err
    assert said in done.err


def test_questions_are_read_from_the_standard_input_and_from_a_pipe(home: Path) -> None:
    home.mkdir()
    text = json.dumps({"tools": [TOOL], "queries": [QUERY, {"query": "how are you", "expected": []}]})
    words = [
        sys.executable,
        "-m",
        "chalie.cli.main",
        "--home",
        str(home),
        "evaluate",
        "--json",
        "--confusions",
    ]
    for name in ("-", "/dev/stdin"):
        done = subprocess.run([*words, name], input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
        assert said["queries"] == 2 and said["hit@1"] == 1.0 and said["intruders"] == []


def test_confusions_say_when_there_are_none_and_what_was_answered_wrongly(
    chalie: Chalie, tmp_path: Path
) -> None:
    file = tmp_path / "questions.json"
    file.write_text(json.dumps({"tools": [TOOL], "queries": [QUERY]}))
    said = chalie("evaluate", str(file), "--confusions").out
    assert "no tool came first where another was expected" in said
    assert "nothing was answered that nothing fits" in said
    file.write_text(json.dumps({"tools": [TOOL], "queries": [{"query": "will it rain", "expected": []}]}))
    said = chalie("evaluate", str(file), "--confusions").out
    assert "will it rain" in said and "weather" in said and "hit@1" not in said


@pytest.mark.parametrize("ceiling", ["-1", "3", "far"])
def test_a_ceiling_that_is_no_distance_is_a_usage_error(chalie: Chalie, tmp_path: Path, ceiling: str) -> None:
    file = tmp_path / "questions.json"
    file.write_text("{}")
    assert chalie("evaluate", str(file), "--ceiling", ceiling).code == exits.USAGE
