"""Discovery, measured beside FastMCP's BM25 search in one run: quality, refusal, speed and build time.

    python tests/benchmarks/discovery.py                       the committed questions and samples
    python tests/benchmarks/discovery.py --set metatool.json   a whole set, as `chalie evaluate` reads it
    python tests/benchmarks/discovery.py --sizes 1000 10000 100000 --no-quality
    python tests/benchmarks/discovery.py --otherwise bfcl.json --no-quality --sizes

Times of searches are the thread's own, so that others on the machine disturb them less.
Every figure of ours goes through the product's own cascade. The peer sees the same tools, its examples at the
end of each description, and the same questions.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import resource
import statistics
import string
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from chalie import names

HERE = Path(__file__).resolve().parent
DATA = HERE / "data"
SEED = 7
SIZES = (1_000, 10_000)
QUESTIONS = 400

Row = tuple[str, ...]


def model() -> Path:
    """Return the folder of the packaged model."""
    import chalie_model_static

    return Path(chalie_model_static.__file__).parent / "model"


# quality


class Peer:
    """FastMCP's BM25 search over the tools of an evaluation file.

    Args:
        tools: as in the file.
    """

    def __init__(self, tools: Sequence[Mapping[str, Any]]) -> None:
        from fastmcp.server.transforms.search.bm25 import BM25SearchTransform
        from fastmcp.tools.base import Tool

        self._search = BM25SearchTransform(max_results=10)
        self._tools = [
            Tool(
                name=tool["name"],
                description="\n".join([tool["summary"], *(tool.get("examples") or ())]),
                parameters=_schema(tool),
            )
            for tool in tools
        ]

    def names(self, query: str) -> list[str]:
        """Return the names it finds, best first."""
        return [tool.name for tool in asyncio.run(self._search._search(self._tools, query))]

    async def timed(self, queries: Sequence[str]) -> list[float]:
        """Return the seconds each search takes, after one that builds the index."""
        await self._search._search(self._tools, queries[0])
        taken = []
        for query in queries:
            begun = time.thread_time()
            await self._search._search(self._tools, query)
            taken.append(time.thread_time() - begun)
        return taken


def _schema(tool: Mapping[str, Any]) -> dict[str, Any]:
    parameters = tool.get("parameters") or []
    if isinstance(parameters, Mapping):
        return dict(parameters)
    known = [p if isinstance(p, Mapping) else {"name": p} for p in parameters]
    return {
        "type": "object",
        "properties": {str(p["name"]): {"description": str(p.get("description") or "")} for p in known},
    }


def quality(name: str, path: Path, peer: bool) -> Row:
    """Return one line: our figures for a set, and the peer's."""
    from chalie.discovery.evaluate import evaluate

    report = evaluate(path, model())
    data = json.loads(path.read_text("utf-8"))
    ours = f"{report.hit_at[1]:.3f} / {report.hit_at[5]:.3f}"
    wrong = report.wrongly_answered
    refusal = "" if wrong is None else f"{report.answered:.3f} kept, {wrong:.3f} answered"
    theirs = _peer_quality(data) if peer else ""
    return (name, str(len(data["tools"])), str(report.queries), ours, theirs, refusal)


def _peer_quality(data: Mapping[str, Any]) -> str:
    other = Peer(data["tools"])
    ranks, wrong = [], []
    for row in data["queries"]:
        names = other.names(row["query"])
        if not row["expected"]:
            wrong.append(bool(names))
            continue
        expected = set(row["expected"])
        ranks.append(next((place for place, name in enumerate(names, 1) if name in expected), 99))
    hits = " / ".join(f"{sum(rank <= k for rank in ranks) / len(ranks):.3f}" for k in (1, 5))
    return hits + (f"; {sum(wrong) / len(wrong):.3f} answered" if wrong else "")


def sets(
    folder: Path, given: Sequence[Path], half: str, catalogues: Path | None
) -> Iterator[tuple[str, Path]]:
    """Yield (name, file) of every set: the committed ones, those named, and questions over `catalogues`."""
    small = json.loads((DATA / "small-talk.json").read_text("utf-8"))["queries"]
    for path in sorted(DATA.glob("paraphrases-*.json")) if catalogues else ():
        data = json.loads(path.read_text("utf-8"))
        asked = [row for row in [*data["queries"], *small] if row["half"] == half]
        tools = json.loads((catalogues / data["catalogue"]).read_text("utf-8"))["tools"]
        for tool in tools:
            tool.setdefault("summary", tool.get("description", ""))
        file = folder / path.name
        file.write_text(json.dumps({"tools": tools, "queries": asked}), "utf-8")
        yield f"{path.stem} ({half})", file
    for path in [*sorted(DATA.glob("sample-*.json")), *given]:
        yield path.stem, path
        data = json.loads(path.read_text("utf-8"))
        if any(tool.get("examples") for tool in data["tools"]):
            file = folder / f"{path.stem} without examples.json"
            bare = [{k: v for k, v in tool.items() if k != "examples"} for tool in data["tools"]]
            file.write_text(json.dumps({"tools": bare, "queries": data["queries"]}), "utf-8")
            yield file.stem, file


