"""The budgets, measured beside their peers in one run and printed as ratios: `nox -s bench`.

Each figure is the median of several runs, ours and the peer's in turn, so that a slow moment of the machine
meets both. Exit code 1 where a budget is missed or a probe failed, after everything has been measured.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

import probes  # noqa: E402
import serving  # noqa: E402

from tests.support import packages  # noqa: E402

SMALL, LARGE, EDITABLE = 10, 1000, 40
#: tools that are served beside a peer: no slower with the first, ten times as fast with the second
SERVED = (1000, 10_000)
#: how many bare durable commits a call may cost that is asked about, approved and run
HOLD_COMMITS = 10


@frozen
class Figure:
    """One line of the table.

    Attributes:
        what: what was measured.
        ours, peer: in `unit`; the peer's is None where the budget is a plain limit.
        unit: of both.
        beside: what the peer is.
        most: the ratio (or, without a peer, the figure) that the budget allows.
    """

    what: str
    ours: float
    unit: str
    most: float
    peer: float | None = None
    beside: str = "limit"

    @property
    def value(self) -> float:
        return self.ours if self.peer is None else self.ours / self.peer

    @property
    def kept(self) -> bool:
        return self.value <= self.most


class Bench:
    """Folders with many packages, and processes started over them.

    Args:
        folder: where everything is written.
        runs: how often each process is started.
    """

    def __init__(self, folder: Path, runs: int) -> None:
        self.folder = folder
        self.runs = runs
        self.sites = {count: self._site(count) for count in (SMALL, LARGE)}

    def _site(self, count: int) -> Path:
        site = self.folder / f"site-{count}"
        for number, package in enumerate(packages.many(count)):
            if count == LARGE and number < EDITABLE:
                packages.install_editable(site, self.folder / "projects" / package.dist, package)
            else:
                packages.install(site, package)
        return site

    def home(self, count: int) -> Path:
        return self.folder / f"home-{count}"

    def probe(self, name: str, count: int, *words: str, home: Path | None = None) -> dict[str, Any]:
        """Run one of the probes over a folder of packages and return what it printed."""
        done = self._run(
            [sys.executable, str(HERE / "probes.py"), name, *words], count, home or self.home(count)
        )
        found: dict[str, Any] = json.loads(done.splitlines()[-1])
        return found

    def seconds(self, command: Sequence[str], count: int) -> float:
        """Return how long a process takes from its start to its end."""
        begun = time.perf_counter()
        self._run(command, count, self.home(count))
        return time.perf_counter() - begun

    def _run(self, command: Sequence[str], count: int, home: Path) -> str:
        env = {
            **os.environ,
            "CHALIE_HOME": str(home),
            "LLM_USER_PATH": str(self.folder / "llm"),
            "PYTHONPATH": str(self._start(count)),
        }
        # A machine that keeps no compiled code would have every start pay for compiling the source again.
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} failed\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def _start(self, count: int) -> Path:
        """Return a folder that has Python treat ours as a site-packages: last on the path, `.pth` read."""
        folder = self.folder / f"start-{count}"
        folder.mkdir(exist_ok=True)
        code = f"import site\nsite.addsitedir({str(self.sites[count])!r})\n"
        (folder / "sitecustomize.py").write_text(code, encoding="utf-8")
        return folder

    def turns(self, *measures: Callable[[], float]) -> list[float]:
        """Return the median of each measure, taken in turn; the first round is for the caches."""
        rounds = [[measure() for measure in measures] for _ in range(self.runs + 1)][1:]
        return [statistics.median(values) for values in zip(*rounds, strict=True)]


def building(bench: Bench) -> Iterator[Figure]:
    bench.probe("build", SMALL)
    first = bench.probe("build", LARGE)
    yield Figure(f"first build over {LARGE} packages", first["seconds"], "s", 20)
    added = next(iter(packages.many(1, start=LARGE)))
    packages.install(bench.sites[LARGE], added)
    more = bench.probe("build", LARGE)
    yield Figure(f"adding one package to {LARGE}, to the published catalogue", more["seconds"], "s", 2)
    yield Figure("  vectors made for it", more["vectors"] - first["vectors"], "", 1)


def starting(bench: Bench) -> Iterator[Figure]:
    folder = Path(sys.executable).parent
    ours, peer = bench.turns(
        lambda: bench.seconds([str(folder / "chalie"), "--version"], SMALL),
        lambda: bench.seconds([str(folder / "llm"), "--version"], SMALL),
    )
    yield Figure("chalie --version", ours * 1000, "ms", 1 / 8, peer * 1000, "llm --version")
    ask = [sys.executable, str(HERE / "probes.py"), "ask"]
    large, small = bench.turns(lambda: bench.seconds(ask, LARGE), lambda: bench.seconds(ask, SMALL))
    yield Figure(
        f"cold process to a name answered, {LARGE} packages", large * 1000, "ms", 1.3, small * 1000,
        f"the same with {SMALL}",
    )  # fmt: skip
    opened, loaded = bench.turns(
        lambda: float(bench.probe("open", LARGE)["seconds"]),
        lambda: float(bench.probe("pluggy", LARGE)["seconds"]),
    )
    yield Figure(
        f"opening the host over {LARGE} packages", opened * 1000, "ms", 1 / 20, loaded * 1000,
        "pluggy importing them",
    )  # fmt: skip


def running(bench: Bench) -> Iterator[Figure]:
    calls = bench.probe("calls", SMALL)
    yield Figure(
        "turn.call, validated, gated, recorded: p50", calls["ours"] * 1e6, "µs", 1 / 4, calls["peer"] * 1e6,
        "FastMCP server.call_tool",
    )  # fmt: skip
    noticing = bench.probe("notice", LARGE)
    yield Figure(
        f"noticing at a turn over {LARGE} packages ({EDITABLE} editable): p50",
        noticing["ours"] * 1000, "ms", 2,
    )  # fmt: skip
    yield Figure(
        "  the same",
        noticing["ours"] * 1000,
        "ms",
        1,
        noticing["peer"] * 1000,
        "importlib.metadata",
    )
    large, small = bench.turns(
        lambda: float(bench.probe("memory", LARGE)["mib"]), lambda: float(bench.probe("memory", SMALL)["mib"])
    )
    yield Figure(f"memory with {LARGE} packages above that with {SMALL}", large - small, "MiB", 15)


def gating(bench: Bench) -> Iterator[Figure]:
    decided = bench.probe("decision", SMALL)
    yield Figure(
        "gate decision, 20 policies, 10,000 rows, on one CPU: p50", decided["silent"] * 1e6, "µs", 15,
    )  # fmt: skip
    yield Figure("  with an opinion of each policy", decided["speaking"] * 1e6, "µs", 50)
    yield Figure(
        "  its thread on any CPU", decided["spread"] * 1e6, "µs", 10, decided["handed"] * 1e6,
        "a bare hand-over to a thread and back",
    )  # fmt: skip
    held = bench.probe("held", SMALL, probes.NAME)
    yield Figure("hold opened, approved, run and recorded: p50", held["ours"] * 1000, "ms", 2)
    yield Figure(
        "  the same", held["ours"] * 1000, "ms", HOLD_COMMITS, held["peer"] * 1000, "one durable commit"
    )
    yield Figure("judging a command of bash: p50", bench.probe("judged", SMALL)["seconds"] * 1e6, "µs", 100)


def served(bench: Bench) -> Iterator[Figure]:
    yield from serving.figures(bench.folder, Figure, SERVED)


def measured(
    bench: Bench, parts: Sequence[Callable[[Bench], Iterator[Figure]]]
) -> tuple[list[Figure], list[str]]:
    """Return the figures of every part, and what failed, each at the cost of the rest of its part."""
    figures: list[Figure] = []
    failures: list[str] = []
    for part in parts:
        try:
            figures.extend(part(bench))
        except SystemExit as error:
            failures.append(f"{part.__name__}: {error}")
    return figures, failures


def table(figures: Sequence[Figure]) -> str:
    """Return the figures as an aligned table."""
    rows = [("figure", "ours", "peer", "ratio", "budget", "")]
    for each in figures:
        peer = "" if each.peer is None else f"{each.peer:.3g} {each.unit} ({each.beside})"
        ratio = "" if each.peer is None else f"{each.value:.3f}"
        budget = f"<= {each.most:.3g}" + (f" {each.unit}" if each.peer is None else "")
        rows.append(
            (each.what, f"{each.ours:.3g} {each.unit}", peer, ratio, budget, "" if each.kept else "MISSED")
        )
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=7, help="how often each process is started")
    options.add_argument("--json", action="store_true", help="print JSON instead of the table")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="chalie-bench-") as folder:
        bench = Bench(Path(folder), given.runs)
        figures, failures = measured(bench, (building, starting, running, gating, served))
    if given.json:
        rows = [
            {"what": each.what.strip(), "ours": each.ours, "peer": each.peer, "unit": each.unit,
             "beside": each.beside, "value": each.value, "most": each.most, "kept": each.kept}
            for each in figures
        ]  # fmt: skip
        print(json.dumps(rows, indent=2))
    else:
        print(table(figures))
    for failure in failures:
        print(f"FAILED: {failure}", file=sys.stderr)
    return 0 if not failures and all(each.kept for each in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
