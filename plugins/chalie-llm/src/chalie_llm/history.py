"""What the messages of a chain say of Chalie's tools."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from chalie.envelope import parse

__all__ = ["names"]


def names(messages: Sequence[Any]) -> tuple[str, ...]:
    """Return the tools that were found or called since the person spoke last, in that order, each once.

    A chain that goes on after a pause begins with these: they were listed before it stopped.
    """
    spoken = [at for at, message in enumerate(messages) if message.role == "user"]
    found: dict[str, None] = {}
    for message in messages[spoken[-1] + 1 if spoken else 0 :]:
        for part in message.parts:
            if message.role == "assistant" and hasattr(part, "arguments"):
                found.setdefault(part.name)
            elif message.role == "tool" and getattr(part, "name", "") == "find_tools":
                found.update(dict.fromkeys(_injected(part.output)))
    return tuple(found)


def _injected(output: object) -> Iterator[str]:
    """Yield the names in what `find_tools` answered; nothing where that cannot be read."""
    try:
        for tool in json.loads(parse(str(output)).body)["injected"]:
            yield str(tool["name"])
    except (ValueError, KeyError, TypeError):
        return
