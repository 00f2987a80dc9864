"""`chalie new`: a package to begin with, that installs and passes its own tests as it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import click

from .output import note

__all__ = ["command"]

_NEXT = (
    "  python -m pip install --upgrade pip",  # --group takes 25.1, which fresh environments do not have yet
    "  python -m pip install --editable . --group dev",
    "  pytest",
    "  chalie install --editable .",
)


@click.command("new")
@click.argument("kind", type=click.Choice(["ability", "policy", "skill"]), metavar="ability|policy|skill")
@click.argument("name")
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    metavar="FOLDER",
    help="The folder that gets the package's folder. Default: this one.",
)
@click.option("--author", metavar="NAME", help="Whom its metadata names. Default: git's user.name.")
def command(kind: str, name: str, into: Path, author: str | None) -> None:
    """Make a new package NAME in a folder of its own: code, tests, checks and a workflow that publishes it.

    NAME is words joined by - or _, as in dice-roll. The package is made from one of Chalie's own, works as it
    is, and is yours to change. A folder that is there already is left alone.
    """
    from ..authoring.new import make

    made = make(kind, name, into=into, author=author or _author())
    click.echo(f"{made.folder}")
    for file in made.files:
        click.echo(f"  {file}")
    for line in ("next:", f"  cd {made.folder}", *_NEXT):
        note(line)


def _author() -> str:
    """Return what git knows of the person, else the account's own name."""
    from ..gate.authority import login

    try:
        done = subprocess.run(
            ["git", "config", "--get", "user.name"], capture_output=True, text=True, check=False, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return login()
    said = " ".join(done.stdout.split())
    return said if said and said.isprintable() else login()
