"""When what a person allows ends: `--for MINUTES` and `--until TIME`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import click

from ..gate.moments import moment

__all__ = ["end_of", "ending"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


def ending(what: str) -> Callable[[_Command], _Command]:
    """Give a command the options `--for` and `--until`.

    Args:
        what: what the command does where one is given, for its help.
    """

    def options(command: _Command) -> _Command:
        until = click.option(
            "--until", metavar="TIME", help="The same until a time: 18:30, or '2030-01-31 18:30'."
        )
        minutes = click.option(
            "--for", "minutes", type=click.IntRange(min=1), metavar="MINUTES", help=f"{what} for so long."
        )
        return minutes(until(command))

    return options


def end_of(minutes: int | None, until: str | None) -> datetime | None:
    """Return the moment that is meant, or None where none was given.

    Raises:
        click.UsageError: both were given, or the time cannot be read or is over.
    """
    if minutes is not None and until is not None:
        raise click.UsageError("--for and --until exclude each other")
    now = datetime.now(UTC)
    try:
        if until is not None:
            return moment(until, now)
        return None if minutes is None else now + timedelta(minutes=minutes)
    except (ValueError, OverflowError) as error:
        raise click.UsageError(f"--{'until' if until else 'for'}: {error}") from error
