"""The host: everything put together, for one home and one Python environment."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from attrs import evolve

from .calls import AnswerKind, Approver, CallRecord, Channel, Setting
from .catalogue.descriptor import Descriptor, Problem
from .channels import channel_named, channels
from .config import Config
from .dispatch.state import Progress
from .errors import ConfigError
from .ledger import Ledger
from .ledger.approvers import OWN_APPROVER
from .pins import missing_pins, own_descriptors
from .search import Kind, Search
from .turn import Turn
from .turns import Turns

if TYPE_CHECKING:
    from datetime import datetime

    import click

    from .approvals import Approvals
    from .catalogue.generations import Generation
    from .catalogue.identity import Given
    from .catalogue.plugins import Plugins
    from .catalogue.snapshot import Snapshot
    from .discovery.found import Found
    from .dispatch.dispatcher import Dispatcher
    from .gate.authority import Authority
    from .gate.gate import Gate
    from .gate.holds import Holds
    from .ledger.hold import Hold
    from .mcp.home_servers import HomeServers

__all__ = ["Host"]


class Host:
    """The tools of one home, for one agent program. Open it with `Host.open`, close it when done.

    Attributes:
        config: what `config.toml` and the environment say.
        ledger: the home's records.
        gate: decides on every call.
        holds: the calls that wait for a person, and the ones that did.
        channels: every channel by name.
        authority: proves who may decide.
        upkeep: keeps this process on the newest generation.
        servers: the MCP servers of the home.
        approver_token: an approver token of this process alone, where it made the home; else None.
    """

    def __init__(
        self,
        config: Config,
        ledger: Ledger,
        *,
        approver: Approver | None = None,
        on_delivery: Callable[[str | None, str, str], None] | None = None,
    ) -> None:
        from .build import Upkeep
        from .catalogue.plugins import Plugins
        from .gate.authority import Authority

        self.config = config
        self.ledger = ledger
        self.channels = channels(config)
        self.authority: Authority = Authority(ledger, config.home)
        self.approver_token = ledger.approvers.add(OWN_APPROVER) if ledger.created else None
        self._approver = approver
        self._on_delivery = on_delivery
        # none are known yet, and the first look at what is installed may already have news for them
        self.plugins = Plugins()
        self.upkeep = Upkeep(config, self._published)
        self._search = Search(config, self.upkeep, ledger.permissions)
        self._given: Given | None = None
        self.plugins = self._load_plugins()
        self.approvals: Approvals = self._make_approvals()
        self.gate: Gate = self.approvals.gate
        self.holds: Holds = self.approvals.holds
        self.servers: HomeServers = self._make_servers()
        reach = self.servers.reach
        self._turns = Turns(self.upkeep, self._search, self.approvals, ledger, self.channels, reach)
        self.dispatcher = self._turns.dispatcher = self._make_dispatcher()
        self.dispatcher.recover()
        ledger.retain()

    # opening and closing

    @classmethod
    def open(
        cls,
        home: Path | str | None = None,
        *,
        approver: Approver | None = None,
        on_delivery: Callable[[str | None, str, str], None] | None = None,
        catalogue: Path | str | None = None,
    ) -> Host:
        """Open the host of a home, making the home where there is none.

        What pip installed since the last start is read in another process; opening waits for it up to
        `limits.build_wait_s` and then goes on (see `upkeep.pending`).

        Args:
            home: the folder; default: `CHALIE_HOME`, else the platform's user data folder.
            approver: who can be asked on channels with a person.
            on_delivery: told of each finished background call as (conversation, call id, envelope).
            catalogue: a catalogue's file that this host's is expected to be; another is a problem that is
                told (see `problems`) and else without effect. Default: `[catalogue] file`.

        Raises:
            ConfigError: the configuration cannot be used as written.
            LedgerUnavailable: the ledger cannot be opened.
        """
        config = Config.load(Path(home) if home is not None else None)
        if catalogue is not None:
            config = evolve(config, catalogue=Path(catalogue))
        ledger = Ledger.open(config.ledger_path, retention=config.retention)
        try:
            return cls(config, ledger, approver=approver, on_delivery=on_delivery)
        except BaseException:
            ledger.close()
            raise

    @classmethod
    async def aopen(
        cls,
        home: Path | str | None = None,
        *,
        approver: Approver | None = None,
        on_delivery: Callable[[str | None, str, str], None] | None = None,
        catalogue: Path | str | None = None,
    ) -> Host:
        """Do what `open` does, off the event loop."""
        import asyncio

        return await asyncio.to_thread(
            cls.open, home, approver=approver, on_delivery=on_delivery, catalogue=catalogue
        )

    def close(self) -> None:
        """Take no more calls, give background ones a moment, and let go of every file. Safe to call twice."""
        self.dispatcher.close()
        self.servers.close()
        self.upkeep.close()
        if self.approver_token is not None:
            self.ledger.approvers.remove(OWN_APPROVER)
            self.approver_token = None
        self.ledger.close()

    async def aclose(self) -> None:
        """Do what `close` does, off the event loop."""
        import asyncio

        await asyncio.to_thread(self.close)

    def __enter__(self) -> Host:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Host:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    # turns

    def turn(
        self,
        channel: str = "chat",
        *,
        principal: str | None = None,
        conversation: str | None = None,
        client: Mapping[str, Any] | None = None,
        active: Sequence[str] = (),
        approver: Approver | None = None,
        progress: Progress | None = None,
        permissions: Sequence[str] | None = None,
    ) -> Turn:
        """Open one exchange of an agent.

        What was installed, upgraded or removed since the last turn is noticed here.

        Args:
            channel: a policy channel or one from `config.toml`; a delegate is opened by `Turn.delegate`.
            principal: on whose behalf; default: the account's login name.
            conversation: the conversation's id; background results go to its inbox.
            client: telemetry of the client for abilities to read (time zone, position).
            active: tools that can be called from the start besides the pinned ones; one that is not
                installed is left out (see `Turn.names`).
            approver: who can be asked in this turn; default: the host's.
            progress: told how far a call is: (call id, fraction from 0 to 1 or None, message).
            permissions: the only permissions that calls of this turn may ask for, whatever the gate would
                say of others; default: any. The host's own tools are always among them.

        Raises:
            ConfigError: there is no such channel, or it is a delegate.
        """
        where = channel_named(self.channels, channel)
        if where.delegate:
            raise ConfigError(
                f"{channel!r} is a delegate channel; it takes policy and principal from another turn",
                hint=f"open it from that turn: turn.delegate({channel!r})",
            )
        return self._turns.open(
            where if permissions is None else evolve(where, permissions=tuple(permissions)),
            principal=principal or getpass.getuser(),
            conversation=conversation,
            client=client or {},
            active=active,
            approver=approver or self._approver,
            progress=progress,
        )

    async def aturn(
        self,
        channel: str = "chat",
        *,
        principal: str | None = None,
        conversation: str | None = None,
        client: Mapping[str, Any] | None = None,
        active: Sequence[str] = (),
        approver: Approver | None = None,
        progress: Progress | None = None,
        permissions: Sequence[str] | None = None,
    ) -> Turn:
        """Do what `turn` does, off the event loop."""
        import asyncio

        return await asyncio.to_thread(
            self.turn,
            channel,
            principal=principal,
            conversation=conversation,
            client=client,
            active=active,
            approver=approver,
            progress=progress,
            permissions=permissions,
        )

    def inbox(self, conversation: str | None, principal: str | None = None) -> list[str]:
        """Take the envelopes of background calls that finished for a conversation, oldest first.

        Args:
            conversation: its id, or None for the calls that belong to none.
            principal: on whose behalf they were made; default: the account's login name.
        """
        taken = self.ledger.inbox.take(principal or getpass.getuser(), conversation)
        return [message.text for message in taken]

    # what is installed

    @property
    def generation(self) -> Generation:
        """The newest generation this process knows."""
        return self.upkeep.current()

    @property
    def snapshot(self) -> Snapshot:
        """The catalogue of the newest generation."""
        return self.generation.snapshot

    def problems(self) -> tuple[Problem, ...]:
        """Return everything set aside, each with the line that fixes it."""
        snapshot = self.snapshot
        return (
            *self.upkeep.problems(),
            *snapshot.problems(),
            *self.plugins.problems,
            *missing_pins(self._doctored(), snapshot),
            *self._other_catalogue(snapshot),
        )

    def _other_catalogue(self, snapshot: Snapshot) -> tuple[Problem, ...]:
        """Return why the catalogue that this host was given is refused, where it was given another one."""
        if self.config.catalogue is None:
            return ()
        if self._given is None:
            from .catalogue.identity import Given

            self._given = Given(self.config.catalogue)
        return self._given.problems(snapshot, own_descriptors().values())

    def commands(self) -> tuple[Mapping[str, click.Command], tuple[str, ...]]:
        """Return the commands that enabled plugins bring, by name, and a line for each that is left out."""
        return self.plugins.commands()

    def find(
        self,
        entries: Sequence[str],
        kind: Kind = "ability",
        channel: str = "chat",
        principal: str | None = None,
    ) -> Found:
        """Search as `find_tools` and `find_skills` do, seen from a channel, and activate nothing."""
        where = channel_named(self.channels, channel)
        sight = self._turns.sight(where, principal or getpass.getuser(), None)
        return self._search.find(self.generation, entries, kind, sight, where)

    def _doctored(self) -> list[Channel]:
        """Return the channels whose pins a person expects: not a built-in delegate nobody configured."""
        return [c for c in self.channels.values() if not c.delegate or c.name in self.config.channels]

    # composition

    def _load_plugins(self) -> Plugins:
        from .build import enabled_plugins

        return enabled_plugins(self.config, self.ledger, self.snapshot, self.upkeep.environment)

    def _make_approvals(self) -> Approvals:
        from .approvals import Approvals

        return Approvals(self.config, self.ledger, self.upkeep, self.plugins, self.authority)

    def _make_servers(self) -> HomeServers:
        from functools import partial

        from .catalogue.loading import load
        from .mcp.home_servers import HomeServers

        return HomeServers(self.config, partial(load, stale=self.upkeep.stale))

    def _make_dispatcher(self) -> Dispatcher:
        from functools import partial

        from .catalogue.loading import files_hash
        from .dispatch.dispatcher import Dispatcher

        return Dispatcher(
            ledger=self.ledger,
            gate=self.gate,
            load=self.servers.load,
            stamp=partial(files_hash, stale=self.upkeep.stale),
            config=self.config,
            embed=self._search.embed,
            data_folder=self._data_folder,
            observe=self._observe if self.plugins.authors("call_finished") else _unobserved,
            deliver=self._deliver,
            reopen=self._turns.reopen,
            trusts=self.approvals.trusts_server,
        )

    def answer(
        self,
        hold_id: str,
        kind: AnswerKind | str = AnswerKind.ONCE,
        *,
        until: datetime | None = None,
        token: str | None = None,
    ) -> Hold:
        """Answer a call that waits; after a yes it is run, once, as the principal it was asked for.

        The live host of its conversation runs it, else this one, now; the result goes to the inbox.

        Args:
            hold_id: its id, or a beginning of it that no other hold has.
            kind: `once`, `always`, `until`, `decline` or `decline_always`.
            until: timezone-aware end of a time-limited allowance.
            token: an approver token; left out, it takes the home's owner at a terminal.

        Raises:
            NotAuthorised: nobody who may answer did.
            ChalieError: `hold-unknown`, `already-decided`, `not-ready` or `not-allowed`.
        """
        return self.approvals.answer(self.dispatcher.run_hold, hold_id, kind, until, token)

    # what the dispatcher and the upkeep tell

    def settings(self, descriptor: Descriptor, permission: str) -> Mapping[str, Setting | None]:
        """Return the person's setting of a permission on each policy channel; None where there is no row."""
        rows = self.ledger.permissions
        found: dict[str, Setting | None] = {}
        for channel in self.channels.values():
            if channel.name == channel.policy:
                row = rows.for_call(channel.name, descriptor.dist, descriptor.name, permission)
                found[channel.name] = None if row is None else row.setting
        return found

    def _data_folder(self, dist: str) -> Path:
        folder = self.config.home / "data" / dist
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    def _observe(self, record: CallRecord) -> None:
        self.plugins.tell("call_finished", record=record)

    def _deliver(self, conversation: str | None, call_id: str, text: str) -> None:
        if self._on_delivery is not None:
            self._on_delivery(conversation, call_id, text)

    def _published(self, generation_id: str, added: Sequence[str], removed: Sequence[str]) -> None:
        self.plugins.tell("generation_published", generation_id=generation_id, added=added, removed=removed)


def _unobserved(_: CallRecord) -> None:
    """Stand for observers where there are none, since every call would pay for asking."""
