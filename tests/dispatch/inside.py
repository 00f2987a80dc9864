"""A host's inside for one test: a real ledger and gate, abilities made in the test, and a turn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from attrs import evolve
from chalie import names
from chalie.ability import Ability, facts
from chalie.calls import Answer, AnswerKind, CallRecord, Channel, HoldView, SideEffect
from chalie.catalogue.descriptor import Descriptor
from chalie.config import Config
from chalie.dispatch.dispatcher import Dispatcher
from chalie.dispatch.state import TurnState
from chalie.envelope import Frame, parse
from chalie.gate.gate import Gate
from chalie.ledger import Hold, Ledger, TrailRow
from chalie.result import ToolResult

CHAT = Channel("chat", "chat", has_person=True, pins=(), background=True)
QUIET = Channel("external_agent", "external_agent", has_person=False, pins=(), background=False)


class Plain(Ability):
    """What the tests' abilities have in common: facts that do not matter to the test."""

    called: ClassVar[str] = "plain"
    properties: ClassVar[dict[str, Any]] = {}
    required: ClassVar[list[str]] = []

    def name(self) -> str:
        return self.called

    def summary(self) -> str:
        return f"Do what {self.called} does."

    def examples(self) -> list[str]:
        return [f"{word} {self.called}" for word in ("do", "try", "run", "use", "start", "want")]

    def search_tooltip(self) -> str:
        return self.called

    def parameters(self) -> dict[str, Any]:
        return {"type": "object", "properties": self.properties, "required": self.required}

    def run(self, params: Any) -> Any:
        return ToolResult.ok(params)


class Shelf:
    """Stands for a snapshot: what a test put on it is what is installed."""

    def __init__(self) -> None:
        self.descriptors: dict[tuple[str, str], Descriptor] = {}
        self.aside: list[Any] = []

    def get(self, dist: str, name: str) -> Descriptor | None:
        return self.descriptors.get((dist, name))

    def owners(self, name: str) -> tuple[Descriptor, ...]:
        return tuple(each for each in self.descriptors.values() if each.name == name)

    def resolve(self, called: str) -> tuple[Descriptor, ...]:
        exact = tuple(
            each
            for each in self.descriptors.values()
            if called in (self.exposed(each), names.qualified(each.dist, each.name))
        )
        return exact or self.owners(called)

    def exposed(self, descriptor: Descriptor) -> str:
        if len(self.owners(descriptor.name)) == 1:
            return descriptor.name
        return names.qualified(descriptor.dist, descriptor.name)

    def unready(self, text: str) -> tuple[Any, ...]:
        return tuple(row for row in self.aside if text in row.names)

    def distribution(self, dist: str) -> None:
        return None

    def state(self, dist: str) -> str:
        return "ready"

    def of(self, dist: str) -> tuple[Descriptor, ...]:
        return ()


class Person:
    """An approver that answers what the test says and remembers what it was shown."""

    def __init__(self, kind: AnswerKind = AnswerKind.ONCE) -> None:
        self.kind = kind
        self.shown: list[HoldView] = []

    def ask(self, hold: HoldView) -> Answer:
        self.shown.append(hold)
        return Answer(self.kind, "token:test")


class Inside:
    """A dispatcher with everything around it real but the packages."""

    def __init__(self, home: Path, *, ask_timeout_s: float | None = None, **limits: Any) -> None:
        home.mkdir(mode=0o700, exist_ok=True)
        self.home = home
        self.config = evolve(Config.load(home))
        if limits:
            self.config = evolve(self.config, limits=evolve(self.config.limits, **limits))
        self.ledger = Ledger.open(home / "ledger.sqlite", retention=self.config.retention)
        self.gate = Gate(self.ledger, ask_timeout_s=ask_timeout_s)
        self.shelf = Shelf()
        self.classes: dict[tuple[str, str], type[Ability]] = {}
        self.observed: list[CallRecord] = []
        self.delivered: list[tuple[str | None, str, str]] = []
        self.stamps: dict[str, str] = {}
        self.loaded: list[str] = []
        self.dispatcher = Dispatcher(
            ledger=self.ledger,
            gate=self.gate,
            load=self._load,
            config=self.config,
            embed=_embed,
            data_folder=self._folder,
            observe=self.observed.append,
            deliver=lambda *told: self.delivered.append(told),
            stamp=lambda descriptor, _: self.stamps.get(descriptor.dist, "1"),
            reopen=self._reopen,
        )

    def add(
        self, cls: type[Ability], dist: str = "chalie-ability-test", *, allow: bool = True, **more: Any
    ) -> Descriptor:
        """Install an ability; a person's row allows it on every channel unless the test is about that."""
        target = f"{cls.__module__}:{cls.__qualname__}"
        found = facts(cls(), dist=dist, dist_version="1.0", target=target)
        descriptor = evolve(_descriptor(found), **more).sealed()
        self.shelf.descriptors[descriptor.key] = descriptor
        self.classes[descriptor.key] = cls
        if allow:
            for channel in (CHAT, QUIET):
                self.ledger.permissions.set(channel.policy, dist, descriptor.name, "allow", by="test")
        return descriptor

    def turn(self, *active: Descriptor, channel: Channel = CHAT, **more: Any) -> TurnState:
        more.setdefault("principal", "ada")
        state = TurnState(channel=channel, snapshot=self.shelf, **more)  # type: ignore[arg-type]
        for descriptor in active:
            state.activate(descriptor)
        return state

    def call(self, state: TurnState, name: str, arguments: Any = None, **more: Any) -> Frame:
        return parse(self.dispatcher.call(state, name, arguments, **more))

    async def acall(self, state: TurnState, name: str, arguments: Any = None, **more: Any) -> Frame:
        return parse(await self.dispatcher.acall(state, name, arguments, **more))

    def rows(self, event: str | None = None) -> list[TrailRow]:
        """Return the trail's rows of calls, oldest first."""
        rows = reversed(self.ledger.trail.query(event=event or "call.", limit=1000))
        return list(rows)

    def close(self) -> None:
        self.dispatcher.close(drain_s=0.0)
        self.ledger.close()

    def _reopen(self, hold: Hold) -> tuple[TurnState, Descriptor | None]:
        state = self.turn(principal=hold.principal, conversation=hold.conversation)
        return state, self.shelf.get(hold.dist, hold.name)

    def _load(self, descriptor: Descriptor, snapshot: Any) -> type[Ability]:
        self.loaded.append(descriptor.name)
        return self.classes[descriptor.key]

    def _folder(self, dist: str) -> Path:
        folder = self.home / "data" / dist
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder


def _embed(texts: Sequence[str]) -> list[list[float]]:
    return [[float(len(text)), 1.0] for text in texts]


def _descriptor(found: dict[str, Any]) -> Descriptor:
    values = dict(found)
    values["examples"] = tuple(values["examples"])
    values["actions"] = {key: SideEffect(value) for key, value in values["actions"].items()}
    values["side_effect"] = SideEffect(values["side_effect"])
    values["action_required"] = {key: tuple(value) for key, value in values["action_required"].items()}
    return Descriptor(**values)
