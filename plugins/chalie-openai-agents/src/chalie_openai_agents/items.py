"""What the items of a stored run say of Chalie's tools."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from chalie.envelope import parse

__all__ = ["names"]


def names(state: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the tools that were found or called in a run, in that order, each once.

    A run that goes on after an approval begins with these: they were listed before it stopped.

    Args:
        state: the run's state as JSON values, without what it was asked.
    """
    found: dict[str, None] = {}
    for item in _items({key: value for key, value in state.items() if key != "original_input"}):
        if item.get("type") == "function_call":
            found.setdefault(str(item.get("name")))
        else:
            found.update(dict.fromkeys(_injected(item.get("output"))))
    return tuple(found)


def _items(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield each call and each output of a call, however deep."""
    if isinstance(value, Mapping):
        if value.get("type") in ("function_call", "function_call_output"):
            yield value
        else:
            for inner in value.values():
                yield from _items(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _items(inner)


def _injected(output: object) -> Iterator[str]:
    """Yield the names in what `find_tools` answered; nothing where that cannot be read."""
    try:
        frame = parse(str(output))
        for tool in json.loads(frame.body)["injected"] if frame.name == "find_tools" else ():
            yield str(tool["name"])
    except (ValueError, KeyError, TypeError):
        return
