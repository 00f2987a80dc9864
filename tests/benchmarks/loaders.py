"""Bring a public set, as its repository has it, into the form `chalie evaluate` reads.

    python tests/benchmarks/loaders.py metatool MetaTool/dataset metatool.json
    python tests/benchmarks/loaders.py bfcl berkeley-function-call-leaderboard/bfcl_eval/data bfcl.json
    python tests/benchmarks/loaders.py seal Seal-Tools/Seal-Tools_Dataset seal.json

MetaTool is MIT, BFCL and Seal-Tools are Apache-2.0. Nothing is downloaded.
"""

from __future__ import annotations

import argparse
import collections
import csv
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Evaluation = dict[str, Any]
SEED, QUESTIONS, EXAMPLES = 7, 2_000, 8
QUESTION_FILES = ("dev.jsonl", "test_in_domain.jsonl")


def metatool(folder: Path) -> Evaluation:
    """Read `data/all_clean_data.csv` and `plugin_des.json`: 2,000 questions, examples out of the others.

    Questions that occur twice, or with two tools, are left out.
    """
    summaries: Mapping[str, str] = json.loads((folder / "plugin_des.json").read_text("utf-8"))
    tools_of = collections.defaultdict(set)
    with (folder / "data" / "all_clean_data.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            tools_of[row["Query"]].add(row["Tool"])
    pairs = [(query, min(tools)) for query, tools in tools_of.items() if len(tools) == 1]
    random.Random(SEED).shuffle(pairs)
    others = collections.defaultdict(list)
    for query, name in pairs[QUESTIONS:]:
        others[name].append(query)
    tools = []
    for number, (name, summary) in enumerate(sorted(summaries.items())):
        known = others[name]
        examples = random.Random(1_000 * SEED + number).sample(known, min(EXAMPLES, len(known)))
        tools.append({"name": name, "summary": summary, "examples": examples})
    return _checked(tools, pairs[:QUESTIONS])


def bfcl(folder: Path) -> Evaluation:
    """Read the live and the simple multiple-function files: every function of all of them competes."""
    versions: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    parameters: dict[str, list[dict[str, str]]] = {}
    asked = []
    for part in ("live_multiple", "live_simple", "multiple"):
        for row in _lines(folder / f"BFCL_v4_{part}.json"):
            for function in row["function"]:
                versions[function["name"]][function["description"]] += 1
                properties = function["parameters"].get("properties") or {}
                parameters.setdefault(function["name"], _parameters(properties))
            if part == "live_multiple":
                asked.append((row["id"], _last_said(row["question"])))
    answers = {
        row["id"]: next(iter(row["ground_truth"][0]))
        for row in _lines(folder / "possible_answer" / "BFCL_v4_live_multiple.json")
    }
    tools = [
        {"name": name, "summary": said.most_common(1)[0][0], "parameters": parameters[name]}
        for name, said in sorted(versions.items())
    ]
    return _checked(tools, [(said, answers[number]) for number, said in asked])


def _last_said(turns: Sequence[Sequence[Mapping[str, str]]]) -> str:
    return [message["content"] for message in turns[-1] if message["role"] == "user"][-1]


def seal(folder: Path) -> Evaluation:
    """Read `tool.jsonl` and the questions of the known fields; a question may expect several tools."""
    tools = []
    for field in _lines(folder / "tool.jsonl"):
        for entries in field.values():
            for entry in entries:
                tools.append(
                    {
                        "name": entry["api_name"],
                        "summary": entry["api_description"],
                        "parameters": _parameters(entry.get("parameters") or {}),
                    }
                )
    asked = []
    for name in QUESTION_FILES:
        for calls, question, *_ in _lines(folder / name):
            asked.append(
                (question, [call["api"] for call in (calls if isinstance(calls, list) else [calls])])
            )
    return _checked(tools, asked)


def _parameters(properties: Mapping[str, Any]) -> list[dict[str, str]]:
    return [
        {
            "name": name,
            "description": str(known.get("description") or "") if isinstance(known, Mapping) else "",
        }
        for name, known in properties.items()
    ]


def _lines(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)


def _checked(tools: list[dict[str, Any]], asked: Sequence[tuple[str, str | list[str]]]) -> Evaluation:
    """Return the evaluation, without questions whose tool is not among the tools."""
    known = {tool["name"] for tool in tools}
    queries = []
    for query, expected in asked:
        wanted = [expected] if isinstance(expected, str) else list(dict.fromkeys(expected))
        if known.issuperset(wanted):
            queries.append({"query": query, "expected": wanted})
    return {"tools": tools, "queries": queries}


LOADERS: dict[str, Callable[[Path], Evaluation]] = {"metatool": metatool, "bfcl": bfcl, "seal": seal}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("set", choices=sorted(LOADERS))
    options.add_argument("folder", type=Path)
    options.add_argument("out", type=Path)
    given = options.parse_args()
    found = LOADERS[given.set](given.folder)
    given.out.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", "utf-8")
    print(f"{given.out}: {len(found['tools'])} tools, {len(found['queries'])} questions")


if __name__ == "__main__":
    main()
