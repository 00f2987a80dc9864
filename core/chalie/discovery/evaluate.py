"""Measure how well a catalogue's tools are found: its questions, asked through the product's own cascade."""

from __future__ import annotations

import json
import math
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from ..calls import SideEffect, Sight
from ..catalogue.descriptor import Descriptor
from ..catalogue.generations import Generation, Generations
from ..catalogue.publishing import publish
from ..catalogue.tables import Contents, DistributionRow
from ..errors import ChalieError
from . import builders
from .cascade import Cascade
from .embedding import Embedder
from .found import Found

__all__ = ["Confusion", "Intruder", "Question", "QuestionsRefused", "Report", "evaluate"]

_RANKED: Final = 10
_DIST: Final = "evaluated"


class QuestionsRefused(ChalieError):
    """A file of tools and questions is not of the form that is read."""

    code = "bad-file"


@frozen
class Question:
    """One question of an evaluation file.

    Attributes:
        query: what is asked.
        expected: names of the tools that answer it; empty where nothing does.
    """

    query: str
    expected: tuple[str, ...]


@frozen
class Confusion:
    """How often a tool came first where another one was expected."""

    expected: str
    got: str
    count: int


@frozen
class Intruder:
    """A tool that answered a question which nothing answers, and how far it lay."""

    query: str
    got: str
    distance: float | None


