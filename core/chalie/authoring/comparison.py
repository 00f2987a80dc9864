"""What changed between two catalogues, and whether it breaks a program that calls their tools."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import frozen

from ..calls import SideEffect
from ..catalogue.identity import Document
from .narrowing import narrowed

__all__ = ["Change", "compare"]

_WORDS: Final = (
    "summary",
    "search_tooltip",
    "examples",
    "namespace",
    "version",
    "package_version",
    "isolate",
)


@frozen
class Change:
    """One change.

    Attributes:
        tool: what it is called by; empty for the catalogue as a whole.
        breaking: whether a call or a permission that was right before may be wrong now.
        what: in words.
    """

    tool: str
    breaking: bool
    what: str


def compare(before: Document, after: Document) -> list[Change]:
    """Return what changed, by tool. What cannot be compared is taken for breaking.

    Args:
        before: the catalogue that programs were written for.
        after: the one that they meet.
    """
    changes: list[Change] = []
    if before.protocol != after.protocol:
        changes.append(Change("", True, f"protocol {before.protocol} -> {after.protocol}"))
    old = {(row["package"], row["name"]): row for row in before.abilities}
    new = {(row["package"], row["name"]): row for row in after.abilities}
    moved = _moved(old, new)
    for key in sorted({*old, *new}):
        if key in old and key in new:
            changes += [Change(old[key]["called"], *change) for change in _changed(old[key], new[key])]
        elif key in old:
            called = old[key]["called"]
            to = moved.get(called)
            changes.append(Change(called, True, f"{key[0]} no longer has it" + (f"; {to} has" if to else "")))
        elif new[key]["called"] not in moved:
            changes.append(Change(new[key]["called"], False, f"{key[0]} brings it"))
    return changes


_Rows = Mapping[tuple[str, str], Mapping[str, Any]]


def _moved(old: _Rows, new: _Rows) -> dict[str, str]:
    """Return name -> the package that has it now, of tools that another package had."""
    gone = {row["called"] for key, row in old.items() if key not in new}
    return {row["called"]: key[0] for key, row in new.items() if key not in old and row["called"] in gone}


def _changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[bool, str]]:
    if old["called"] != new["called"]:
        yield True, f"it is called {new['called']} now"
    yield from narrowed(_schema(old), _schema(new), aliases=_table(new, "aliases"))
    yield from _aliases(_table(old, "aliases"), _table(new, "aliases"))
    yield from _classes(old, new)
    yield from _required(_table(old, "action_required"), _table(new, "action_required"))
    yield from _conduct(old, new)
    for fact in _WORDS:
        if old.get(fact) != new.get(fact):
            yield False, f"{fact.replace('_', ' ')}: {_shown(old.get(fact))} -> {_shown(new.get(fact))}"


def _classes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[bool, str]]:
    """Yield what changed in the permissions a call asks for, and in their classes."""
    before, now = _effects(old), _effects(new)
    for action in sorted({*before, *now}):
        name = f"action {action}" if action else "its class"
        if action not in now:
            to = ", ".join(f"action {other}" for other in now if other not in before) or "nothing"
            yield True, f"{name} is gone" + (f": a call is {to} now" if not action else "")
        elif action not in before:
            yield "" in before or not action, f"{name} is new: {now[action]}"
        elif before[action] != now[action]:
            worse = _severity(now[action]) > _severity(before[action])
            yield worse, f"{name}: {before[action]} -> {now[action]}"


def _effects(row: Mapping[str, Any]) -> dict[str, str]:
    actions = _table(row, "actions")
    return {str(action): str(effect) for action, effect in actions.items()} or {
        "": str(row.get("side_effect"))
    }


def _severity(effect: str) -> int:
    """Return how severe a class is; one that is not known is the worst."""
    try:
        return SideEffect(effect).severity
    except ValueError:
        return len(SideEffect)


def _required(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[bool, str]]:
    for action in sorted({*old, *new}):
        before, now = set(old.get(action, ())), set(new.get(action, ()))
        for name in sorted(now - before):
            yield True, f"action {action} requires {name} now"
        for name in sorted(before - now):
            yield False, f"action {action} no longer requires {name}"


def _aliases(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[bool, str]]:
    for alias in sorted({*old, *new}):
        if alias not in new:
            yield True, f"{alias} is no longer taken for {old[alias]}"
        elif alias not in old:
            yield False, f"{alias} is taken for {new[alias]}"
        elif old[alias] != new[alias]:
            yield True, f"{alias} is taken for {new[alias]}, no longer for {old[alias]}"


def _conduct(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[bool, str]]:
    if old.get("requires_approval") != new.get("requires_approval"):
        now = bool(new.get("requires_approval"))
        yield now, "a person is always asked now" if now else "it no longer asks to be asked about"
    if old.get("discoverable", True) != new.get("discoverable", True):
        now = bool(new.get("discoverable", True))
        yield not now, "search shows it now" if now else "search no longer shows it"
    if old.get("answered_by") != new.get("answered_by"):
        yield True, f"it is answered by a {new.get('answered_by')}, no longer by a {old.get('answered_by')}"
    if old.get("latency") != new.get("latency"):
        # who waits for a person is not who waits for a machine
        yield new.get("latency") == "interactive", f"latency: {old.get('latency')} -> {new.get('latency')}"
    before, now_s = old.get("time_limit_s"), new.get("time_limit_s")
    if before != now_s:
        shorter = now_s is not None and (before is None or now_s < before)
        yield shorter, f"time limit: {_shown(before)} -> {_shown(now_s)}"


def _schema(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return _table(row, "parameters")


def _table(row: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = row.get(key)
    return found if isinstance(found, Mapping) else {}


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:79]}…"
