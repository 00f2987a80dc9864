"""`chalie holds`: the calls that wait for a person, and what became of the others."""

from __future__ import annotations

import getpass
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from ..gate.display import arguments_lines, escaped, quoted
from . import exits
from .completion import holds as ids
from .opening import opened
from .output import as_json, emit, local, note, pairs, table

if TYPE_CHECKING:
    from ..ledger.hold import Hold

__all__ = ["command", "facts", "shown"]


@click.command("holds")
@click.argument("hold_id", required=False, metavar="[ID]", shell_complete=ids)
@click.option("--all", "ended", is_flag=True, help="Also those that were answered and have ended.")
@click.option("--principal", help="Only this principal's.")
@as_json
@click.pass_context
def command(
    context: click.Context, hold_id: str | None, ended: bool, principal: str | None, json_: bool
) -> int:
    """List the calls that wait for a person's answer, or show one with its exact arguments.

    Secret arguments are masked. `chalie approve ID` and `chalie decline ID` answer, from any terminal of the
    home's owner, also days later and after a restart. Exit code 1 if there is none.
    """
    with opened(context, settle=False) as host:
        if hold_id is not None:
            hold = host.holds.get(hold_id, principal=principal)
            if json_:
                emit(facts(hold))
            else:
                shown(hold)
            return exits.OK
        holds = host.holds.list(principal=principal, ended=ended)
    if json_:
        emit([facts(hold) for hold in holds])
    elif holds:
        own = {hold.principal for hold in holds} == {getpass.getuser()}
        whose = not own or not sys.stdout.isatty()
        columns = ("id", "state", "permission", "package", *(["principal"] if whose else []))
        columns += ("asked", "expires", "by")
        table(columns, [[_line(hold)[column] for column in columns] for hold in holds])
        if any(hold.ended_at is None for hold in holds):
            note("to answer: chalie approve ID, or chalie decline ID; chalie holds ID shows the arguments")
    else:
        note("nothing waits for an answer")
    return exits.OK if holds else exits.NOTHING


def _line(hold: Hold) -> dict[str, object]:
    return {
        "id": hold.id,
        "state": hold.state,
        "permission": hold.permission,
        "package": hold.dist,
        "principal": hold.principal,
        "asked": _day(hold.opened_at),
        "expires": _day(hold.expires_at) if hold.ended_at is None else "",
        "by": hold.decided_by,
    }


def shown(hold: Hold) -> None:
    """Print everything a person answers about, the arguments whole."""
    pairs(
        [
            ("hold", f"{hold.id}: {hold.state}"),
            ("tool", f"{hold.name} of {hold.dist}"),
            ("permission", f"{hold.permission} ({hold.effect})"),
            ("channel", hold.channel),
            ("principal", hold.principal),
            ("conversation", hold.conversation),
            ("asked", _local(hold.opened_at)),
            ("expires", _local(hold.expires_at) if hold.ended_at is None else None),
            ("because", "; ".join(hold.reasons)),
            ("answer", f"{hold.answer} by {hold.decided_by}" if hold.answer else None),
            ("code", hold.code),
            ("detail", hold.detail),
            ("call", hold.call_id),
        ]
    )
    if hold.model_says:
        click.echo(f"the model says: {quoted(hold.model_says)}")
    click.echo("arguments:" if hold.arguments else "arguments: none")
    for line in arguments_lines(hold.arguments):
        click.echo(f"  | {escaped(line)}")


def facts(hold: Hold) -> dict[str, Any]:
    """Return a hold for programs."""
    times = ("opened_at", "expires_at", "decided_at", "ended_at")
    values = {
        "id": hold.id,
        "state": hold.state,
        "call": hold.call_id,
        "package": hold.dist,
        "name": hold.name,
        "permission": hold.permission,
        "effect": hold.effect,
        "arguments": dict(hold.arguments),
        "channel": hold.channel,
        "principal": hold.principal,
        "conversation": hold.conversation,
        "model_says": hold.model_says,
        "reasons": list(hold.reasons),
        "must_ask": hold.must_ask,
        "answer": hold.answer,
        "by": hold.decided_by,
        "code": hold.code,
        "detail": hold.detail,
    }
    for name in times:
        seconds = getattr(hold, name)
        values[name] = None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()
    return values


def _local(seconds: float) -> str:
    return local(datetime.fromtimestamp(seconds, UTC))


def _day(seconds: float) -> str:
    """Return a moment as short as a list needs it; the hold's own page has it whole."""
    return datetime.fromtimestamp(seconds, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
