"""What the messages of a run say of Chalie's tools: which were found or called, and which were denied."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from chalie.envelope import parse

__all__ = ["denied", "names", "unfinished"]

#: a call's tool and its arguments.
Called = tuple[str, dict[str, Any]]


def names(messages: Sequence[Any]) -> tuple[str, ...]:
    """Return the tools that were found or called since the person spoke last, in that order, each once.

    A run that goes on after an approval begins with these: they were listed before it stopped.
    """
    found: dict[str, None] = {}
    for part in _exchange(messages):
        if part.part_kind == "tool-call":
            found.setdefault(part.tool_name)
        elif part.part_kind == "tool-return" and part.tool_name == "find_tools":
            found.update(dict.fromkeys(_injected(part.content)))
    return tuple(found)


def unfinished(messages: Sequence[Any]) -> dict[str, Called]:
    """Return the calls that nothing was returned for since the person spoke last, by their ids.

    Where there are any, the run goes on with what the person said to them; else it is a new exchange.
    """
    calls: dict[str, Called] = {}
    for part in _exchange(messages):
        if part.part_kind == "tool-call":
            calls[part.tool_call_id] = (part.tool_name, part.args_as_dict())
        elif part.part_kind == "tool-return":
            calls.pop(part.tool_call_id, None)
    return calls


def denied(messages: Sequence[Any]) -> frozenset[str]:
    """Return the ids of the calls that a person denied."""
    return frozenset(
        part.tool_call_id
        for message in messages
        for part in message.parts
        if part.part_kind == "tool-return" and part.outcome == "denied"
    )


def _exchange(messages: Sequence[Any]) -> Iterable[Any]:
    """Return the parts that follow the last words of the person."""
    parts = [part for message in messages for part in message.parts]
    spoken = [at for at, part in enumerate(parts) if part.part_kind == "user-prompt"]
    return parts[spoken[-1] + 1 if spoken else 0 :]


def _injected(content: object) -> Iterator[str]:
    """Yield the names in what `find_tools` answered; nothing where that cannot be read."""
    try:
        for tool in json.loads(parse(str(content)).body)["injected"]:
            yield str(tool["name"])
    except (ValueError, KeyError, TypeError):
        return
