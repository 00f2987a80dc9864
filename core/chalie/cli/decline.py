"""`chalie decline`: say no to a call that waits, or take such a no back."""

from __future__ import annotations

import click

from ..calls import AnswerKind
from . import exits
from .completion import holds
from .opening import opened
from .output import aside, note
from .proof import proven

__all__ = ["command"]


@click.command("decline")
@click.argument("hold_id", metavar="ID", shell_complete=holds)
@click.option("--always", is_flag=True, help="Also deny this permission from now on, on that channel.")
@click.option("--undo", is_flag=True, help="Let the declined call be asked again.")
@click.pass_context
def command(context: click.Context, hold_id: str, always: bool, undo: bool) -> int:
    """Decline the call ID: it is not run, and the same call is refused at once in that conversation.

    Needs the home's owner at a terminal or an approver token.
    """
    if always and undo:
        raise click.UsageError("--always and --undo exclude each other")
    with opened(context, settle=False) as host:
        by = proven(host)
        hold = host.holds.get(hold_id)
        if undo:
            if not host.holds.clear(hold, by=by):
                note(f"{hold.id}: nothing is refused because of it")
                return exits.NOTHING
            click.echo(f"{hold.id}: {hold.permission} may be asked again")
            return exits.OK
        with aside():
            host.answer(hold.id, AnswerKind.DECLINE_ALWAYS if always else AnswerKind.DECLINE)
    click.echo(f"{hold.id}: {hold.permission} is declined" + (" from now on" if always else ""))
    note(f"to let that call be asked again: chalie decline {hold.id} --undo")
    if always:
        row = f"{hold.policy} {hold.permission} --package {hold.dist}"
        note(f"to have the permission asked about again: chalie permissions remove {row}")
    return exits.OK
