"""How commands print: JSON for programs, tables for people, foreign text always escaped."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from ..gate.display import escaped

__all__ = ["as_json", "aside", "emit", "local", "note", "pairs", "plain", "table"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


def as_json(command: _Command) -> _Command:
    """Give a command the option `--json`."""
    option = click.option("--json", "json_", is_flag=True, help="Print JSON for programs.")
    return option(command)


def emit(value: Any) -> None:
    """Print a value as JSON, in the terminal's encoding where that can carry it."""
    text = json.dumps(value, ensure_ascii=False, indent=2, default=plain)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        text = json.dumps(value, indent=2, default=plain)
    click.echo(text)


def plain(value: Any) -> Any:
    """Return the JSON form of what commands hand out: values with fields, mappings, paths, times."""
    import attrs

    if attrs.has(type(value)):
        return {field.name: getattr(value, field.name) for field in attrs.fields(type(value))}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "keys"):
        return {key: value[key] for key in value.keys()}  # noqa: SIM118  (sqlite3.Row iterates over values)
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str | bytes) else str(value)


def local(at: datetime) -> str:
    """Return a moment as a person reads it: local time, with the zone's name. In JSON it is ISO, in UTC."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z").rstrip()


@contextlib.contextmanager
def aside() -> Iterator[None]:
    """Send what others print (tools, plugins, what they start) to standard error while this is open.

    A command's answer is all there is on standard output, so that `--json` is JSON whatever a tool prints.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        kept = os.dup(1)
        os.dup2(2, 1)
    except OSError:  # one of them is closed: there is nothing to keep apart
        with contextlib.redirect_stdout(sys.stderr):
            yield
        return
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 1)
        os.close(kept)


def note(text: str) -> None:
    """Print a line for people beside the output, on standard error."""
    click.echo(escaped(text), err=True)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows: a table on a terminal, else aligned text that a pipe can cut and search."""
    cells = [[_cell(value) for value in row] for row in rows]
    if sys.stdout.isatty():
        _rich_table(columns, cells)
        return
    widths = [max(len(row[at]) for row in [list(columns), *cells]) for at in range(len(columns))]
    for row in [[column.upper() for column in columns], *cells]:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def pairs(facts: Iterable[tuple[str, object]]) -> None:
    """Print `label  value` lines; lines of a longer value stay under each other."""
    shown_facts = [(label, _cell(value)) for label, value in facts if value not in (None, "", (), [])]
    width = max((len(label) for label, _ in shown_facts), default=0)
    for label, value in shown_facts:
        click.echo(f"{click.style(label.ljust(width), bold=True)}  {value}")


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return local(value)
    if isinstance(value, list | tuple):
        return ", ".join(_cell(item) for item in value)
    return escaped(str(value))


def _rich_table(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    # a terminal is narrow: what says nothing in any row takes no room from the others
    told = [at for at in range(len(columns)) if not cells or any(row[at] for row in cells)]
    for at in told:
        grid.add_column(columns[at], overflow="fold")
    for row in cells:
        grid.add_row(*(Text(row[at]) for at in told))
    Console(highlight=False).print(grid)