@frozen
class Report:
    """What an evaluation measured.

    Attributes:
        queries: how many questions were asked, with an answer or without.
        answerable: how many of them expect a tool; without any, what is measured of those is 0.
        hit_at: 1, 3, 5 -> share of answerable questions with an expected tool among so many first,
        ceiling off.
        mrr: mean reciprocal rank of the first expected tool within ten, ceiling off.
        recall_at_5: share of all expected tools found among the first five, ceiling off.
        answered: share of answerable questions that keep an expected tool among the first five, ceiling on.
        wrongly_answered: share of unanswerable questions that get anything, ceiling on; None without any.
        rungs: rung (or `none`) -> how many questions it answered, ceiling on.
        p50_ms, p99_ms: milliseconds of one search, ceiling on, everything open.
        build_s: seconds to build the generation from nothing.
        index_bytes: size of its name and prose index.
        confusions: who came first instead, the most frequent first.
        intruders: which unanswerable questions were answered, and by what first.
    """

    queries: int
    answerable: int
    hit_at: Mapping[int, float]
    mrr: float
    recall_at_5: float
    answered: float
    wrongly_answered: float | None
    rungs: Mapping[str, int]
    p50_ms: float
    p99_ms: float
    build_s: float
    index_bytes: int
    confusions: tuple[Confusion, ...] = ()
    intruders: tuple[Intruder, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the report under the keys that `chalie evaluate --json` prints; None: nothing to measure."""
        shares = {f"hit@{place}": share for place, share in self.hit_at.items()}
        shares |= {"mrr": self.mrr, "recall@5": self.recall_at_5, "answered": self.answered}
        return {
            "queries": self.queries,
            **{key: round(share, 4) if self.answerable else None for key, share in shares.items()},
            "wrongly_answered": None if self.wrongly_answered is None else round(self.wrongly_answered, 4),
            "rungs": dict(self.rungs),
            "p50_ms": round(self.p50_ms, 3),
            "p99_ms": round(self.p99_ms, 3),
            "build_s": round(self.build_s, 3),
            "index_bytes": self.index_bytes,
        }


def evaluate(
    path: Path,
    model: Path,
    *,
    questions: Path | None = None,
    nearest: int = 5,
    ceiling: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Build a catalogue of the file's tools in a temporary home and ask every question.

    Args:
        path: a JSON object with `tools` (name, summary, and optionally examples, parameters, and what else is
            searched: actions, search_tooltip, discoverable) and `queries` (query, and the list of expected
            names; an empty one where nothing fits). `-` is the standard input.
        model: the embedding model's folder.
        questions: another file to take `queries` from.
        nearest: as the option of the same name.
        ceiling: instead of the model's own.
        progress: told how many questions of how many are done.

    Raises:
        QuestionsRefused: a file is not of that form.
        ConfigError: the model cannot be read.
    """
    data = _read(path)
    descriptors = _descriptors(path, data)
    asking = data if questions is None else _read(questions)
    asked = _questions(questions or path, asking, {item.name for item in descriptors})
    with tempfile.TemporaryDirectory(prefix="chalie-evaluate-") as home:
        started = time.perf_counter()
        generation = publish(Generations(Path(home)), _contents(descriptors), builders(model))
        seconds = time.perf_counter() - started
        try:
            return _ask(generation, Embedder.open(model), asked, nearest, ceiling, seconds, progress)
        finally:
            generation.close()


def _ask(
    generation: Generation,
    embedder: Embedder,
    asked: Sequence[Question],
    nearest: int,
    ceiling: float | None,
    build_s: float,
    progress: Callable[[int, int], None] | None,
) -> Report:
    ranked = Cascade(generation, lambda: embedder, nearest=max(nearest, _RANKED), ceiling=math.inf)
    bounded = Cascade(generation, lambda: embedder, nearest=nearest, ceiling=ceiling)
    tally = _Tally()
    bounded.find(["open every index once"], "ability", _visible)
    for number, question in enumerate(asked, 1):
        started = time.perf_counter()
        found = bounded.find([question.query], "ability", _visible)
        tally.times.append(time.perf_counter() - started)
        tally.count(question, ranked.find([question.query], "ability", _visible), found)
        if progress is not None:
            progress(number, len(asked))
    size = sum(
        size for name, (_, size) in generation.manifest.files.items() if name.startswith(("names/", "prose/"))
    )
    return tally.report(build_s, size)


def _visible(_: object) -> Sight:
    return Sight()


class _Tally:
    def __init__(self) -> None:
        self.times: list[float] = []
        self.ranks: list[int] = []
        self.recalls: list[float] = []
        self.kept: list[bool] = []
        self.unanswerable = 0
        self.intruders: list[Intruder] = []
        self.rungs: Counter[str] = Counter()
        self.confused: Counter[tuple[str, str]] = Counter()

    def count(self, question: Question, ranked: Found, bounded: Found) -> None:
        self.rungs[bounded.hits[0].rung if bounded.hits else "none"] += 1
        if not question.expected:
            self.unanswerable += 1
            self.intruders += [
                Intruder(question.query, hit.item.name, hit.distance) for hit in bounded.hits[:1]
            ]
            return
        expected = set(question.expected)
        order = [hit.item.name for hit in ranked.hits]
        self.ranks.append(next((place for place, name in enumerate(order, 1) if name in expected), 0))
        self.recalls.append(len(expected.intersection(order[:5])) / len(expected))
        self.kept.append(any(hit.item.name in expected for hit in bounded.hits[:5]))
        if order and order[0] not in expected:
            self.confused[question.expected[0], order[0]] += 1

    def report(self, build_s: float, index_bytes: int) -> Report:
        times = sorted(self.times)
        return Report(
            queries=len(times),
            answerable=len(self.ranks),
            hit_at={place: _mean(0 < rank <= place for rank in self.ranks) for place in (1, 3, 5)},
            mrr=_mean(1.0 / rank if 0 < rank <= _RANKED else 0.0 for rank in self.ranks),
            recall_at_5=_mean(self.recalls),
            answered=_mean(self.kept),
            wrongly_answered=len(self.intruders) / self.unanswerable if self.unanswerable else None,
            rungs={rung: self.rungs[rung] for rung in ("exact", "name", "prose", "none")},
            p50_ms=1e3 * times[len(times) // 2] if times else 0.0,
            p99_ms=1e3 * times[min(len(times) - 1, len(times) * 99 // 100)] if times else 0.0,
            build_s=build_s,
            index_bytes=index_bytes,
            confusions=tuple(Confusion(*pair, count) for pair, count in self.confused.most_common()),
            intruders=tuple(self.intruders),
        )


def _mean(values: Iterable[float]) -> float:
    some = list(values)
    return sum(some) / len(some) if some else 0.0


def _read(path: Path) -> Mapping[str, Any]:
    try:
        value = json.loads(sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise QuestionsRefused(f"{path} cannot be read as JSON: {error}") from None
    if not isinstance(value, Mapping):
        raise QuestionsRefused(f"{path} holds no JSON object, such as one with `tools` and `queries`")
    return value


def _descriptors(path: Path, data: Mapping[str, Any]) -> list[Descriptor]:
    tools = data.get("tools")
    if not isinstance(tools, list) or not tools:
        raise QuestionsRefused(f"{path} has no list `tools`, or an empty one")
    taken: Counter[str] = Counter()
    result = []
    for number, tool in enumerate(tools):
        name = tool.get("name") if isinstance(tool, Mapping) else None
        if not isinstance(name, str) or not name:
            raise QuestionsRefused(f"{path}: tools[{number}] has no name")
        _check_tool(f"{path}: tools[{number}] ({name})", tool)
        taken[name] += 1
        # a second tool of the same name stands in a package of its own, as it would when installed
        dist = _DIST if taken[name] == 1 else f"{_DIST}-{taken[name]}"
        result.append(_descriptor(dist, name, tool))
    return result


def _check_tool(whose: str, tool: Mapping[str, Any]) -> None:
    """Refuse a tool that would be read as something else than was written."""
    if not isinstance(tool.get("summary") or tool.get("description"), str):
        raise QuestionsRefused(f"{whose} has no summary, a text")
    if not _are_texts(tool.get("examples") or ()):
        raise QuestionsRefused(f"{whose}: examples is no list of texts")
    parameters = tool.get("parameters") or []
    if isinstance(parameters, list):
        named = (each.get("name") if isinstance(each, Mapping) else each for each in parameters)
        good = all(isinstance(name, str) and name for name in named)
    else:
        properties = parameters.get("properties", {}) if isinstance(parameters, Mapping) else None
        good = isinstance(properties, Mapping) and all(
            isinstance(each, Mapping | bool) for each in properties.values()
        )
    if not good:
        raise QuestionsRefused(f"{whose}: parameters is neither a JSON Schema nor a list of their names")


def _are_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)


def _descriptor(dist: str, name: str, tool: Mapping[str, Any]) -> Descriptor:
    parameters = tool.get("parameters") or []
    if not isinstance(parameters, Mapping):
        properties = {}
        for parameter in parameters:
            known = parameter if isinstance(parameter, Mapping) else {"name": parameter}
            properties[str(known.get("name", ""))] = {"description": str(known.get("description") or "")}
        parameters = {"type": "object", "properties": properties}
    return Descriptor(
        dist=dist,
        dist_version="0",
        target="",
        name=name,
        summary=str(tool.get("summary") or tool.get("description") or ""),
        examples=tuple(str(example) for example in tool.get("examples") or ()),
        search_tooltip=str(tool.get("search_tooltip") or tool.get("searchTooltip") or ""),
        parameters=parameters,
        namespace="",
        version="0",
        discoverable=bool(tool.get("discoverable", True)),
        # only their names are searched
        actions={str(action): SideEffect.WRITE for action in tool.get("actions") or ()},
    ).sealed()


def _questions(path: Path, data: Mapping[str, Any], known: set[str]) -> list[Question]:
    queries = data.get("queries")
    if not isinstance(queries, list) or not queries:
        raise QuestionsRefused(f"{path} has no list `queries`, or an empty one")
    result = []
    for number, row in enumerate(queries):
        if not isinstance(row, Mapping) or not isinstance(row.get("query"), str):
            raise QuestionsRefused(f"{path}: queries[{number}] has no query")
        if not _are_texts(row.get("expected")):
            said = "expected is no list of tools' names; an empty one says that nothing fits"
            raise QuestionsRefused(f"{path}: queries[{number}]: {said}")
        expected = tuple(row["expected"])
        missing = sorted(set(expected) - known)
        if missing:
            raise QuestionsRefused(
                f"{path}: queries[{number}] expects {', '.join(missing)}, which no tool is called"
            )
        result.append(Question(row["query"], expected))
    return result


def _contents(descriptors: Sequence[Descriptor]) -> Contents:
    dists = sorted({item.dist for item in descriptors})
    rows = tuple(DistributionRow(dist, "0", "", "", "", False, "ready") for dist in dists)
    return Contents(distributions=rows, abilities=tuple(descriptors))
