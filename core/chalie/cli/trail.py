"""`chalie trail`: what was called, decided and changed, newest first."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from ..ledger.approvers import OWN_APPROVER
from . import exits, lookup
from .completion import channels, packages, tools
from .opening import opened
from .output import as_json, emit, note, plain, table

if TYPE_CHECKING:
    from ..ledger.trail import TrailRow

__all__ = ["command", "moment"]

_SPAN = re.compile(r"(\d+)([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def moment(text: str, now: datetime) -> datetime:
    """Return the moment a text names: a span before now (`30m`, `2h`, `7d`), or an ISO date in local time.

    Raises:
        ValueError: it is neither, or lies before all dates.
    """
    span = _SPAN.fullmatch(text)
    if span is None:
        return datetime.fromisoformat(text).astimezone(UTC)
    try:
        return now - timedelta(seconds=int(span[1]) * _SECONDS[span[2]])
    except OverflowError as error:
        raise ValueError(text) from error


def _moment(context: click.Context, option: click.Parameter, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return moment(text, datetime.now(UTC))
    except ValueError:
        said = f"{text!r} is neither a span (30m, 2h, 7d) nor a date (2026-01-31T09:00)"
        raise click.BadParameter(said, context, option) from None


@click.command("trail")
@click.option(
    "-n",
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    help="How many rows.",
)
@click.option("--event", help="Only this event; with a closing dot all of a kind (`call.`).")
@click.option("--tool", help="Only this tool, by its own name.", shell_complete=tools)
@click.option("--package", help="Only this package.", shell_complete=packages)
@click.option("--channel", help="Only this channel.", shell_complete=channels)
@click.option("--principal", help="Only on behalf of this principal.")
@click.option("--conversation", help="Only this conversation.")
@click.option("--code", help="Only outcomes with this error code.")
@click.option("--call", "call_id", help="Only the call with this id.")
@click.option(
    "--since", metavar="MOMENT", callback=_moment, help="Only from then on: 30m, 2h, 7d, or 2026-01-31T09:00."
)
@click.option(
    "--before",
    type=int,
    metavar="ID",
    help="Only rows with a smaller id, to turn the page.",
)
@as_json
@click.pass_context
def command(
    context: click.Context,
    limit: int,
    event: str | None,
    tool: str | None,
    package: str | None,
    channel: str | None,
    principal: str | None,
    conversation: str | None,
    code: str | None,
    call_id: str | None,
    since: datetime | None,
    before: int | None,
    json_: bool,
) -> int:
    """Show the trail, newest first. Secret arguments are masked. Exit code 1 if no row fits."""
    with opened(context, settle=False) as host:
        rows = host.ledger.trail.query(
            event=event,
            call_id=call_id,
            channel=channel,
            principal=principal,
            conversation=conversation,
            dist=package,
            name=tool,
            code=code,
            since=since,
            before=before,
            limit=limit,
        )
        if not rows and channel is not None:  # one that config.toml named once may still have rows
            lookup.channel(host, channel)
    if json_:
        emit([_facts(row) for row in rows])
    elif rows:
        table(("id", "time", "event", "what", "outcome", "detail"), [_line(row) for row in rows])
    else:
        note("the trail has no such row")
    return exits.OK if rows else exits.NOTHING


def _facts(row: TrailRow) -> dict[str, Any]:
    """Return a row for programs: what was recorded as JSON text is given as what it says."""
    facts: dict[str, Any] = plain(row)
    if row.arguments is not None:
        try:
            facts["arguments"] = json.loads(row.arguments)
        except ValueError:  # what was too long is kept as its size, hash and beginning
            pass
    return facts


def _line(row: TrailRow) -> list[object]:
    what = row.permission or row.name or row.dist or ""
    outcome = [word for word in (row.setting, row.status, row.code) if word]
    if row.duration_us is not None:
        outcome.append(f"{row.duration_us / 1000:.1f} ms")
    detail = " ".join(word for word in (row.arguments, _said(row), row.by and f"by {row.by}") if word)
    return [row.id, row.at, row.event, what, " ".join(outcome), detail]


def _said(row: TrailRow) -> str | None:
    """Return the detail; a token that a program makes for itself alone needs a word more."""
    if row.event in ("approver.added", "approver.removed") and row.detail == OWN_APPROVER:
        return (
            f"a token of {row.detail}, for itself alone; it ends with that process"
            if row.event == "approver.added"
            else f"the token of {row.detail} ended with it, as it should"
        )
    return row.detail
