"""Which permission a call asks for, and which class it is of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..calls import SideEffect
from ..catalogue.descriptor import Descriptor

__all__ = ["Asked", "declared", "derived", "located"]

#: permission, class, and whether a person must be asked whatever the rows say.
Asked = tuple[str, SideEffect, bool]


def declared(descriptor: Descriptor, arguments: Mapping[str, Any]) -> Asked:
    """Return what a call asks for, where that follows from the descriptor and the `action` argument.

    An absent action is the schema's default for it, which is what `run` falls back to.
    """
    if not descriptor.actions:
        return descriptor.name, descriptor.side_effect, False
    action = arguments.get("action")
    if action is None:
        schema = descriptor.parameters.get("properties", {}).get("action", {})
        action = schema.get("default") if isinstance(schema, Mapping) else None
    return _named(descriptor, action)


def derived(descriptor: Descriptor, classify: Callable[[], Any]) -> Asked:
    """Return what a call asks for, where the ability has a `classify` of its own.

    A raise, a time-out or an undeclared action leaves nothing that could be trusted: the bare permission,
    the severest class, and a person must be asked.
    """
    try:
        action = classify()
    except Exception:
        action = None
    return _named(descriptor, action)


def located(destination: Callable[[], Any]) -> str | None:
    """Return where the ability says a message lands; None where it says nothing usable."""
    try:
        found = destination()
    except Exception:
        return None
    return found if isinstance(found, str) else None


def _named(descriptor: Descriptor, action: Any) -> Asked:
    effect = descriptor.actions.get(action) if isinstance(action, str) else None
    if effect is None:
        return descriptor.name, SideEffect.DESTRUCTIVE, True
    return f"{descriptor.name}.{action}", effect, False
