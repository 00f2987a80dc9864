"""Which permission a call asks for, and which class it is of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from .. import schema
from ..calls import SideEffect
from ..catalogue.descriptor import Descriptor
from ..gate.hiding import hidden, leaves

__all__ = ["Asked", "declared", "derived", "located", "said"]

#: permission, class, whether a person must be asked whatever the rows say, and why in the ability's words.
Asked = tuple[str, SideEffect, bool, str]

#: characters of such a reason.
_LONGEST: Final = 200


def declared(descriptor: Descriptor, arguments: Mapping[str, Any]) -> Asked:
    """Return what a call asks for, where that follows from the descriptor and the `action` argument.

    An absent action is the schema's default for it, which is what `run` falls back to.
    """
    if not descriptor.actions:
        return descriptor.name, descriptor.side_effect, False, ""
    action = arguments.get("action")
    if action is None:
        schema = descriptor.parameters.get("properties", {}).get("action", {})
        action = schema.get("default") if isinstance(schema, Mapping) else None
    return _named(descriptor, action)


def derived(descriptor: Descriptor, classify: Callable[[], Any], arguments: Mapping[str, Any]) -> Asked:
    """Return what a call asks for, where the ability has a `classify` of its own.

    A raise, a time-out or an undeclared action leaves nothing that could be trusted: the bare permission,
    the severest class, and a person must be asked. What was raised may say why: a `classify` raises to have
    a person asked about this very call.
    """
    try:
        action = classify()
    except Exception as error:
        paths = schema.secret_paths(descriptor.parameters)
        secrets = tuple(leaves(arguments, schema.mask(arguments, paths))) if paths else ()
        return _named(descriptor, None, hidden(said(error), secrets) if secrets else said(error))
    return _named(descriptor, action)


def located(destination: Callable[[], Any]) -> str | None:
    """Return where the ability says a message lands; None where it says nothing usable."""
    try:
        found = destination()
    except Exception:
        return None
    return found if isinstance(found, str) else None


def said(error: Exception) -> str:
    """Return an exception's own text as one bounded line; empty where it has none."""
    try:
        line = " ".join(str(error).encode("utf-8", "backslashreplace").decode("utf-8").split())
    except BaseException:  # even SystemExit: it is only text that is asked for
        return ""
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _named(descriptor: Descriptor, action: Any, why: str = "") -> Asked:
    effect = descriptor.actions.get(action) if isinstance(action, str) else None
    if effect is None:
        return descriptor.name, SideEffect.DESTRUCTIVE, True, why
    return f"{descriptor.name}.{action}", effect, False, ""
