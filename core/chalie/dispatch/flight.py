"""One call on its way: what is known of it, and how far it is."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from ..calls import Approver, Call, HoldView
from ..catalogue.descriptor import Descriptor
from ..ledger.hold import Hold
from ..ledger.trail import Who
from .arguments import copied
from .state import CancelToken, Progress, TurnState

if TYPE_CHECKING:
    from .run import Work

__all__ = ["Flight"]


class Flight:
    """One call, from the moment it was asked for until its outcome is recorded.

    Args:
        state: the turn.
        called: the name it was called by; a model may call by what is no text at all.
        token: cancels it.
        progress: told how far it is, or None.
        approver: who can be asked about it in place of the turn's, where there is a person to ask.
    """

    __slots__ = (
        "answered_by",
        "approver",
        "background",
        "begun",
        "call",
        "called",
        "deliver",
        "descriptor",
        "ended",
        "given",
        "healed",
        "hold",
        "hold_started",
        "id",
        "limit_s",
        "lock",
        "masked",
        "ordinal",
        "progress",
        "secrets",
        "setting",
        "started",
        "state",
        "token",
        "waits",
        "who",
        "whole",
        "work",
    )

    def __init__(
        self,
        state: TurnState,
        called: object,
        token: CancelToken | None,
        progress: Progress | None,
        approver: Approver | None = None,
    ) -> None:
        self.state = state
        self.called = called if type(called) is str and called.isascii() else _text(called)
        self.ordinal = state.next_ordinal()
        self.id = f"{state.id}-{self.ordinal}"
        self.token = token if token is not None else CancelToken(state.cancel)
        self.progress = progress if progress is not None else state.progress
        self.approver = approver if approver is not None else state.approver
        self.begun = time.perf_counter_ns()
        self.descriptor: Descriptor | None = None
        self.call: Call | None = None
        self.masked: dict[str, Any] | None = None
        self.secrets: tuple[str, ...] = ()
        #: arguments with handles expanded, as they were judged; let go of while a person is asked.
        self.whole: dict[str, Any] | None = None
        #: whether a person is asked on a thread that others need.
        self.waits = False
        self.healed: tuple[str, ...] = ()
        self.setting: str | None = None
        self.answered_by: str | None = None
        #: see `Admission.given`.
        self.given: int | None = None
        #: what a person approved, where the call runs because of that; spent by this process.
        self.hold: Hold | None = None
        #: whether the ledger says that it runs.
        self.hold_started = False
        #: whether the result goes to the conversation's inbox, since nobody waits for it.
        self.deliver = False
        self.background = False
        self.limit_s: float | None = None
        self.work: Work | None = None
        #: what every row of the call says, once it is known.
        self.who: Who | None = None
        #: held while a row is written, so that no outcome is written twice or before its intent.
        self.lock = threading.Lock()
        self.started = False
        self.ended = False

    @property
    def dist(self) -> str:
        """The package's name; empty where the tool is unknown."""
        return self.descriptor.dist if self.descriptor is not None else ""

    @property
    def name(self) -> str:
        """The ability's name, or what was called."""
        return self.descriptor.name if self.descriptor is not None else self.called[:128]

    def view(self, model_says: str) -> HoldView:
        """Return what a person is shown of the call, secrets masked.

        Args:
            model_says: what the model says it is for.
        """
        call = self.call
        assert call is not None
        return HoldView(
            id=self.id,
            name=call.name,
            dist=call.dist,
            permission=call.permission,
            effect=call.effect,
            arguments=copied(self.masked or {}),
            channel=self.state.channel.name,
            principal=call.principal,
            conversation=call.conversation,
            model_says=model_says,
            reasons=(),
            must_ask=call.must_ask,
        )


def _text(called: object) -> str:
    """Return a name that can be looked for and shown: what is no text, or half a character, names nothing."""
    if not isinstance(called, str):
        return f"(a {type(called).__name__} that is no name)"
    return str.__str__(called).encode("utf-8", "surrogatepass").decode("utf-8", "replace")
