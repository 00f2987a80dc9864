"""What changed in a tool since a person allowed it, in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..catalogue.descriptor import Descriptor
from ..ledger.pins import Pin, PinRow

__all__ = ["changes", "differences", "pin_of"]

#: characters of an old or a new value that are shown of one change.
_SHOWN: Final = 160
#: changes that are named one by one.
_MOST: Final = 12


def pin_of(descriptor: Descriptor, files_hash: str) -> Pin:
    """Return an ability as it is now, to be pinned or compared.

    Args:
        files_hash: over the files of its package; empty where it has none.
    """
    facts = json.loads(json.dumps(descriptor.facts(), default=list))
    return Pin(descriptor.dist, descriptor.name, descriptor.hash, files_hash, descriptor.dist_version, facts)


def changes(pins: tuple[PinRow, ...], now: Pin | None) -> tuple[str, ...]:
    """Return what is different from the pin that is nearest, one line for each difference.

    Args:
        pins: those of the ability, newest first.
        now: the ability as it is; None where it is not known.
    """
    if not pins:
        return ()
    if now is None:
        return ("its description is another one",)
    same = [row for row in pins if row.pin.descriptor_hash == now.descriptor_hash]
    before = (same or list(pins))[0].pin
    lines = [] if same else list(differences(before.facts, now.facts))
    if before.version != now.version:
        lines.insert(0, f"version: {before.version} -> {now.version}")
    if before.files_hash != now.files_hash:
        lines.append("its package's files are others" + (", its description is the same" if same else ""))
    if len(lines) > _MOST:
        lines[_MOST - 1 :] = [f"and {len(lines) - _MOST + 1} more changes"]
    return tuple(lines) or ("its description is another one",)


def differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Yield a line for each place in which two JSON values differ, as `path: old -> new`."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            inner = f"{path}.{key}" if path else str(key)
            if key not in old:
                yield f"{inner}: added {_short(new[key])}"
            elif key not in new:
                yield f"{inner}: removed {_short(old[key])}"
            else:
                yield from differences(old[key], new[key], inner)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for at, (one, other) in enumerate(zip(old, new, strict=True), 1):
            yield from differences(one, other, f"{path}[{at}]")
    elif isinstance(old, list) and isinstance(new, list):
        for item in old:
            if item not in new:
                yield f"{path}: removed {_short(item)}"
        for item in new:
            if item not in old:
                yield f"{path}: added {_short(item)}"
    elif old != new or type(old) is not type(new):
        yield f"{path}: {_short(old)} -> {_short(new)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}… ({len(text)} characters)"
