"""`chalie evaluate`: how well search finds the right tool for a file of questions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from .opening import opened
from .output import as_json, emit, pairs, table

__all__ = ["command"]

#: how many of the confusions are shown without --json.
_SHOWN = 20


@click.command("evaluate")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option(
    "--questions",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Take the questions from another file.",
)
@click.option("--model", metavar="FOLDER", help="The embedding model; default: the configured one.")
@click.option("--nearest", type=click.IntRange(min=1), metavar="N", help="How many nearest tools count.")
@click.option(
    "--ceiling", type=click.FloatRange(0, 2), metavar="DISTANCE", help="The distance nothing may exceed."
)
@click.option(
    "--confusions",
    is_flag=True,
    help="Add which tool came first where another was expected, and what was answered though nothing fits.",
)
@as_json
@click.pass_context
def command(
    context: click.Context,
    file: Path,
    questions: Path | None,
    model: str | None,
    nearest: int | None,
    ceiling: float | None,
    confusions: bool,
    json_: bool,
) -> int:
    """Build a catalogue from FILE in a temporary home, ask its questions through the real search, and report.

    FILE, or - for the standard input, is a JSON object with `tools` (name, summary, and optionally examples
    and parameters) and `queries` (query, and the list of expected names; an empty one where nothing fits).
    Hits and ranks are measured with the ceiling off, the shares answered and the rungs with it on.
    """
    from ..discovery.embedding import model_folder
    from ..discovery.evaluate import evaluate

    with opened(context, settle=False) as host:
        options = host.config.discovery
        folder = model_folder(model or options.model, host.snapshot.entry_points("chalie.models"))
    with _asked() as progress:
        report = evaluate(
            file,
            folder,
            questions=questions,
            nearest=nearest or options.nearest,
            ceiling=options.ceiling if ceiling is None else ceiling,
            progress=progress,
        )
    rows = [{"expected": row.expected, "got": row.got, "count": row.count} for row in report.confusions]
    wrong = [{"query": row.query, "got": row.got, "distance": row.distance} for row in report.intruders]
    if json_:
        emit(report.as_json() | ({"confusions": rows, "intruders": wrong} if confusions else {}))
        return 0
    pairs(
        (name, ", ".join(f"{rung} {count}" for rung, count in value.items()) if name == "rungs" else value)
        for name, value in report.as_json().items()
    )
    if confusions:
        _show(("expected", "came first", "times"), rows, "no tool came first where another was expected")
        _show(("nothing fits", "answered by", "distance"), wrong, "nothing was answered that nothing fits")
    return 0


def _show(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], none: str) -> None:
    click.echo()
    if rows:
        table(columns, [list(row.values()) for row in rows[:_SHOWN]])
    else:
        click.echo(none)


@contextmanager
def _asked() -> Iterator[Callable[[int, int], None] | None]:
    """Yield what the evaluation tells of itself: a bar on a terminal, else nothing."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task("asking", total=None)
        yield lambda done, total: bars.update(bar, completed=done, total=total)
