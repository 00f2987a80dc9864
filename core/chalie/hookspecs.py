"""The hooks a plugin or a policy may implement. A misspelt hook or argument is refused, and the plugin named.

A hook is a plain function marked with `hookimpl` in the module that the entry point names:

    from chalie import Limit, SideEffect, hookimpl

    @hookimpl
    def limit_call(call):
        if call.effect is SideEffect.DESTRUCTIVE:
            return Limit("must_ask", "nothing is deleted without a person")

An implementation takes those of a hook's arguments that it needs, by name. The host calls each one by itself
and catches what it raises, so one plugin's failure is never another's. Hook wrappers are refused on the hooks
that decide. What a plugin says is stamped with its distribution by the host; it cannot speak as another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import pluggy

from .calls import Call, CallRecord, HoldChange, Limit, Opinion
from .errors import Leaving

if TYPE_CHECKING:
    import click

__all__ = [
    "DECIDING",
    "LEAVING",
    "call_finished",
    "generation_published",
    "hold_changed",
    "hookimpl",
    "hookspec",
    "limit_call",
    "register_commands",
    "review_call",
]

hookspec: Final = pluggy.HookspecMarker("chalie")
hookimpl: Final = pluggy.HookimplMarker("chalie")

#: The hooks whose answers the gate folds: no wrappers, one deadline, failure closes.
DECIDING: Final[frozenset[str]] = frozenset({"review_call", "limit_call"})

#: Hooks that go, by name: an implementation is warned about where it stands.
LEAVING: Final[dict[str, Leaving]] = {}


@hookspec
def review_call(call: Call) -> Opinion | None:
    """Say what you think of a call on which the person has set nothing.

    When: before each call that no permission row and no internal rule settles, on the gate's own thread.
        Policies run one after another under one deadline (`gate.deadline_ms`, 1000 by default).
    May return: `Opinion("allow", reason)`, `Opinion("ask", reason)`, or None for no opinion.
    Conflicts: `ask` goes before `allow`; order of installation never matters. `allow` counts only
        once a person has trusted the policy; until then it is shown and has no effect. To refuse, use
        `limit_call`.
    Failure: raising, overrunning the deadline or returning anything else denies the call.
    """


@hookspec
def limit_call(call: Call) -> Limit | None:
    """Narrow what a call may do, whatever rows and opinions say.

    When: before each call, and when a search asks whether a tool may be shown at all; then
        `call.arguments` is None, and an answer must hold for every call of that permission.
    May return: `Limit("deny", reason)`, `Limit("must_ask", reason)`, or None for no limit.
    Conflicts: the strictest wins. A limit can never widen: there is nothing to return that would.
    Failure: raising, overrunning the deadline or returning anything else denies the call.
    """


@hookspec
def call_finished(record: CallRecord) -> None:
    """Observe a call that has its outcome, be it success, error or refusal.

    When: after the outcome is on the trail and before the caller gets it; keep it short.
    May return: nothing; what is returned is ignored.
    Conflicts: none; every implementation is called.
    Failure: is logged with the plugin's name and changes nothing.
    """


@hookspec
def hold_changed(change: HoldChange) -> None:
    """Observe a hold (a call that waits for a person) moving to another state.

    When: after the new state is stored; `change.before` is None for a hold just opened.
    May return: nothing; what is returned is ignored. To answer a hold, a person uses an approver.
    Conflicts: none; every implementation is called.
    Failure: is logged with the plugin's name and changes nothing.
    """


@hookspec
def generation_published(generation_id: str, added: Sequence[str], removed: Sequence[str]) -> None:
    """Observe a new generation of catalogue and indexes.

    When: after a running host has gone over to it. `added` and `removed` hold `distribution:name` of
        abilities; one whose descriptor changed is in both.
    May return: nothing; what is returned is ignored.
    Conflicts: none; every implementation is called.
    Failure: is logged with the plugin's name and changes nothing.
    """


@hookspec
def register_commands() -> Mapping[str, click.Command] | None:
    """Add commands to the `chalie` command line.

    When: only for `chalie --help` and for a command the host does not know, so a plugin never slows the
        others.
    May return: name -> click command; names are `[a-z][a-z0-9-]*`. None for no commands.
    Conflicts: a name of the host's own is refused; of two plugins' commands with one name neither runs, and
        both are named.
    Failure: leaves that plugin's commands out, with one line on standard error.
    """
