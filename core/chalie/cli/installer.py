"""pip or uv: whichever this Python has, started as a process of its own."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from . import exits

__all__ = ["InstallerFailed", "distribution_of", "run"]


class InstallerFailed(click.ClickException):
    """pip or uv failed, or neither is there; said in one line."""

    exit_code = exits.INSTALLER


def run(verb: str, words: Sequence[str], *, verbose: bool = False) -> None:
    """Run `python -m pip VERB WORDS`, else `uv pip VERB --python THIS WORDS`, output on standard error.

    Args:
        verb: `install` or `uninstall`.
        words: options and requirements, handed on as they are.
        verbose: whether it says what it does, and not only what goes wrong.

    Raises:
        InstallerFailed: it exited with another code than 0, or there is neither pip nor uv.
    """
    command = _command(verb, words, [] if verbose else ["--quiet"])
    sys.stderr.flush()
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno(), check=False)
    except OSError as error:
        raise InstallerFailed(f"{command[0]} cannot be started: {error.strerror or error}") from error
    if done.returncode != 0:
        raise InstallerFailed(
            f"{shlex.join(command)} failed with exit code {done.returncode}; its output is above"
        )


def _command(verb: str, words: Sequence[str], quiet: Sequence[str] = ()) -> list[str]:
    if importlib.util.find_spec("pip") is not None:
        silent = ["--disable-pip-version-check", *(["--yes"] if verb == "uninstall" else ["--no-input"])]
        return [sys.executable, "-m", "pip", verb, *quiet, *silent, *words]
    uv = shutil.which("uv") or _beside("uv")
    if uv is not None:
        return [uv, "pip", verb, *quiet, "--python", sys.executable, *words]
    line = shlex.join(["uv", "pip", verb, "--python", sys.executable, *words])
    raise InstallerFailed(f"this Python has neither pip nor uv; type, where uv is installed: {line}")


def _beside(program: str) -> str | None:
    """Return a program next to this interpreter; an environment not activated has it off the PATH."""
    path = Path(sys.executable).parent / program
    return str(path) if path.exists() else None


def distribution_of(requirement: str) -> str | None:
    """Return the normalised distribution name that a requirement stands for, or None.

    Args:
        requirement: `name[extra]>=1`, `name @ URL`, a wheel or source archive, or a project folder.
    """
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import (
        InvalidSdistFilename,
        InvalidWheelFilename,
        canonicalize_name,
        parse_sdist_filename,
        parse_wheel_filename,
    )

    file = requirement.partition("#")[0].rstrip("/").rpartition("/")[2]
    try:
        if file.endswith(".whl"):
            return str(parse_wheel_filename(file)[0])
        if file.endswith((".tar.gz", ".zip")):
            return str(parse_sdist_filename(file)[0])
        # as pip tells a folder from a name: by a separator or a leading dot, never by what lies around here
        if os.sep in requirement or requirement.startswith("."):
            folder = Path(requirement.partition("[")[0])
            if folder.is_dir():
                return _project_name(folder)
        return str(canonicalize_name(Requirement(requirement).name))
    except (InvalidRequirement, InvalidWheelFilename, InvalidSdistFilename):
        return None


def _project_name(folder: Path) -> str | None:
    import tomllib

    from packaging.utils import canonicalize_name

    try:
        name = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return str(canonicalize_name(name)) if isinstance(name, str) else None
