"""`chalie approve`: say yes to a call that waits, from any terminal."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final

import click

from ..calls import AnswerKind
from ..ledger.hold import ENDED
from . import exits
from .completion import open_holds
from .ending import end_of, ending
from .holds import facts, shown
from .opening import opened
from .output import as_json, aside, emit, note
from .proof import proven

if TYPE_CHECKING:
    from ..host import Host
    from ..ledger.hold import Hold

__all__ = ["command"]

#: seconds that the command waits for the run of a live host.
_WAIT_S: Final = 10.0


@click.command("approve")
@click.argument("hold_id", metavar="ID", shell_complete=open_holds)
@click.option("--always", is_flag=True, help="Also allow this permission from now on, on that channel.")
@ending("The same,")
@click.option("--yes", is_flag=True, help="Do not ask again after showing what it is.")
@as_json
@click.pass_context
def command(
    context: click.Context,
    hold_id: str,
    always: bool,
    minutes: int | None,
    until: str | None,
    yes: bool,
    json_: bool,
) -> int:
    """Approve the call ID: exactly the stored arguments are run, once.

    A live agent that holds the conversation runs it; else it is run here and now, as the principal it was
    asked for. Its result goes to the conversation's inbox. Needs the home's owner at a terminal or an
    approver token.
    """
    end = end_of(minutes, until)
    if always and end is not None:
        raise click.UsageError("--always excludes --for and --until")
    with opened(context) as host:
        by = proven(host)
        hold = host.holds.get(hold_id)
        kind = AnswerKind.ALWAYS if always else AnswerKind.ONCE if end is None else AnswerKind.UNTIL
        host.holds.refuse_standing(hold, kind)  # before anything is asked here
        if not (yes or json_ or by.startswith("token:")) and hold.ended_at is None and sys.stdin.isatty():
            shown(hold)
            if not click.confirm("run it?", err=True):
                note(f"not answered; to say no: chalie decline {hold.id}")
                return exits.REFUSED
        with aside():  # what the tool prints is no part of the answer
            hold = _ended(host, host.answer(hold.id, kind, until=end))
        text = _result(host, hold)
    if json_:
        emit({**facts(hold), "result": text})
    else:
        click.echo(f"{hold.id}: {hold.permission} {_words(hold)}")
        if text is not None:
            click.echo(text)
    return exits.OK if hold.state in ("approved", "spent", "started", "done") else exits.FAILED


def _ended(host: Host, hold: Hold) -> Hold:
    """Wait a while for the end of a run that another process does."""
    end = time.monotonic() + _WAIT_S
    while hold.state not in (*ENDED, "not-started") and time.monotonic() < end:
        time.sleep(0.05)
        hold = host.holds.current(hold)
    return hold


def _result(host: Host, hold: Hold) -> str | None:
    """Return the envelope where it lies in the inbox; it is left there for the conversation."""
    messages = host.ledger.inbox.peek(hold.principal, hold.conversation)
    return next((message.text for message in reversed(messages) if message.call_id == hold.call_id), None)


def _words(hold: Hold) -> str:
    return {
        "approved": "is approved and not yet taken on",
        "spent": "is approved and about to run",
        "started": "is approved and running",
        "done": "is approved and has run",
        "failed": f"is approved and has run; it answered with an error ({hold.code})",
        "interrupted": f"is approved; whether it took effect is not known ({hold.code})",
        "not-started": f"was not run and can be approved again: {hold.detail}",
        "void": f"is void and was not run: {hold.detail}",
    }.get(hold.state, f"is {hold.state}")