# written otherwise


def misspelt(name: str, chance: random.Random) -> str:
    """Return a name with one letter left out, put in, replaced, or changed with its neighbour."""
    at, kind, letter = (
        chance.randrange(len(name)),
        chance.choice("oirn"),
        chance.choice(string.ascii_lowercase),
    )
    if kind == "o" and len(name) > 1:
        return name[:at] + name[at + 1 :]
    if kind == "n" and at + 1 < len(name):
        return name[:at] + name[at + 1] + name[at] + name[at + 2 :]
    return name[:at] + letter + name[at + (kind == "r") :]


def shuffled(name: str, chance: random.Random) -> str:
    """Return the words of a name in another order."""
    words = list(names.segments(name))
    chance.shuffle(words)
    return " ".join(words)


def shortened(name: str, _: random.Random) -> str:
    """Return the longer half of a name's words, in their order."""
    words = names.segments(name)
    longest = sorted(range(len(words)), key=lambda at: -len(words[at]))[: -(-len(words) // 2)]
    return " ".join(words[at] for at in sorted(longest))


def mistyped(question: str, chance: random.Random) -> str:
    """Return a question with one of its longer words misspelt, inside the word."""
    words = [match.span() for match in re.finditer("[A-Za-z]{6,}", question)]
    if not words:
        return question
    start, end = chance.choice(words)
    return question[: start + 1] + misspelt(question[start + 1 : end], chance) + question[end:]


def otherwise(path: Path) -> Iterator[Row]:
    """Yield lines about names and questions not written as they are: shares found first, and in five."""
    data = json.loads(path.read_text("utf-8"))
    chance = random.Random(SEED)
    several = [tool["name"] for tool in data["tools"] if len(names.segments(tool["name"])) > 1]
    some = chance.sample(several, min(QUESTIONS, len(several)))
    for write in (misspelt, shuffled, shortened):
        asked = [{"query": write(name, chance), "expected": [name]} for name in some]
        yield _asked(f"name {write.__name__}", data["tools"], asked)
    questions = [row for row in data["queries"] if row["expected"]]
    yield _asked("question as it is", data["tools"], questions)
    typed = [{**row, "query": mistyped(row["query"], chance)} for row in questions]
    yield _asked("question mistyped", data["tools"], typed)


def _asked(what: str, tools: Sequence[Any], queries: Sequence[Any]) -> Row:
    from chalie.discovery.evaluate import evaluate

    with tempfile.TemporaryDirectory(prefix="chalie-bench-") as folder:
        file = Path(folder, "asked.json")
        file.write_text(json.dumps({"tools": tools, "queries": queries}), "utf-8")
        report = evaluate(file, model())
    return (what, str(len(queries)), f"{report.hit_at[1]:.3f} / {report.hit_at[5]:.3f}")


# speed


def generated(count: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Return `count` made-up tools and questions about some of them, the same every time.

    The words are those of the committed samples, so that vectors lie as those of real tools do.
    """
    seeds = [
        tool
        for path in sorted(DATA.glob("sample-*.json"))
        for tool in json.loads(path.read_text("utf-8"))["tools"]
    ]
    chance = random.Random(SEED)
    words = sorted(
        {
            word
            for tool in seeds
            for word in tool["summary"].lower().split()
            if word.isalpha() and len(word) > 3
        }
    )
    tools, asked = [], []
    for number in range(count):
        seed = chance.choice(seeds)
        first, second, third = chance.sample(words, 3)
        kept = [word for word in seed["summary"].split() if chance.random() < 0.7]
        tools.append(
            {
                "name": f"{first}_{second}_{number}",
                "summary": f"{' '.join(kept)} for {second} and {third}",
                "parameters": [first, third],
            }
        )
        if number % max(1, count // QUESTIONS) == 0:
            asked.append(f"I would like to {' '.join(kept[:12]).lower()} about {second}, please")
    chance.shuffle(asked)
    return tools, asked[:QUESTIONS]


def speed(count: int, peer: bool) -> list[Row]:
    """Return lines about one size of catalogue: build, search, recall, and the peer's search."""
    import numpy as np
    from chalie.catalogue.generations import Generations
    from chalie.catalogue.publishing import publish
    from chalie.discovery import builders, evaluate
    from chalie.discovery import cascade as cascade_module
    from chalie.discovery.cascade import Cascade
    from chalie.discovery.embedding import Embedder
    from chalie.discovery.model_files import tensors
    from chalie.discovery.prose_index import FOLDER

    tools, asked = generated(count)
    contents = evaluate._contents(evaluate._descriptors(Path("generated"), {"tools": tools}))
    embedder = Embedder.open(model())
    with tempfile.TemporaryDirectory(prefix="chalie-bench-") as home:
        begun = time.perf_counter()
        generation = publish(Generations(Path(home)), contents, builders(model()))
        built = time.perf_counter() - begun
        del contents
        cascade = Cascade(generation, lambda: embedder)
        ours = [_timed(lambda q=q: cascade.find([q], "ability", evaluate._visible)) for q in asked]
        # a running host has met common words before, though not these questions: the first half is for that
        ours = ours[len(ours) // 2 :]
        prose = cascade._prose["ability"]
        vectors = embedder.embed(asked)
        rows = tensors(generation.path / FOLDER / "ability.vectors")["vectors"]
        recalls = []
        for vector in vectors[:100]:
            exact = np.concatenate(
                [rows[at : at + 16_384].astype(np.float32) @ vector for at in range(0, len(rows), 16_384)]
            )
            nearest = set(exact.argsort()[-10:].tolist())
            looked_at = prose.nearest(vector, cascade_module._LOOKED_AT)[0]
            recalls.append(len(nearest & set(looked_at[:10].tolist())) / 10)
        size = sum(size for _, size in generation.manifest.files.values())
        generation.close()
    return [
        (f"{count:,} tools: build", f"{built:.2f} s", "", ""),
        (f"{count:,} tools: search p50 / p99", *_against(ours, Peer(tools) if peer else None, asked)),
        (f"{count:,} tools: recall@10 of the nearest", f"{statistics.mean(recalls):.3f}", "", ""),
        (f"{count:,} tools: on disk", f"{size / 2**20:.0f} MiB", "", ""),
        (
            f"{count:,} tools: this process at most",
            f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB",
            "",
            "",
        ),
    ]


def _against(ours: Sequence[float], other: Peer | None, asked: Sequence[str]) -> Row:
    mine = _quantiles(ours)
    if other is None:
        return (mine, "", "")
    theirs = asyncio.run(other.timed(asked[:40]))
    ratio = statistics.median(ours) / statistics.median(theirs)
    return (mine, _quantiles(theirs), f"{ratio:.3f}")


def _quantiles(seconds: Sequence[float]) -> str:
    ordered = sorted(seconds)
    return f"{1e3 * statistics.median(ordered):.2f} / {1e3 * ordered[len(ordered) * 99 // 100]:.2f} ms"


def _timed(what: Callable[[], object]) -> float:
    begun = time.thread_time()
    what()
    return time.thread_time() - begun


def show(head: Row, rows: Sequence[Row]) -> None:
    """Print an aligned table."""
    everything = [head, *rows]
    widths = [max(len(row[at]) for row in everything) for at in range(len(head))]
    for row in everything:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(line.rstrip(), flush=True)
    print()


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument(
        "--set", type=Path, action="append", default=[], help="a file `chalie evaluate` reads"
    )
    options.add_argument(
        "--catalogues", type=Path, help="folder of the published catalogues people's own questions are about"
    )
    options.add_argument(
        "--otherwise", type=Path, help="a set whose names and questions are asked, written otherwise"
    )
    options.add_argument("--half", choices=("tuning", "untouched", "fresh"), default="tuning")
    options.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    options.add_argument("--no-quality", action="store_true")
    options.add_argument("--no-peer", action="store_true")
    given = options.parse_args()
    peer = not given.no_peer
    if not given.no_quality:
        with tempfile.TemporaryDirectory(prefix="chalie-bench-") as folder:
            found = sets(Path(folder), given.set, given.half, given.catalogues)
            rows = [quality(name, path, peer) for name, path in found]
        head = ("set", "tools", "questions", "hit@1 / hit@5", "FastMCP BM25", "with the ceiling")
        show(head, rows)
    if given.otherwise:
        show((f"{given.otherwise.stem}", "asked", "hit@1 / hit@5"), list(otherwise(given.otherwise)))
    for count in given.sizes:
        # what the peer keeps in memory does not fit for the largest
        show(("generated catalogue", "ours", "FastMCP BM25", "ratio"), speed(count, peer and count <= 10_000))
    return 0


if __name__ == "__main__":
    sys.exit(main())
