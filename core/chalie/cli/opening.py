"""Opening the host for a command: progress while packages are read, plugins' commands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ChalieError
from .output import note

if TYPE_CHECKING:
    import click
    from rich.progress import TaskID

    from ..calls import Approver
    from ..host import Host

__all__ = ["home_of", "opened", "plugin_commands", "progress", "working"]


def home_of(context: click.Context) -> Path | None:
    """Return what `--home` said, or None."""
    found = context.find_root().obj
    return found if isinstance(found, Path) else None


@contextmanager
def opened(
    context: click.Context, *, approver: Approver | None = None, settle: bool = True
) -> Iterator[Host]:
    """Open the host of the command line's home for the length of a command.

    Args:
        context: the command's context.
        approver: who may be asked.
        settle: whether to wait, with progress, until every changed package is read. A command that
            reads one row should not answer from the catalogue of the moment before an install.
    """
    from ..host import Host

    with Host.open(home_of(context), approver=approver) as host:
        if settle and host.upkeep.pending:
            with working("reading installed packages"):
                host.upkeep.refresh(None)
            if host.upkeep.pending:
                note(f"still being read: {', '.join(host.upkeep.pending)}")
        yield host


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show that something is going on, on a terminal's standard error only."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


@contextmanager
def progress() -> Iterator[Callable[[str, int, int], None]]:
    """Yield what a long build tells of itself (stage, done, total): a bar on a terminal, else nothing."""
    if not sys.stderr.isatty():
        yield lambda stage, done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def told(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield told


def plugin_commands(context: click.Context) -> Mapping[str, click.Command]:
    """Return the commands that enabled plugins bring; a home that cannot be opened brings none."""
    from ..host import Host

    try:
        with Host.open(home_of(context)) as host:
            return host.commands()
    except ChalieError as error:
        note(f"plugins bring no commands: {error.message}")
        return {}
