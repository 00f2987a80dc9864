"""What a client is shown: the tools of a turn as entries of an MCP listing, and the door to all others."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from attrs import frozen

from .. import names, schema
from ..calls import SideEffect
from ..catalogue.descriptor import Descriptor
from ..envelope import render
from ..errors import NameRefused
from ..names import OWN_DIST
from ..result import ToolResult

if TYPE_CHECKING:
    from mcp_types import Tool

    from ..dispatch.state import TurnState

__all__ = ["CALL_TOOL", "Kept", "Offer", "definitions", "hints", "mark", "name_of", "offered", "worst_hints"]

#: the door to every tool, for clients whose list of tools stays as it is.
CALL_TOOL: Final = "call_tool"

#: bytes of a tool's entry, and of all definitions beside a search's answer.
_LARGEST: Final = 256 * 1024
_LARGEST_ANSWER: Final = 96 * 1024
_MOST_KEPT: Final = 4096
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")

_CALL_TOOL: Final[dict[str, Any]] = {
    "name": CALL_TOOL,
    "description": (
        "Call any tool that find_tools found, by its name. The answer says how it went; "
        "what a tool may do is decided for that tool, not for this one."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The tool's name, as find_tools gave it."},
            "arguments": {
                "type": "object",
                "description": "The tool's arguments, as its inputSchema in the answer of find_tools says.",
            },
        },
        "required": ["name"],
        "additionalProperties": False,
    },
    # whatever it is used for: a client that does not look further must expect the worst
    "annotations": {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
}

_HINTS: Final[Mapping[SideEffect, dict[str, bool]]] = {
    SideEffect.READ: {"readOnlyHint": True},
    SideEffect.COMPUTATION: {"readOnlyHint": True, "openWorldHint": False},
    SideEffect.WRITE: {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False},
    SideEffect.CONNECT: {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": True},
    SideEffect.EXTERNAL_WRITE: {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": True},
    SideEffect.EXTERNAL_SEND: {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": True},
    SideEffect.DESTRUCTIVE: {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
}


#: (name, distribution, descriptor's hash, whether background calls are offered) -> the entry.
Kept: TypeAlias = "dict[tuple[str, str, str, bool], Tool]"


@frozen
class Offer:
    """A listing.

    Attributes:
        tools: its entries, each fit for the wire.
        left_out: tool -> why it is not among them.
        mark: differs from another listing's where a client would see a difference.
    """

    tools: tuple[Tool, ...]
    left_out: Mapping[str, str]
    mark: int


def offered(state: TurnState, found: Iterable[Descriptor] = (), kept: Kept | None = None) -> Offer:
    """Return what can be called in a turn, each tool looked at singly: a bad one costs nobody but itself.

    Args:
        state: the turn's; its pinned and active tools are listed.
        found: what was found before, in other turns of the same client.
        kept: entries made before: a client reads its list after each search, and most of it is as it was.
    """
    kept = {} if kept is None else kept
    tools: list[Tool] = []
    left_out: dict[str, str] = {}
    named = list(_named(state, found))
    seen = {CALL_TOOL}
    for name, exposed, descriptor in named:
        try:
            if name is None or name in seen:
                raise ValueError("its name cannot be sent, or another tool of the list has it")
            tools.append(_entry(name, descriptor, state.channel.background, kept))
        except Exception as error:
            left_out[exposed] = " ".join(str(error).split())[:300] or type(error).__name__
            continue
        seen.add(name)
    tools.append(_tool(_CALL_TOOL))
    return Offer(tuple(tools), left_out, _mark(named))


def mark(state: TurnState, found: Iterable[Descriptor] = ()) -> int:
    """Return what `offered` would mark its listing with, without making it."""
    return _mark(_named(state, found))


def _mark(named: Iterable[tuple[str | None, str, Descriptor]]) -> int:
    return hash(tuple((name, descriptor.hash) for name, _, descriptor in named))


def _named(state: TurnState, found: Iterable[Descriptor]) -> Iterator[tuple[str | None, str, Descriptor]]:
    """Yield (what a client calls it by, the turn's name, tool), the host's own first, whatever was found.

    What a client has in its prompt then stays as it was.
    """
    held = state.tools()
    keys = {descriptor.key for descriptor in held.values()}
    later = {state.snapshot.exposed(each): each for each in found if each.key not in keys}
    for exposed, descriptor in sorted(
        [*held.items(), *later.items()], key=lambda item: item[1].dist != OWN_DIST
    ):
        try:
            yield called(state, exposed, descriptor), exposed, descriptor
        except NameRefused:
            yield None, exposed, descriptor


def called(state: TurnState, exposed: str, descriptor: Descriptor) -> str:
    """Return what a client calls a tool by: a name every model API takes, and never the door's own."""
    name = names.alias(exposed)
    return names.alias(state.snapshot.qualified(descriptor)) if name == CALL_TOOL else name


def name_of(state: TurnState, descriptor: Descriptor) -> str:
    """Return what a client calls a tool of a turn by."""
    return called(state, state.holds(descriptor.key) or state.snapshot.exposed(descriptor), descriptor)


def definition(name: str, descriptor: Descriptor, background: bool) -> dict[str, Any]:
    """Return a tool's entry as it goes over the wire, with what a client needs to gate it."""
    entry = schema.assemble(
        name, descriptor.summary, descriptor.parameters, background=background, style="mcp"
    )
    dialect = descriptor.parameters.get("$schema")
    if dialect is not None:  # of no use to a model, but a client may check by it
        entry["inputSchema"] = {"$schema": dialect, **entry["inputSchema"]}
    return {**entry, "annotations": worst_hints(descriptor), "_meta": _facts(descriptor)}


def worst_hints(descriptor: Descriptor) -> dict[str, Any]:
    """Return a tool's hints by the worst it can do.

    What another server says of its own tools is passed on to nobody: a client might believe it from us.
    """
    if descriptor.dist.startswith("mcp:"):
        return dict(_HINTS[SideEffect.DESTRUCTIVE])
    if descriptor.dist == OWN_DIST:
        return {"readOnlyHint": True, "openWorldHint": False}
    worst = max((effect for _, effect in descriptor.permissions()), key=lambda effect: effect.severity)
    return dict(_HINTS[worst])


def hints(state: TurnState, descriptors: Iterable[Descriptor]) -> dict[str, Any]:
    """Return name -> what a client gates a tool by, for the `_meta` of an answer."""
    return {
        name_of(state, each): {
            "annotations": worst_hints(each),
            **_facts(each),
        }
        for each in descriptors
    }


def definitions(state: TurnState, found: Iterable[Descriptor]) -> str | None:
    """Return the definitions of found tools as one frame, for a model whose list of tools stays as it is.

    None where there are none. Those that there is no room for are named at the end.
    """
    entries: list[dict[str, Any]] = []
    more: list[str] = []
    room = _LARGEST_ANSWER
    for descriptor in found:
        name = name_of(state, descriptor)
        entry = definition(name, descriptor, state.channel.background)
        entry.pop("_meta")
        size = len(json.dumps(entry, ensure_ascii=False))
        if size > room:
            more.append(name)
            continue
        room -= size
        entries.append(entry)
    if not entries and not more:
        return None
    body: dict[str, Any] = {"call_by": CALL_TOOL, "tools": entries}
    if more:
        body["ask_again_alone_for"] = more
    return render("definitions", ToolResult.ok(body))


def _facts(descriptor: Descriptor) -> dict[str, Any]:
    return {
        "chalie/package": descriptor.dist,
        "chalie/permissions": {
            permission: (SideEffect.DESTRUCTIVE if names.is_server(descriptor.dist) else effect).value
            for permission, effect in descriptor.permissions()
        },
    }


def _entry(name: str, descriptor: Descriptor, background: bool, kept: Kept) -> Tool:
    """Return a tool's entry in the SDK's form.

    Raises:
        ValueError: as `_tool`.
    """
    key = (name, descriptor.dist, descriptor.hash, background)
    entry = kept.get(key)
    if entry is None:
        entry = _tool(definition(name, descriptor, background))
        if len(kept) >= _MOST_KEPT:
            kept.clear()
        kept[key] = entry
    return entry


def _tool(entry: Mapping[str, Any]) -> Tool:
    """Return an entry in the SDK's form.

    Raises:
        ValueError: no client could read it; one such entry would make a client refuse the whole list.
    """
    from mcp_types import Tool

    if not _NAME.fullmatch(entry["name"]):
        raise ValueError("its name cannot be sent")
    shape = entry["inputSchema"]
    if not isinstance(shape, Mapping) or shape.get("type") != "object":
        raise ValueError("its schema is not that of an object")
    text = json.dumps(entry, ensure_ascii=False, allow_nan=False)
    if len(text.encode("utf-8")) > _LARGEST:
        raise ValueError(f"it takes more than {_LARGEST} bytes")
    return Tool.model_validate(json.loads(text), by_name=False)
