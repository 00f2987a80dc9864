"""From the name a model called to a tool of its turn, or to the reason why there is none."""

from __future__ import annotations

from typing import Final

from .. import names
from ..catalogue.descriptor import Descriptor
from ..result import ToolResult
from .state import TurnState

__all__ = ["resolve"]

_FIND_TOOLS: Final = (names.OWN_DIST, "find_tools")


def resolve(state: TurnState, called: str) -> Descriptor | ToolResult:
    """Return the pinned or active tool that is called so, else the refusal.

    Only what the turn has can be called. Another installed tool is `not-active` where the turn can search
    for it; where it cannot, or the tool may not be found by search, the tool does not exist for the turn.
    """
    found = state.pinned.get(called) or state.active.get(called)
    if found is not None:
        return found
    tools = state.tools()
    for exposed, descriptor in tools.items():
        if names.alias(exposed) == called:  # a name that a model API refuses is listed under its alias
            return descriptor
    held = {descriptor.key: descriptor for descriptor in tools.values()}
    searches = _FIND_TOOLS in held
    installed = [
        descriptor
        for descriptor in state.snapshot.resolve(called)
        if descriptor.key in held or (searches and descriptor.discoverable)
    ]
    if len(installed) > 1:
        return _ambiguous(state, called, installed)
    if installed:
        key = installed[0].key
        return held[key] if key in held else _not_active(called)
    return (_unready(state, called) if searches else None) or _unknown(called, searches)


def _ambiguous(state: TurnState, called: str, owners: list[Descriptor]) -> ToolResult:
    choices = tuple(state.holds(owner.key) or state.snapshot.exposed(owner) for owner in owners)
    return ToolResult.error(
        f"{called} is the name of {len(owners)} tools, of {', '.join(owner.dist for owner in owners)}",
        code="ambiguous-name",
        hint="call the one you mean by its qualified name, after finding it with find_tools.",
        valid=choices,
    )


def _not_active(called: str) -> ToolResult:
    return ToolResult.error(
        f"{called} is installed but not active in this turn",
        code="not-active",
        hint=f'call find_tools with {{"query": ["{called}"]}} first, then call {called} again.',
    )


def _unready(state: TurnState, called: str) -> ToolResult | None:
    """Return why a tool of that name cannot be called, where its package is known but set aside."""
    for row in state.snapshot.unready(called):
        known = [each for each in state.snapshot.of(row.name) if called in (each.name, row.name)]
        if known and not any(each.discoverable for each in known):
            continue
        if row.state == "quarantined":
            return ToolResult.error(
                f"{called} cannot be called: its package {row.name} could not be read safely",
                code="quarantined",
                hint="do not retry; `chalie doctor` tells the person the reason and the fix.",
            )
        return ToolResult.error(
            f"{called} cannot be called now: its package {row.name} is {row.state}",
            code="not-ready",
            hint="it may be ready in the next turn; do not retry in this one.",
        )
    return None


def _unknown(called: str, searches: bool) -> ToolResult:
    return ToolResult.error(
        f"there is no tool {names.shown(called[:128])!r} here",
        code="unknown-tool",
        hint="describe what you need to find_tools." if searches else "call one of the tools you were given.",
    )
