"""What the abilities of the workspace have in common: whose account they act as, and how they refuse."""

from __future__ import annotations

import getpass
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from chalie import Ability, ToolResult

from .refusal import AlwaysAsk, Refused
from .roots import Place, named, resolve

__all__ = ["WorkspaceAbility", "ask_always", "openly"]

#: why a resolved path is special (`guarded.protected`, `guarded.secret`), or None.
Reason = Callable[[str], str | None]


class WorkspaceAbility(Ability):
    """An ability that acts with the powers of the account the host runs as.

    So it acts for that account alone: for another principal it would lend powers that are not theirs.
    """

    namespace = "workspace"

    def run(self, params: Mapping[str, Any]) -> ToolResult:
        """Do the work, for the account's own principal only."""
        account = getpass.getuser()
        if self.context.principal != account:
            return ToolResult.error(
                f"{self.name()} acts as the account {account}, which is not {self.context.principal}'s",
                code="not-allowed",
                hint="do not retry; it can only be used in a turn of that account",
            )
        try:
            return self.work(params)
        except Refused as refusal:
            return refusal.result()

    @abstractmethod
    def work(self, params: Mapping[str, Any]) -> ToolResult:
        """Do the work.

        Raises:
            Refused: it cannot be done.
        """


def openly(asked: str, *reasons: Reason, follow_last: bool = True) -> Place:
    """Follow a path, and refuse it where it leads to a special place under a harmless name.

    Such a call was judged by the harmless name, or by a link that is another one by now. With this, what is
    always asked about can be told from the call's words alone, and no swapped link changes it.

    Raises:
        Refused: `hidden-by-link`, or what `resolve` raises.
    """
    place = resolve(asked, follow_last=follow_last)
    for reason in reasons:
        found = reason(place.path)
        if found is not None and reason(named(asked)) is None:
            raise Refused(
                f"{asked} is a link, and {found}", code="hidden-by-link", hint=f"name {place.path} itself"
            )
    return place


def ask_always(asked: Any, *reasons: Reason, follow_last: bool = True) -> None:
    """Have a call asked about each time where its path names or reaches a special place.

    Raises:
        AlwaysAsk: it does.
    """
    try:
        place = openly(str(asked), *reasons, follow_last=follow_last)
    except Refused:
        return  # the run refuses it too: nobody need be asked for that
    for reason in reasons:
        found = reason(place.path) or reason(named(str(asked)))
        if found is not None:
            raise AlwaysAsk(found)
