"""An ability: a tool, as its author writes it.

    from chalie import Ability, SideEffect, ToolResult

    class Dice(Ability):
        side_effect = SideEffect.COMPUTATION

        def name(self): return "dice"
        def summary(self): return "Roll dice and add them up."
        def examples(self): return ["roll two dice", "throw a die", "give me a random number from 1 to 6"]
        def search_tooltip(self): return "roll dice"
        def parameters(self):
            return {"type": "object", "properties": {"count": {"type": "integer", "minimum": 1}}}

        def run(self, params):
            count = self.param(params, "count", default=1, clamp=(1, 100))
            return ToolResult.ok(sum(random.randint(1, 6) for _ in range(count)))

A line in the package's `pyproject.toml` makes it a tool; there is nothing to register:

    [project.entry-points."chalie.abilities"]
    dice = "my_dice:Dice"
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, Protocol, TypeVar

from . import schema
from .calls import SideEffect
from .errors import ArgumentRefused, DescribeFailed, Leaving, warn_leaving
from .names import OWN_DIST, check_name
from .result import ToolResult

__all__ = ["Ability", "Context", "facts"]

_Self = TypeVar("_Self", bound="Ability")
#: What a subclass may use but not redefine: the host relies on them.
_SEALED: Final = ("tool_schema", "bind", "arguments_for", "parameter_schema")
#: What an ability may have now and not for ever, by name: a class that has it is warned about.
_LEAVING: Final[dict[str, Leaving]] = {}
_LATENCIES: Final = ("low", "medium", "high", "interactive")
_ACTION = re.compile(r"[a-z][a-z0-9_-]{0,63}")
# Control characters but line break and tab, direction marks, surrogates: text a reader cannot see or store.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Context(Protocol):
    """What a call offers its ability, and all it offers; reach it as `self.context` in `run`.

    Attributes:
        principal: on whose behalf the call runs; keep different principals' data apart.
        conversation: the conversation's id, or None outside of one.
        channel: the channel's name, as in `chat`.
    """

    principal: str
    conversation: str | None
    channel: str

    @property
    def client(self) -> Mapping[str, Any]:
        """What the client told of itself (time zone, locale, position); may be empty."""
        ...

    @property
    def cancelled(self) -> bool:
        """Whether the result is no longer wanted; a long `run` looks now and then and returns early."""
        ...

    @property
    def data_folder(self) -> Path:
        """The package's own folder in the home, made on first use and private to the account."""
        ...

    def progress(self, fraction: float | None, message: str = "") -> None:
        """Say how far the work is: `fraction` from 0 to 1, or None where that is not known."""
        ...

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one unit vector per text, made by the home's embedding model, without any network."""
        ...


