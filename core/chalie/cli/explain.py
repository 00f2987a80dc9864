"""`chalie explain`: why the gate says what it says of a call, with every verdict and who gave it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..errors import ChalieError
from ..gate.display import escaped
from . import exits, lookup
from .call import gathered
from .completion import arguments as keys
from .completion import channels, tools
from .opening import opened
from .output import as_json, aside, emit

if TYPE_CHECKING:
    from ..calls import Call, Decision
    from ..host import Host
    from ..turn import Turn

__all__ = ["command"]


@click.command("explain")
@click.argument("name", shell_complete=tools)
@click.argument("arguments", nargs=-1, metavar="[KEY=VALUE]... [-]", shell_complete=keys)
@click.option(
    "--channel",
    default="chat",
    show_default=True,
    help="The channel whose permissions apply.",
    shell_complete=channels,
)
@click.option("--principal", help="On whose behalf; default: the account.")
@click.option("--conversation", help="The conversation the call belongs to.")
@as_json
@click.pass_context
def command(
    context: click.Context,
    name: str,
    arguments: tuple[str, ...],
    channel: str,
    principal: str | None,
    conversation: str | None,
    json_: bool,
) -> int:
    """Explain what the gate says of the tool NAME with these arguments; nothing is run or asked.

    Every verdict is shown in order of effect, with its author, its reason, and the file or row it comes from.
    Without arguments, each of the tool's actions is explained.
    """
    from ..gate.explain import explain

    with opened(context) as host, aside():
        channel = lookup.channel(host, channel, policy=True)
        turn = host.turn(channel, principal=principal, conversation=conversation, active=(name,))
        given = gathered(arguments) if arguments else None
        calls = _calls(host, turn, name, given)
        decided = [(call, host.gate.decide(call, turn.channel, complete=True)) for call in calls]
        before = [_declined(host, call) for call in calls]
    if json_:
        emit([_facts(call, decision) for call, decision in decided])
        return exits.OK
    for at, (call, decision) in enumerate(decided):
        if at:
            click.echo()
        click.echo(explain(decision, call))
        if call.destination is not None:
            where = "the current one" if call.lands_in_current_conversation else "another one"
            click.echo(f"  what it sends lands in a conversation that is {where}")
        if (refused := before[at]) is not None:
            click.echo(f"  but {escaped(refused)}")
    return exits.OK


def _calls(host: Host, turn: Turn, name: str, given: Any) -> list[Call]:
    from ..result import ToolResult

    if given is not None:
        seen = host.dispatcher.examine(turn.state, name, given)
        if isinstance(seen, ToolResult):
            raise ChalieError(
                f"{seen.message}; the call would not even reach the gate", code=seen.code, hint=seen.hint
            )
        return [seen]
    from ..calls import Call
    from ..dispatch.resolve import resolve

    found = resolve(turn.state, name)
    if isinstance(found, ToolResult):
        raise ChalieError(found.message, code=found.code, hint=found.hint)
    return [
        Call(
            found.dist,
            found.name,
            permission,
            host.approvals.effect(found, effect),
            None,
            turn.channel.policy,
            turn.principal,
            turn.conversation,
            found.hash,
            found.requires_approval,
            files_hash=host.approvals.files_hash(found.dist),
        )
        for permission, effect in found.permissions()
    ]


def _declined(host: Host, call: Call) -> str | None:
    """Say where this very call was declined: in its conversation, or in any where none was named."""
    if call.arguments is None:
        return None
    for row in host.ledger.declined.list():
        kind, _, where = row.scope.partition(":")
        if (row.principal, row.permission) != (call.principal, call.permission):
            continue
        if call.conversation is not None and (kind, where) != ("conversation", call.conversation):
            continue
        digests = (host.holds.digest(call, secret) for secret in (False, True))
        if any(host.ledger.declined.get(row.principal, row.scope, digest) for digest in digests):
            place = f"the conversation {where!r}" if kind == "conversation" else "a turn of no conversation"
            return (
                f"in {place} this very call is refused at once: declined by {row.by}; "
                f"to let it be asked again: chalie decline {row.hold} --undo"
            )
    return None


def _facts(call: Call, decision: Decision) -> dict[str, Any]:
    return {
        "package": call.dist,
        "name": call.name,
        "permission": call.permission,
        "effect": call.effect.value,
        "channel": call.channel,
        "principal": call.principal,
        "setting": decision.setting.value,
        "must_ask": decision.must_ask,
        "lands_in_current_conversation": call.lands_in_current_conversation,
        "verdicts": [
            {
                "author": verdict.author,
                "kind": verdict.kind,
                "value": verdict.value,
                "reason": verdict.reason,
                "source": verdict.source,
                "counted": verdict.counted,
            }
            for verdict in decision.verdicts
        ],
    }
