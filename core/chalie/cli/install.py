"""`chalie install`: pip or uv, then a fresh process that reads and enables what came."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from . import installer
from .opening import home_of
from .output import note

__all__ = ["command", "in_fresh_process"]


@click.command("install")
@click.argument("requirements", nargs=-1, metavar="NAME...")
@click.option("-e", "--editable", multiple=True, metavar="FOLDER", help="Install a project folder in place.")
@click.option("-U", "--upgrade", is_flag=True, help="Upgrade to the newest version that fits.")
@click.option("--pre", is_flag=True, help="Take pre-releases too.")
@click.option("--no-deps", is_flag=True, help="Install no dependencies.")
@click.option("--no-index", is_flag=True, help="Ask no package index.")
@click.option("--index-url", metavar="URL", help="The package index to ask.")
@click.option("-f", "--find-links", multiple=True, metavar="PLACE", help="A folder or page with packages.")
@click.option("-v", "--verbose", is_flag=True, help="Show all that pip or uv says.")
@click.pass_context
def command(
    context: click.Context,
    requirements: tuple[str, ...],
    editable: tuple[str, ...],
    upgrade: bool,
    pre: bool,
    no_deps: bool,
    no_index: bool,
    index_url: str | None,
    find_links: tuple[str, ...],
    verbose: bool,
) -> int:
    """Install packages into this Python, enable each NAME and read its tools.

    NAME is whatever pip takes: a name with or without a version, a wheel, a folder, a URL. The work is done
    by `python -m pip`, else by `uv pip`. Exit code 6 if that fails, or if what it installed cannot be read.
    """
    if not requirements and not editable:
        raise click.UsageError("nothing to install; name a package, a wheel or a folder")
    token = _token(context)
    words = [flag for flag, on in (("--upgrade", upgrade), ("--no-deps", no_deps)) if on]
    words += _more(pre=pre, no_index=no_index, index_url=index_url, find_links=find_links)
    for folder in editable:
        words += ["--editable", folder]
    installer.run("install", [*words, *requirements], verbose=verbose)
    names = {each: installer.distribution_of(each) for each in (*requirements, *editable)}
    for each, name in names.items():
        if name is None:
            note(f"{each} names no distribution, so nothing of it was enabled; see `chalie list`")
    known = [name for name in names.values() if name]
    return in_fresh_process(context, ["enable", "--installed", *known] if known else ["index"], token)


def _more(*, pre: bool, no_index: bool, index_url: str | None, find_links: Sequence[str]) -> list[str]:
    """Return the options that pip and uv spell differently, or that take a value."""
    words = ["--no-index"] if no_index else []
    if pre:
        import importlib.util

        words += ["--pre"] if importlib.util.find_spec("pip") else ["--prerelease", "allow"]
    if index_url:
        words += ["--index-url", index_url]
    for place in find_links:
        words += ["--find-links", place]
    return words


def _token(context: click.Context) -> str | None:
    """Return the approver token, taken out of the environment before pip runs anybody's build script."""
    from ..config import Config

    return Config.load(home_of(context)).approver_token


def in_fresh_process(context: click.Context, words: Sequence[str], token: str | None) -> int:
    """Run another command in a new interpreter and return its exit code.

    This one still has the import path, and perhaps the very modules, of the moment before the install.
    """
    home: Path | None = home_of(context)
    command = [sys.executable, "-P", "-m", "chalie.cli.main"]
    command += ["--home", str(home)] if home else []
    environment = dict(os.environ)
    if token is not None:
        environment["CHALIE_APPROVER_TOKEN"] = token
    sys.stdout.flush()
    return subprocess.run([*command, *words], env=environment, check=False).returncode
