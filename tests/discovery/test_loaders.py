"""Public sets in the form their repositories have them, a few lines of each."""

from __future__ import annotations

import json
from pathlib import Path

from tests.benchmarks import loaders


def lines(path: Path, *rows: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def test_metatool_questions_with_two_tools_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "plugin_des.json").write_text('{"Rain": "Weather.", "Sums": "Arithmetic."}')
    (tmp_path / "data" / "all_clean_data.csv").write_text(
        'Query,Tool\n"Rain, or sun?",Rain\nadd 2,Sums\nadd 2,Sums\nboth,Rain\nboth,Sums\n'
    )
    found = loaders.metatool(tmp_path)
    assert {(row["query"], *row["expected"]) for row in found["queries"]} == {
        ("Rain, or sun?", "Rain"),
        ("add 2", "Sums"),
    }
    assert [tool["summary"] for tool in found["tools"]] == ["Weather.", "Arithmetic."]


def test_all_bfcl_functions_compete_for_the_last_thing_said(tmp_path: Path) -> None:
    def row(number: str, name: str, said: str) -> dict[str, object]:
        parameters = {"type": "dict", "properties": {"city": {"type": "string", "description": "where"}}}
        return {
            "id": number,
            "question": [[{"role": "system", "content": "x"}, {"role": "user", "content": said}]],
            "function": [{"name": name, "description": f"about {name}", "parameters": parameters}],
        }

    lines(tmp_path / "BFCL_v4_live_multiple.json", row("a", "f.one", "first"))
    lines(tmp_path / "BFCL_v4_live_simple.json", row("b", "two", "second"))
    lines(tmp_path / "BFCL_v4_multiple.json", row("c", "two", "third"))
    lines(
        tmp_path / "possible_answer" / "BFCL_v4_live_multiple.json",
        {"id": "a", "ground_truth": [{"f.one": {"city": ["Oslo"]}}]},
    )
    found = loaders.bfcl(tmp_path)
    assert [tool["name"] for tool in found["tools"]] == ["f.one", "two"]
    assert found["tools"][0]["parameters"] == [{"name": "city", "description": "where"}]
    assert found["queries"] == [{"query": "first", "expected": ["f.one"]}]


def test_a_seal_question_may_expect_several_tools(tmp_path: Path) -> None:
    api = {"api_name": "getX", "api_description": "Get X", "parameters": {"id": {"description": "which"}}}
    lines(tmp_path / "tool.jsonl", {"Field": [api, {**api, "api_name": "getY"}]})
    lines(tmp_path / "dev.jsonl", [{"api": "getX"}, "x please"], [[{"api": "getX"}, {"api": "getY"}], "both"])
    lines(tmp_path / "test_in_domain.jsonl", [{"api": "gone"}, "of an unknown tool"])
    found = loaders.seal(tmp_path)
    assert found["queries"] == [
        {"query": "x please", "expected": ["getX"]},
        {"query": "both", "expected": ["getX", "getY"]},
    ]
