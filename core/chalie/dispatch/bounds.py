"""How much a call's arguments may be, found out by a walk that no depth can break."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from ..errors import ArgumentRefused
from ..names import shown
from ..schema import DEEPEST_DATA

__all__ = ["MOST_BYTES", "MOST_VALUES", "step", "too_large", "walk"]

#: How many values a call may hold, counting containers.
MOST_VALUES: Final = 100_000
#: How long a call's arguments may be, in bytes of JSON.
MOST_BYTES: Final = 1024 * 1024

_LONGEST_INTEGER_BITS: Final = 4096


def too_large(reason: str) -> ArgumentRefused:
    """Return the refusal of arguments over a bound."""
    return ArgumentRefused(
        f"the arguments {reason}",
        code="arguments-too-large",
        hint="pass less in one call, or keep it in a file or result and pass its name",
    )


def walk(
    arguments: Mapping[str, Any], most_values: int = MOST_VALUES, most_bytes: int = MOST_BYTES
) -> tuple[int, int]:
    """Return how many values the arguments hold and how deep containers lie, without recursion.

    Deep data overflows the stack of the validator, which ends the process; so this walk comes before it.

    Raises:
        ArgumentRefused: they are too deep, too many or too long, or something in them is no JSON.
    """
    level: list[tuple[str, Any]] = [("", arguments)]
    values = size = depth = 0
    while level:
        depth += 1
        if depth > DEEPEST_DATA:
            raise too_large(f"are nested over {DEEPEST_DATA} levels deep")
        following: list[tuple[str, Any]] = []
        for path, container in level:
            values += len(container) + 1
            if values > most_values:
                raise too_large(f"hold over {most_values} values")
            is_object = isinstance(container, Mapping)
            for key, value in container.items() if is_object else enumerate(container):
                if is_object:
                    if not isinstance(key, str):
                        raise ArgumentRefused(f"the key {key!r:.80} in {path or 'the arguments'} is no text")
                    size += len(key) if key.isascii() else _bytes(key, path)
                if isinstance(value, str):
                    size += len(value) if value.isascii() else _bytes(value, step(path, key))
                elif isinstance(value, (Mapping, list, tuple)):
                    following.append((step(path, key), value))
                elif value is not None and not isinstance(value, bool):
                    size += _number(value, step(path, key))
        if size + 4 * values > most_bytes:
            raise too_large(f"are over {most_bytes} bytes")
        level = following
    return values, depth


def step(path: str, key: Any) -> str:
    """Return the path of a value below another."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{shown(key[:80])}" if path else shown(key[:80])


def _bytes(text: str, path: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise ArgumentRefused(
            f"{path or 'a key'} holds half of a surrogate pair, which is no character",
            hint="pass whole characters",
        ) from error


def _number(value: Any, path: str) -> int:
    """Return about how long a number is in JSON; refuse what is no number that JSON can hold."""
    if isinstance(value, int) and value.bit_length() <= _LONGEST_INTEGER_BITS:
        return value.bit_length() // 3
    if isinstance(value, float) and math.isfinite(value):
        return 8
    what = "a number JSON cannot hold" if isinstance(value, (int, float)) else f"a {type(value).__name__}"
    raise ArgumentRefused(f"{path} is {what}", hint="pass text, finite numbers, booleans, lists and objects")
