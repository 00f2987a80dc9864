"""What the server needs of a host: the command line opens one and hands it in, since rooms look down only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from attrs import frozen

from ..calls import Approver, CallRecord, Channel
from ..dispatch.state import Progress, TurnState
from ..ledger import Ledger

__all__ = ["Caller", "Exchange", "Turns"]


class Exchange(Protocol):
    """A turn."""

    @property
    def state(self) -> TurnState:
        """What the turn knows."""
        ...

    @property
    def records(self) -> Sequence[CallRecord]:
        """Its finished calls."""
        ...

    @property
    def rich(self) -> Mapping[int, Any]:
        """What its results carried for a user interface, by the ordinal of their call."""
        ...

    async def acall(self, name: str, arguments: Mapping[str, Any] | str | None = None) -> str:
        """Call a tool down the one road and return its envelope."""
        ...


class Turns(Protocol):
    """A host."""

    @property
    def ledger(self) -> Ledger:
        """The home's records."""
        ...

    @property
    def channels(self) -> Mapping[str, Channel]:
        """Every channel by name."""
        ...

    def turn(
        self,
        channel: str = ...,
        *,
        principal: str | None = ...,
        conversation: str | None = ...,
        active: Sequence[str] = ...,
        approver: Approver | None = ...,
        progress: Progress | None = ...,
        permissions: Sequence[str] | None = ...,
    ) -> Exchange:
        """Open one exchange, noticing what was installed since the last one."""
        ...


@frozen
class Caller:
    """Who is at the door.

    Attributes:
        id: tells one caller from every other; found tools and sealed states are kept by it.
        label: what a person knows it by, as on the trail (`stdio`, or the token's label).
        channel: where its turns happen.
        principal: on whose behalf.
        permissions: the only permissions its calls may ask for; None for any.
    """

    id: str
    label: str
    channel: str
    principal: str
    permissions: tuple[str, ...] | None = None
