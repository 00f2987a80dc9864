"""Which tools were found where, so that they stay in the list of the client that found them."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mcp.server.session import ServerSession
    from mcp.server.subscriptions import ListenHandler

    from ..catalogue.descriptor import Descriptor
    from ..catalogue.snapshot import Snapshot
    from ..dispatch.state import Key
    from .doors import Caller

__all__ = ["Session", "Sessions"]

#: sessions that are remembered, and seconds after which one that nobody uses is forgotten.
MOST: Final = 2000
IDLE_S: Final = 1800.0
#: found tools of one session that stay in its list; of more, those found longest ago leave it.
MOST_FOUND: Final = 100


class Session:
    """What one client found in one session or conversation.

    Args:
        caller: whose it is.
        conversation: the id its turns have.

    Attributes:
        told: mark of the listing that the client knows last, or None before it asked for one.
        peer: a way to tell the client of a change, in the era that has a standing connection.
        listens: serves the client's subscriptions, in the era that has those.
    """

    def __init__(self, caller: Caller, conversation: str | None) -> None:
        self.caller = caller
        self.conversation = conversation
        self.told: int | None = None
        self.peer: ServerSession | None = None
        self.listens: Listens | None = None
        self.used = time.monotonic()
        self._found: OrderedDict[Key, str] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, names: Mapping[str, Descriptor]) -> bool:
        """Keep found tools; return whether any of them was not there before.

        Args:
            names: name that the client calls it by -> tool.
        """
        new = False
        with self._lock:
            for name, each in names.items():
                new = new or each.key not in self._found
                self._found[each.key] = name
                self._found.move_to_end(each.key)
            while len(self._found) > MOST_FOUND:
                self._found.popitem(last=False)
        return new

    def found(self, snapshot: Snapshot, called: str | None = None) -> list[Descriptor]:
        """Return the found tools that are there now, those found first first.

        Args:
            snapshot: what is installed.
            called: only the one that the client calls so; all where left out.
        """
        with self._lock:
            keys = [key for key, name in self._found.items() if called in (None, name)]
        there = (snapshot.get(*key) for key in keys if snapshot.state(key[0]) == "ready")
        return [each for each in there if each is not None]


class Listens:
    """The subscriptions of one session: the SDK's handler, and what it is told by."""

    def __init__(self) -> None:
        from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

        self.bus = InMemorySubscriptionBus()
        self.handler: ListenHandler = ListenHandler(self.bus, max_subscriptions=16)

    async def changed(self) -> None:
        """Tell every subscription that the list of tools is another one."""
        from mcp.server.subscriptions import ToolsListChanged

        await self.bus.publish(ToolsListChanged())


class Sessions:
    """The sessions of a server, each by a key of its caller's; those used longest ago are forgotten.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sessions: OrderedDict[tuple[Any, ...], Session] = OrderedDict()

    def of(self, key: tuple[Any, ...], caller: Caller, conversation: str | None) -> Session:
        """Return the session of a key, a new one where there is none."""
        session = self._sessions.get(key)
        if session is None:
            session = self._sessions[key] = Session(caller, conversation)
        session.used = self._clock()
        self._sessions.move_to_end(key)
        self._forget()
        return session

    def drop(self, key: tuple[Any, ...]) -> None:
        """Forget a session."""
        self._end(self._sessions.pop(key, None))

    def __len__(self) -> int:
        return len(self._sessions)

    def all(self) -> tuple[Session, ...]:
        """Return every session that is remembered."""
        self._forget()
        return tuple(self._sessions.values())

    def _forget(self) -> None:
        late = self._clock() - IDLE_S
        while self._sessions:
            key, oldest = next(iter(self._sessions.items()))
            if len(self._sessions) <= MOST and oldest.used >= late:
                return
            self._end(self._sessions.pop(key))

    def _end(self, session: Session | None) -> None:
        if session is not None and session.listens is not None:
            session.listens.handler.close()
