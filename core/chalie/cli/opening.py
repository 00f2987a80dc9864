"""Opening the host for a command: progress while packages are read, plugins' commands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ChalieError, ConfigError
from ..gate.display import escaped
from .output import aside, note

if TYPE_CHECKING:
    import click

    from ..calls import Approver
    from ..host import Host

__all__ = ["built", "existing_home", "home_of", "opened", "plugin_commands", "working"]


def home_of(context: click.Context) -> Path | None:
    """Return what `--home` said, or None."""
    found = context.find_root().obj
    return found if isinstance(found, Path) else None


def existing_home(context: click.Context) -> Path | None:
    """Return what `--home` said, or None where it was left out: the default home is made where there is none.

    Raises:
        ConfigError: it names a folder that does not exist. Only installing makes one there: anything else
            would answer a mistyped word from an empty home.
    """
    home = home_of(context)
    if home is not None and not home.exists():
        raise ConfigError(
            f"there is no home at {home}",
            hint=f"correct --home, or make it: mkdir -p -m 700 {home} (chalie install makes one too)",
        )
    return home


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

    home = existing_home(context)
    with aside():  # an enabled plugin may print when it is imported
        host = Host.open(home, approver=approver)
    try:
        if settle and host.upkeep.building:
            with working("reading installed packages"):
                host.upkeep.refresh(None)
            if host.upkeep.pending:
                note(f"still being read: {', '.join(host.upkeep.pending)}")
        yield host
    finally:
        with aside():
            host.close()


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show that something is going on, on a terminal's standard error only."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


def built(
    context: click.Context, *, full: bool = False, rebuild: bool = False, finished: bool = False
) -> None:
    """Bring the catalogue up to what is installed, in this process, with a bar on a terminal.

    Args:
        context: the command's context.
        full: compare the bytes of every file.
        rebuild: read every package again.
        finished: the installer has run to its end, so that young files are no reason to wait.
    """
    from ..build import build
    from ..catalogue.footprint import QUIET_S
    from ..config import Config

    config = Config.load(home_of(context) if finished else existing_home(context))
    with _progress() as told:
        build(config, full=full, rebuild=rebuild, progress=told, quiet_s=0.0 if finished else QUIET_S)


@contextmanager
def _progress() -> Iterator[Callable[[int, int, Sequence[str]], None]]:
    """Yield what a build tells of itself: packages read, of how many, and the names of those being read."""
    if not sys.stderr.isatty():
        yield lambda done, total, reading: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task("looking at what is installed", total=None)

        def told(done: int, total: int, reading: Sequence[str]) -> None:
            what = f"reading {escaped(reading[0])}" if reading else "building the indexes"
            bars.update(bar, description=what, completed=done, total=total or None)

        yield told


def plugin_commands(context: click.Context) -> Mapping[str, click.Command]:
    """Return the commands that enabled plugins bring; a home that cannot be opened brings none."""
    from ..host import Host

    home = home_of(context) or context.find_root().params.get("home")
    if home is not None and not Path(home).exists():
        return {}
    try:
        with aside(), Host.open(home) as host:
            commands, refused = host.commands()
    except ChalieError as error:
        note(f"plugins bring no commands: {error.message}")
        return {}
    for line in refused:
        note(line)
    return commands
