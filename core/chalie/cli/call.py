"""`chalie call`: one tool, through the gate, with the envelope on standard output."""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import exits, lookup
from .completion import arguments as keys
from .completion import channels, tools
from .opening import opened
from .output import as_json, aside, emit, note
from .proof import proven

if TYPE_CHECKING:
    from ..calls import Approver
    from ..envelope import Frame
    from ..host import Host
    from ..turn import Turn

__all__ = ["command"]


@click.command("call")
@click.argument("name", shell_complete=tools)
@click.argument("arguments", nargs=-1, metavar="[KEY=VALUE]... [-]", shell_complete=keys)
@click.option("--yes", is_flag=True, help="Approve this one call (at a terminal, or with an approver token).")
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
    yes: bool,
    channel: str,
    principal: str | None,
    conversation: str | None,
    json_: bool,
) -> int:
    """Call the tool NAME and print its envelope.

    Arguments are KEY=VALUE words; a value that the tool wants as a number, boolean, list or object is read
    as JSON. A JSON object is read from standard input where it is asked for with -, or where there are no
    KEY=VALUE words and something is piped in; KEY=VALUE words then replace its keys.

    NAME may be spelt as find_tools takes it (case, -, _ and blanks make no difference). What the tool prints
    goes to standard error. Exit code 0 for a success, 4 where the call was refused, 5 where the tool answered
    with an error.
    """
    from ..envelope import parse

    given = gathered(arguments)
    with opened(context) as host, aside():
        turn = host.turn(
            lookup.channel(host, channel, policy=True),
            principal=principal,
            conversation=conversation,
            approver=_yes(host) if yes else _person(),
        )
        text = turn.call(_activated(host, turn, name), given)
        frame = parse(text)
        advice = _advice(host, turn, name, frame)
    if json_:
        emit(_as_dict(frame))
    else:
        click.echo(text)
    if advice:
        note(f"hint: {advice}")
    if frame.status == "success":
        return exits.OK
    return exits.of(frame.code)


def _activated(host: Host, turn: Turn, name: str) -> str:
    """Make the one tool that a word names callable in the turn; return the name to call it by."""
    found = lookup.tools(host, name)
    return turn.state.activate(found[0]) if len(found) == 1 else name


def _advice(host: Host, turn: Turn, name: str, frame: Frame) -> str | None:
    """Return the next step of a person at a command line; what the envelope says is for a model."""
    if frame.code == "unknown-tool":
        error = lookup.absent_tool(host, name)
        return f"{error.message}; {error.hint}"
    if frame.code == "unhandled-exception" and turn.records:
        return f"chalie trail --call {turn.records[-1].call_id}"
    if frame.meta.get("truncated") and "result" in frame.meta:
        return f"it is cut; page by page: chalie call read_result id={frame.meta['result']}"
    if "next" in frame.meta and frame.name == "read_result":
        meta = frame.meta
        return f"the next page: chalie call read_result id={meta['id']} offset={meta['next']}"
    return None


def gathered(words: Sequence[str]) -> dict[str, Any] | str:
    """Return the arguments of a call from `key=value` words and standard input.

    Returns:
        A mapping, or, where only standard input was given, its text as it is: the host refuses what is no
        object with the same words a model would see.

    Raises:
        click.UsageError: a word is neither `key=value` nor `-`, or a key is given twice.
    """
    pairs: dict[str, Any] = {}
    asked = "-" in words
    for word in words:
        if word == "-":
            continue
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise click.UsageError(
                f"{word!r} is no argument; write KEY=VALUE, or - to read JSON from standard input"
            )
        if key in pairs:
            raise click.UsageError(f"the argument {key!r} is given twice")
        pairs[key] = value
    if not asked and (pairs or not _piped()):
        return pairs
    text = sys.stdin.read()
    if not text.strip():
        return pairs
    if not pairs:
        return text
    try:
        whole = json.loads(text)
    except ValueError as error:
        raise click.UsageError(f"standard input is not JSON: {error}") from None
    if not isinstance(whole, dict):
        raise click.UsageError(f"standard input is a JSON {type(whole).__name__}, not an object")
    return whole | pairs


def _piped() -> bool:
    """Whether standard input is a pipe, a socket or a file: something that was given and that ends."""
    try:
        mode = Path(f"/dev/fd/{sys.stdin.fileno()}").stat().st_mode
    except (OSError, ValueError, AttributeError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def _yes(host: Host) -> Approver:
    """Return what approves the one call of `--yes`, in the name of whoever proved to be allowed to.

    Raises:
        NotAuthorised: neither the home's owner at a terminal nor an approver token.
    """
    from ..gate.approvers import ProvenApprover

    return ProvenApprover(proven(host))


def _person() -> Approver | None:
    """Return the approver of this terminal, or None where nobody can be asked."""
    from ..gate.approvers import TerminalApprover

    return TerminalApprover() if sys.stderr.isatty() else None


def _as_dict(frame: Any) -> dict[str, Any]:
    """Return a frame as JSON values; a body that is JSON is given as what it says."""
    try:
        body = json.loads(frame.body)
    except ValueError:
        body = frame.body
    return {
        "name": frame.name,
        "status": frame.status,
        "code": frame.code,
        "body": body,
        "hint": frame.hint,
        "valid": list(frame.valid),
        "meta": dict(frame.meta),
    }
