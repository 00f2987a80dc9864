"""What a turn knows while it runs: its tools, its caller, its records, and whether it was cancelled."""

from __future__ import annotations

import itertools
import secrets
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .. import names
from ..calls import Approver, CallRecord, Channel
from ..catalogue.descriptor import Descriptor

if TYPE_CHECKING:
    from ..ability import Ability
    from ..catalogue.snapshot import Snapshot

__all__ = ["CancelToken", "Key", "Progress", "TurnState"]

#: the identity of a tool: (distribution, name).
Key = tuple[str, str]
#: told how far a call is: (call id, fraction 0..1 or None, message).
Progress = Callable[[str, float | None, str], None]


# One lock for all tokens: it is held for a few instructions, and tokens in a chain then need no order.
_LOCK = threading.Lock()


class CancelToken:
    """A flag that is raised once and stays raised; what waits for it is told at once.

    Args:
        parent: a token whose cancellation is this one's too (a call's token hangs on its turn's).
    """

    __slots__ = ("_listeners", "_parent", "_raised")

    def __init__(self, parent: CancelToken | None = None) -> None:
        self._parent = parent
        self._raised = False
        # Made on first need: most calls run inline and nobody listens.
        self._listeners: list[Callable[[], None]] | None = None

    @property
    def cancelled(self) -> bool:
        """Whether this token, or one above it, was cancelled."""
        token: CancelToken | None = self
        while token is not None:
            if token._raised:
                return True
            token = token._parent
        return False

    def cancel(self) -> None:
        """Raise the flag and call everyone who listens, each once. Safe from any thread."""
        with _LOCK:
            if self._raised:
                return
            self._raised = True
            listeners, self._listeners = self._listeners, None
        for listener in listeners or ():
            listener()

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` on cancellation (at once where it has happened); return what takes it off again.

        Args:
            listener: quick and raising nothing; called on the cancelling thread, perhaps twice where a
                token and its parent are both cancelled.
        """
        chain: list[CancelToken] = []
        token: CancelToken | None = self
        already = False
        with _LOCK:
            while token is not None:
                chain.append(token)
                already = already or token._raised
                if token._listeners is None:
                    token._listeners = []
                token._listeners.append(listener)
                token = token._parent
        if already:
            listener()

        def remove() -> None:
            with _LOCK:
                for each in chain:
                    if each._listeners and listener in each._listeners:
                        each._listeners.remove(listener)

        return remove


class TurnState:
    """One exchange of an agent: what the dispatcher reads and writes about it.

    Args:
        channel: where the turn happens.
        principal: on whose behalf.
        snapshot: the catalogue the turn was opened on; it does not change while the turn lives.
        conversation: the conversation's id, or None.
        client: telemetry of the client, for abilities to read.
        pinned: exposed name -> descriptor, in the channel's order.
        active: exposed name -> descriptor of what was activated before the turn began.
        internal: (dist, name) -> maker of a host ability bound to this turn.
        reader: descriptor of `read_result`; it becomes active when a result is cut, so that the rest
            can be read. None where the turn offers no such tool.
        approver: who may be asked, or None.
        progress: told how far a call of this turn is, or None.
        parent: the cancel token of the turn that opened this one (a delegate), or None.
        id: the turn's id; 16 random hex digits when left out.
    """

    def __init__(
        self,
        *,
        channel: Channel,
        principal: str,
        snapshot: Snapshot,
        conversation: str | None = None,
        client: Mapping[str, Any] | None = None,
        pinned: Mapping[str, Descriptor] | None = None,
        active: Mapping[str, Descriptor] | None = None,
        internal: Mapping[Key, Callable[[], Ability]] | None = None,
        reader: Descriptor | None = None,
        approver: Approver | None = None,
        progress: Progress | None = None,
        parent: CancelToken | None = None,
        id: str | None = None,
    ) -> None:
        self.id = id if id is not None else secrets.token_hex(8)
        self.channel = channel
        self.principal = principal
        self.conversation = conversation
        self.client: Mapping[str, Any] = client if client is not None else {}
        self.snapshot = snapshot
        self.pinned: dict[str, Descriptor] = dict(pinned or {})
        self.active: dict[str, Descriptor] = dict(active or {})
        self.internal: Mapping[Key, Callable[[], Ability]] = internal if internal is not None else {}
        self.reader = reader
        self.approver = approver
        self.progress = progress
        #: finished calls, in the order they finished.
        self.records: list[CallRecord] = []
        #: ordinal of a call -> the payload its result carried for the user interface.
        self.rich: dict[int, Any] = {}
        #: cancels every running foreground call of the turn, and refuses later ones.
        self.cancel = CancelToken(parent)
        self.lock = threading.Lock()
        self._ordinals = itertools.count(1)

    def next_ordinal(self) -> int:
        """Return the next call's place in the turn, from 1."""
        return next(self._ordinals)

    def tools(self) -> dict[str, Descriptor]:
        """Return what can be called, exposed name -> descriptor: pinned first, then active, in order."""
        with self.lock:
            return {**self.pinned, **self.active}

    def holds(self, key: Key) -> str | None:
        """Return the exposed name of a pinned or active tool by its identity, or None."""
        with self.lock:
            return self._holds(key)

    def activate(self, descriptor: Descriptor) -> str:
        """Make a tool callable for this turn and return the name it is called by.

        A name that another tool of the turn already has is never taken over: the newcomer is then
        called by its qualified name.
        """
        key = descriptor.key
        with self.lock:
            held = self._holds(key)
            if held is not None:
                return held
            exposed = self.snapshot.exposed(descriptor)
            for whole in (False, True):
                if exposed not in self.pinned and exposed not in self.active:
                    break
                exposed = names.qualified(descriptor.dist, descriptor.name, whole)
            self.active[exposed] = descriptor
            return exposed

    def _holds(self, key: Key) -> str | None:
        for table in (self.pinned, self.active):
            for exposed, descriptor in table.items():
                if descriptor.key == key:
                    return exposed
        return None
