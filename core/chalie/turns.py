"""Opening turns: what each one sees, has pinned and may activate."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import evolve

from .calls import Approver, Channel, Sight
from .catalogue.descriptor import Descriptor, Playbook
from .channels import channel_named
from .dispatch.state import Progress, TurnState
from .errors import ConfigError, LedgerUnavailable
from .ledger import Ledger
from .names import OWN_DIST, is_server
from .pins import own_descriptors, pinned
from .search import Search, Sighted
from .turn import Turn

if TYPE_CHECKING:
    from .ability import Ability
    from .approvals import Approvals
    from .build import Upkeep
    from .catalogue.generations import Generation
    from .dispatch.dispatcher import Dispatcher
    from .ledger.hold import Hold

__all__ = ["Turns"]


class Turns:
    """Opens the turns of one host.

    Args:
        upkeep: gives the generation a turn is opened on.
        search: what `find_tools` and `find_skills` ask.
        approvals: with the gate, which says how a tool looks from where it is searched.
        ledger: where results and leases are.
        channels: every channel by name.
        reach: `availability` and `reason` of a tool that cannot be reached at the moment, else nothing.

    Attributes:
        dispatcher: runs the calls; set once, since it needs `reopen` in turn.
    """

    dispatcher: Dispatcher

    def __init__(
        self,
        upkeep: Upkeep,
        search: Search,
        approvals: Approvals,
        ledger: Ledger,
        channels: Mapping[str, Channel],
        reach: Callable[[Descriptor], Mapping[str, str]],
    ) -> None:
        self._upkeep = upkeep
        self._search = search
        self._approvals = approvals
        self._ledger = ledger
        self._channels = channels
        self._reach = reach

    def open(
        self,
        channel: Channel,
        *,
        principal: str,
        conversation: str | None,
        client: Mapping[str, Any],
        active: Sequence[str],
        approver: Approver | None,
        progress: Progress | None = None,
        parent: TurnState | None = None,
    ) -> Turn:
        """Open a turn on the newest generation; see `Host.turn`.

        Args:
            parent: the turn that opens it, where this is a delegate's.
        """
        generation = self._upkeep.current()
        with contextlib.suppress(LedgerUnavailable):  # a call will say so
            self._ledger.present()
        sight = self.sight(channel, principal, conversation)
        internal: dict[tuple[str, str], Callable[[], Ability]] = {}
        state = TurnState(
            channel=channel,
            principal=principal,
            snapshot=generation.snapshot,
            conversation=conversation,
            client=client,
            pinned=pinned(channel, generation.snapshot),
            internal=internal,
            reader=own_descriptors()["read_result"],
            approver=approver if channel.has_person else None,
            progress=progress,
            parent=parent.cancel if parent is not None else None,
        )
        internal.update(self._makers(generation, state, sight))
        if conversation is not None and self._ledger.holds.lease(conversation):
            self.dispatcher.watch_holds()
        for name in active:
            found = generation.snapshot.resolve(name) or generation.snapshot.named(name)
            if len(found) == 1:
                state.activate(found[0])
        return Turn(self.dispatcher, state, self._delegate, self._approvals)

    def _delegate(self, opener: Turn, channel: str) -> Turn:
        where = channel_named(self._channels, channel)
        if not where.delegate:
            raise ConfigError(
                f"{channel!r} is no delegate channel", hint=f"open it with host.turn({channel!r})"
            )
        above = opener.state
        return self.open(
            evolve(
                where,
                policy=above.channel.policy,
                has_person=above.channel.has_person,
                permissions=above.channel.permissions,
            ),
            principal=above.principal,
            conversation=above.conversation,
            client=above.client,
            active=(),
            approver=above.approver,
            progress=above.progress,
            parent=above,
        )

    def _makers(
        self, generation: Generation, state: TurnState, sight: Sighted
    ) -> Mapping[tuple[str, str], Callable[[], Ability]]:
        """Return what makes the host's own abilities, bound to one turn: nothing else can activate tools."""
        from .meta.find_skills import FindSkills
        from .meta.find_tools import FindTools
        from .meta.read_result import ReadResult

        def read(handle: str) -> str | None:
            kept = self._ledger.results.get(state.principal, handle)
            return None if kept is None else kept.body

        return {
            (OWN_DIST, "find_tools"): lambda: FindTools(
                lambda entries: self._search.find(generation, entries, "ability", sight, state.channel),
                state.activate,
                self._reach,
            ),
            (OWN_DIST, "find_skills"): lambda: FindSkills(
                lambda entries: self._search.find(generation, entries, "playbook", sight, state.channel)
            ),
            (OWN_DIST, "read_result"): lambda: ReadResult(read),
        }

    def sight(self, channel: Channel, principal: str, conversation: str | None) -> Sighted:
        """Return what tells how an item looks to a search on a channel."""

        def sight(item: Descriptor | Playbook) -> Sight:
            if isinstance(item, Playbook):
                return Sight()
            files_hash = self._approvals.files_hash(item.dist)
            trusted = not is_server(item.dist) or self._approvals.trusts_server(item.dist, files_hash)
            return self._approvals.gate.sight(
                item, channel, principal, conversation, files_hash=files_hash, trusted=trusted
            )

        return sight

    def reopen(self, hold: Hold) -> tuple[TurnState, Descriptor | None]:
        """Return the turn that an approved hold runs in, and its ability as it is now."""
        where = self._channels.get(hold.channel) or Channel(hold.channel, hold.policy, True, (), False)
        turn = self.open(
            evolve(where, policy=hold.policy, has_person=True),
            principal=hold.principal,
            conversation=hold.conversation,
            client={},
            active=(),
            approver=None,
        )
        if hold.dist == OWN_DIST:
            return turn.state, own_descriptors().get(hold.name)
        return turn.state, turn.state.snapshot.get(hold.dist, hold.name)
