"""What a new table or a new rule must not lose: samples of public sets, through the product's own cascade."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chalie.discovery.evaluate import evaluate

DATA = Path(__file__).resolve().parents[1] / "benchmarks" / "data"


@pytest.mark.parametrize(
    ("name", "first", "five"), [("metatool", 0.80, 0.95), ("bfcl", 0.75, 0.93), ("seal", 0.97, 0.98)]
)
def test_questions_about_a_sample_of_public_tools_find_them(
    model: Path, name: str, first: float, five: float
) -> None:
    report = evaluate(DATA / f"sample-{name}.json", model)
    assert report.hit_at[1] >= first
    assert report.hit_at[5] >= five


def test_most_small_talk_is_left_unanswered_and_questions_are_not(model: Path, tmp_path: Path) -> None:
    data = json.loads((DATA / "sample-metatool.json").read_text("utf-8"))
    talk = json.loads((DATA / "small-talk.json").read_text("utf-8"))["queries"]
    data["queries"] += [row for row in talk if row["half"] == "tuning"][::5]
    file = tmp_path / "asked.json"
    file.write_text(json.dumps(data), "utf-8")
    report = evaluate(file, model)
    assert report.answered >= 0.9 * report.hit_at[5]
    assert report.wrongly_answered is not None and report.wrongly_answered <= 0.25