class Ability(ABC):
    """A tool. Subclass it, give the five facts and `run`, and name the class in an entry point.

    An instance is made without arguments, freshly for each call. The five facts must be the same each time
    they are asked for, on every machine and without a context: they are read when the package is installed.

    Class facts, all optional:
        namespace: the group it belongs to; None for the first word of its name.
        version: the ability's own version; change it when its meaning changes.
        discoverable: whether search may show it. One that is not can only be pinned to a channel.
        actions: for a tool that does several things: action -> the mark it leaves. The action is then the
            argument `action`, unless `classify` says otherwise.
        side_effect: the mark a call leaves, where there are no actions.
        action_required: action -> the parameters it cannot do without.
        requires_approval: whether it asks to be asked about, whatever policies say.
        latency: how long a call takes: low (under a second), medium, high, or interactive.
        isolate: whether it runs in a process of its own package, so that a crash costs that call alone.
        time_limit_s: seconds after which a call is given up, or None for the host's own limit.
        aliases: other spellings of a parameter that models use -> the parameter, as in {"city": "location"}.
    """

    namespace: ClassVar[str | None] = None
    version: ClassVar[str] = "1"
    discoverable: ClassVar[bool] = True
    actions: ClassVar[Mapping[str, SideEffect]] = {}
    side_effect: ClassVar[SideEffect] = SideEffect.WRITE
    action_required: ClassVar[Mapping[str, Sequence[str]]] = {}
    requires_approval: ClassVar[bool] = False
    latency: ClassVar[Literal["low", "medium", "high", "interactive"]] = "low"
    isolate: ClassVar[bool] = False
    time_limit_s: ClassVar[float | None] = None
    aliases: ClassVar[Mapping[str, str]] = {}

    _context: Context | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Refuse a class that redefines what the host relies on.

        Raises:
            TypeError: naming the class and the method.
        """
        super().__init_subclass__(**kwargs)
        for method in _SEALED:
            if getattr(cls, method) is not getattr(Ability, method):
                raise TypeError(
                    f"{cls.__module__}.{cls.__qualname__} may not redefine {method}(): the host makes it "
                    "the same way for every ability. Change parameters() or summary() instead"
                )
        for name in _LEAVING.keys() & vars(cls).keys():
            warn_leaving(f"{name} of an ability", _LEAVING[name])

    @abstractmethod
    def name(self) -> str:
        """Return what the model calls it by: `[a-z][a-z0-9_]*`, up to 64, without `__`."""

    @abstractmethod
    def summary(self) -> str:
        """Return one or two sentences on what it does, for the model and for search."""

    @abstractmethod
    def examples(self) -> Sequence[str]:
        """Return six to eight things a person might say who needs it, each in other words."""

    @abstractmethod
    def search_tooltip(self) -> str:
        """Return a few words for a list on a screen."""

    @abstractmethod
    def parameters(self) -> Mapping[str, Any] | type:
        """Return the JSON Schema of the arguments, or a frozen attrs class that stands for one.

        With a class, `run` and `classify` get an instance of it. `act_summary` and `async` are the host's own
        parameters and may not be among these.
        """

    @abstractmethod
    def run(self, params: Any) -> ToolResult | Awaitable[ToolResult]:
        """Do the work and return a `ToolResult`; may be `async def`.

        Args:
            params: the arguments, healed and validated; a dict, or an instance of the class that `parameters`
                returns.
        """

    def classify(self, params: Any) -> str:
        """Return which of `actions` a call with these arguments is: by default the argument `action`.

        Override it where the action follows from other arguments. It decides which permission and which class
        the call is judged by, so it must agree with what `run` does. A raise or an answer that is no key
        of `actions` makes the call one that is always asked about, in the class `destructive`; the text of
        what was raised is the reason that people see, as one line of at most 200 characters.

        Raises:
            ArgumentRefused: the arguments name no action.
        """
        action = _get(params, "action")
        if action is None:
            raise ArgumentRefused(
                "the call names no action", code="missing-params", valid=tuple(self.actions)
            )
        return str(action)

    def destination(self, params: Any) -> str | None:
        """Return the id of the conversation that a message of this call lands in; None elsewhere or unknown.

        For tools that send (`SideEffect.EXTERNAL_SEND`): a policy may let a message through unasked where it
        lands in the very conversation that is being answered, that is where this returns
        `self.context.conversation`. Work it out from what is known of that (`self.context.client`) and from
        where `run` will really send; never take the model's word for it. A raise counts as None.
        """
        return None

    @property
    def context(self) -> Context:
        """What this call offers: principal, conversation, channel, client, cancellation, progress, embedding.

        Raises:
            RuntimeError: there is no call: facts are read without one.
        """
        if self._context is None:
            raise RuntimeError(
                f"{type(self).__name__}.context exists only while a call runs; name, summary, examples, "
                "search_tooltip and parameters must do without it"
            )
        return self._context

    def bind(self: _Self, context: Context) -> _Self:
        """Bind a fresh instance to the call it is made for, and return it. The host does this."""
        self._context = context
        return self

    def parameter_schema(self) -> Mapping[str, Any]:
        """Return the JSON Schema of the arguments, also where `parameters` returns a class."""
        parameters = self.parameters()
        return schema.schema_of(parameters) if isinstance(parameters, type) else parameters

    def arguments_for(self, arguments: Mapping[str, Any]) -> Any:
        """Return what `run` and `classify` get: an instance where `parameters` returns a class, else a dict.

        Raises:
            ArgumentRefused: the class does not take the arguments.
        """
        parameters = self.parameters()
        return schema.structure(parameters, arguments) if isinstance(parameters, type) else dict(arguments)

    def tool_schema(
        self, background: bool = False, style: Literal["anthropic", "openai", "mcp"] = "mcp"
    ) -> dict[str, Any]:
        """Return what a model is shown of this ability, as the API of that style takes it."""
        return schema.assemble(
            self.name(), self.summary(), self.parameter_schema(), background=background, style=style
        )

    @staticmethod
    def param(
        params: Any,
        name: str,
        *,
        default: Any = None,
        choices: Iterable[Any] | None = None,
        clamp: tuple[float, float] | None = None,
        required: bool = False,
    ) -> Any:
        """Return one argument, made fit for use.

        Args:
            params: what `run` got.
            name: the parameter's name.
            default: what an absent or null argument stands for.
            choices: the accepted values; text is compared without regard to case and returned as listed.
            clamp: (lowest, highest): a number beyond is brought to the nearer end.
            required: refuse the call where the argument is absent or null.

        Raises:
            ArgumentRefused: the argument is missing, is not one of the choices, or is no number to clamp. The
                model gets it as an error result; `run` need not catch it.
        """
        value = _get(params, name)
        if value is None:
            if required:
                raise ArgumentRefused(f"{name} is required", code="missing-params", hint=f"pass {name}=")
            return default
        if choices is not None:
            value = _chosen(name, value, tuple(choices))
        if clamp is not None:
            if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
                raise ArgumentRefused(f"{name} must be a number from {clamp[0]} to {clamp[1]}")
            value = min(max(value, clamp[0]), clamp[1])
        return value


def _get(params: Any, name: str) -> Any:
    return params.get(name) if isinstance(params, Mapping) else getattr(params, name, None)


def _chosen(name: str, value: Any, choices: tuple[Any, ...]) -> Any:
    for choice in choices:
        if value == choice and isinstance(value, bool) == isinstance(choice, bool):
            return choice
    if isinstance(value, str):
        folded = value.strip().casefold()
        for choice in choices:
            if isinstance(choice, str) and choice.casefold() == folded:
                return choice
    raise ArgumentRefused(
        f"{name} is not one of its accepted values",
        hint=f"pass one of the values listed as {name}=",
        valid=tuple(str(choice) for choice in choices),
    )


def facts(ability: Ability, *, dist: str, dist_version: str, target: str) -> dict[str, Any]:
    """Return every fact of an ability's descriptor but its hash, checked, as plain JSON values.

    Args:
        ability: an instance without a context.
        dist: normalised name of the owning distribution; the host's own is `chalie`.
        dist_version: the distribution's version.
        target: where the class is, as `module:qualname`.

    Raises:
        NameRefused: the name breaks the rules.
        SchemaRefused: the parameters are no usable schema, or take one of the host's own names.
        DescribeFailed: any other fact is missing, too long, or of the wrong kind.
    """
    cls = type(ability)
    name = ability.name()
    if dist != OWN_DIST:
        check_name(name)
    read = _Reader(f"{name} ({target})")
    parameters = schema.self_contained(ability.parameter_schema())
    schema.refuse_injected(parameters)
    actions = read.actions(cls.actions)
    return {
        "dist": dist,
        "dist_version": dist_version,
        "target": target,
        "name": name,
        "summary": read.text("summary()", ability.summary(), 2000),
        "examples": read.examples(ability.examples()),
        "search_tooltip": read.text("search_tooltip()", ability.search_tooltip(), 200),
        "parameters": parameters,
        "namespace": read.text("namespace", cls.namespace or name.split("_", 1)[0], 64),
        "version": read.text("version", cls.version, 64),
        "discoverable": read.flag("discoverable", cls.discoverable),
        "actions": actions,
        "side_effect": read.effect("side_effect", cls.side_effect),
        "action_required": read.action_required(cls.action_required, actions, schema.known_names(parameters)),
        "requires_approval": read.flag("requires_approval", cls.requires_approval),
        "latency": read.latency(cls.latency),
        "isolate": read.flag("isolate", cls.isolate),
        "time_limit_s": read.seconds(cls.time_limit_s),
        "classifies": cls.classify is not Ability.classify,
        "locates": cls.destination is not Ability.destination,
        "aliases": read.aliases(cls.aliases, schema.known_names(parameters)),
    }


class _Reader:
    """Checks one ability's facts one by one; every refusal names the ability and the fact."""

    def __init__(self, whose: str) -> None:
        self.whose = whose

    def refused(self, fact: str, reason: str, hint: str | None = None) -> DescribeFailed:
        return DescribeFailed(f"{fact} of {self.whose} {reason}", hint=hint)

    def text(self, fact: str, value: Any, longest: int) -> str:
        if not isinstance(value, str) or not value.strip():
            raise self.refused(fact, "is empty or no text", f"return 1 to {longest} characters")
        if len(value) > longest:
            raise self.refused(fact, f"has {len(value)} characters", f"keep it to {longest}")
        unseen = _UNSEEN.search(value)
        if unseen:
            raise self.refused(
                fact, f"holds the invisible character U+{ord(unseen.group()):04X}", "remove it"
            )
        return str(value)

    def flag(self, fact: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise self.refused(fact, f"is {value!r}", "use True or False")
        return value

    def effect(self, fact: str, value: Any) -> str:
        try:
            return SideEffect(value).value
        except ValueError:
            known = ", ".join(effect.value for effect in SideEffect)
            raise self.refused(fact, f"is {value!r}", f"use a SideEffect: {known}") from None

    def examples(self, value: Any) -> list[str]:
        if isinstance(value, str) or not isinstance(value, Sequence) or not 1 <= len(value) <= 50:
            raise self.refused("examples()", "is no list of 1 to 50 texts", "return six to eight")
        return [self.text(f"example {at}", example, 500) for at, example in enumerate(value, 1)]

    def actions(self, value: Any) -> dict[str, str]:
        if not isinstance(value, Mapping) or len(value) > 64:
            raise self.refused("actions", "is no dict of up to 64 actions", 'use {"send": SideEffect.WRITE}')
        for action in value:
            if not isinstance(action, str) or not _ACTION.fullmatch(action):
                raise self.refused("actions", f"has the key {action!r}", "use a-z, 0-9, _ and -")
        return {action: self.effect(f"actions[{action!r}]", effect) for action, effect in value.items()}

    def action_required(
        self, value: Any, actions: Mapping[str, Any], names: frozenset[str]
    ) -> dict[str, list[str]]:
        required: dict[str, list[str]] = {}
        for action, needed in self.table("action_required", value).items():
            if action not in actions:
                raise self.refused("action_required", f"names {action!r}", "name one of its actions")
            if isinstance(needed, str) or not all(name in names for name in needed):
                raise self.refused(
                    f"action_required[{action!r}]", f"is {needed!r}", "list parameters of its own schema"
                )
            required[action] = list(needed)
        return required

    def aliases(self, value: Any, names: frozenset[str]) -> dict[str, str]:
        for alias, name in self.table("aliases", value).items():
            if not isinstance(alias, str) or name not in names or alias in names:
                raise self.refused("aliases", f"has {alias!r}: {name!r}", "map a new spelling to a parameter")
        return dict(value)

    def table(self, fact: str, value: Any) -> Mapping[Any, Any]:
        if not isinstance(value, Mapping) or len(value) > 256:
            raise self.refused(fact, "is no dict of up to 256 entries")
        return value

    def latency(self, value: Any) -> str:
        if value not in _LATENCIES:
            raise self.refused("latency", f"is {value!r}", f"use one of {', '.join(_LATENCIES)}")
        return str(value)

    def seconds(self, value: Any) -> float | None:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 86_400:
            raise self.refused("time_limit_s", f"is {value!r}", "use seconds above 0, under a day, or None")
        return float(value)
