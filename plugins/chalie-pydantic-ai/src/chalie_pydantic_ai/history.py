"""What the messages of a run say of Chalie's tools: which were found or called, and which were denied."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from chalie.envelope import parse

__all__ = ["denied", "names"]


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


def denied(messages: Sequence[Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield (id, name, arguments) of each call that the person denied since they spoke last."""
    calls: dict[str, Any] = {}
    for part in _exchange(messages):
        if part.part_kind == "tool-call":
            calls[part.tool_call_id] = part
        elif part.part_kind == "tool-return" and part.outcome == "denied" and part.tool_call_id in calls:
            call = calls[part.tool_call_id]
            yield call.tool_call_id, call.tool_name, call.args_as_dict()


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
