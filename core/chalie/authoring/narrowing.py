"""Whether a JSON Schema takes less than another did: arguments that were right and are wrong now."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

__all__ = ["narrowed"]

#: keywords that tell people something and bound nothing.
_WORDS: Final = frozenset(
    {"title", "description", "examples", "$comment", "deprecated", "readOnly", "$schema", "$id"}
)
_LOWER: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_UPPER: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_FIXED: Final = ("pattern", "format", "multipleOf", "contentEncoding", "contentMediaType")
#: what is compared one by one; any other keyword that differs cannot be.
_KNOWN: Final = frozenset(
    {*_WORDS, *_LOWER, *_UPPER, *_FIXED}
    | {"type", "enum", "const", "properties", "required", "additionalProperties", "items", "default"}
    | {"uniqueItems", "writeOnly"}
)
_ALL: Final = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_DEEPEST: Final = 32

_Found = Iterator[tuple[bool, str]]


def narrowed(
    old: Any, new: Any, *, path: str = "", aliases: Mapping[str, Any] | None = None, depth: int = 0
) -> _Found:
    """Yield (breaking, in words) for each difference of two schemas.

    Args:
        old, new: the schemas of the same value.
        path: where the value stands, as in `edits[].`.
        aliases: other names that the host takes for a parameter of the new schema.
    """
    if old == new:
        return
    here = path.rstrip(".") or "the arguments"
    old, new = _as_schema(old), _as_schema(new)
    if old is None or new is None or depth > _DEEPEST:
        yield True, f"{here}: the schema is another one, and cannot be compared"
        return
    odd = sorted(key for key in {*old, *new} - _KNOWN if old.get(key) != new.get(key))
    for key in odd:
        yield True, f"{here}: {key} is another one, and cannot be compared"
    if _refers(old) or _refers(new):
        if not odd:
            yield True, f"{here}: what it is bound by is written in another way, and cannot be compared"
        return
    yield from _types(here, old, new)
    yield from _values(here, old, new)
    yield from _bounds(here, old, new)
    yield from _properties(path, old, new, aliases or {}, depth)
    if "items" in old or "items" in new:
        inner = f"{path.removesuffix('.')}[]."
        yield from narrowed(old.get("items", True), new.get("items", True), path=inner, depth=depth + 1)
    yield from _rest(path, here, old, new)


def _as_schema(schema: Any) -> Mapping[str, Any] | None:
    """Return a schema as a mapping; `true` takes everything."""
    if schema is True:
        return {}
    return schema if isinstance(schema, Mapping) else None


def _refers(schema: Mapping[str, Any]) -> bool:
    """Whether a schema has keywords whose meaning the others depend on."""
    return bool({"$ref", "allOf", "anyOf", "oneOf", "not", "if"} & schema.keys())


def _types(here: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> _Found:
    before, now = _kinds(old), _kinds(new)
    if before == now:
        return
    lost = {kind for kind in before if kind not in now and not (kind == "integer" and "number" in now)}
    words = f"{here}: type {_named(before)} -> {_named(now)}"
    yield bool(lost), words


def _kinds(schema: Mapping[str, Any]) -> frozenset[str]:
    given = schema.get("type")
    if isinstance(given, str):
        return frozenset({given})
    return frozenset(map(str, given)) if isinstance(given, list | tuple) else _ALL


def _named(kinds: frozenset[str]) -> str:
    return "any" if kinds == _ALL else " or ".join(sorted(kinds))


def _values(here: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> _Found:
    before, now = _choices(old), _choices(new)
    if before is None and now is None:
        return
    if now is None:
        yield False, f"{here}: any value is taken"
    elif before is None:
        yield True, f"{here}: only {', '.join(now)} is taken"
    else:
        for value in sorted(before.keys() - now.keys()):
            yield True, f"{here}: {value} is no longer taken"
        for value in sorted(now.keys() - before.keys()):
            yield False, f"{here}: {value} is taken"


def _choices(schema: Mapping[str, Any]) -> dict[str, None] | None:
    given = [schema["const"]] if "const" in schema else schema.get("enum")
    return {_json(value): None for value in given} if isinstance(given, list | tuple) else None


def _bounds(here: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> _Found:
    for key in (*_LOWER, *_UPPER, *_FIXED, "uniqueItems"):
        before, now = old.get(key), new.get(key)
        if before == now and isinstance(before, bool) == isinstance(now, bool):
            continue
        words = f"{here}: {key} {_json(before)} -> {_json(now)}"
        if key == "uniqueItems":
            yield bool(now), words
        elif now is None:
            yield False, words
        elif before is None or key in _FIXED or not (_is_number(before) and _is_number(now)):
            yield True, words
        else:
            yield (now > before) if key in _LOWER else (now < before), words


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _properties(
    path: str, old: Mapping[str, Any], new: Mapping[str, Any], aliases: Mapping[str, Any], depth: int
) -> _Found:
    before, now = _table(old, "properties"), _table(new, "properties")
    needed, needs = set(_texts(old)), set(_texts(new))
    renamed = _renamed(before, now)
    for name in sorted(before.keys() - now.keys()):
        healed = aliases.get(name)
        to = renamed.get(name)
        if isinstance(healed, str) and healed in now:
            to = healed
            yield False, f"{path}{name} is called {to} now; the old name is taken for it"
            yield from narrowed(before[name], now[to], path=f"{path}{to}.", depth=depth + 1)
        else:
            yield True, f"{path}{name} is gone" + (f", or called {to} now" if to else "")
    for name in sorted(now.keys() - before.keys()):
        if name in needs - needed or name in renamed.values():
            continue  # told below, or above
        yield False, f"{path}{name} is new"
    for name in sorted(needs - needed):
        if not any(aliases.get(gone) == name for gone in needed):
            yield True, f"{path}{name} is required now"
    for name in sorted((needed - needs) & now.keys()):
        yield False, f"{path}{name} is no longer required"
    for name in sorted(before.keys() & now.keys()):
        yield from narrowed(before[name], now[name], path=f"{path}{name}.", depth=depth + 1)


def _renamed(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, str]:
    """Return gone name -> new name, where exactly one new parameter has the same schema."""
    found: dict[str, str] = {}
    for name in before.keys() - now.keys():
        alike = [other for other in now.keys() - before.keys() if now[other] == before[name]]
        if len(alike) == 1:
            found[name] = alike[0]
    return found


def _rest(path: str, here: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> _Found:
    before, now = old.get("additionalProperties", True), new.get("additionalProperties", True)
    if before != now:
        if now is True or now == {}:
            yield False, f"{here}: other parameters are taken"
        elif before is False:
            yield False, f"{here}: some other parameters are taken"
        elif now is False:
            yield True, f"{here}: other parameters are no longer taken"
        else:
            yield from narrowed(before, now, path=f"{path}*.")
    if old.get("default") != new.get("default"):
        words = f"{here}: default {_json(old.get('default'))} -> {_json(new.get('default'))}"
        yield True, words
    if bool(old.get("writeOnly")) != bool(new.get("writeOnly")):
        yield False, f"{here}: it is {'secret' if new.get('writeOnly') else 'no longer secret'}"
    if any(old.get(key) != new.get(key) for key in _WORDS):
        yield False, f"{here}: its description is another one"


def _table(schema: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = schema.get(key)
    return found if isinstance(found, Mapping) else {}


def _texts(schema: Mapping[str, Any]) -> list[str]:
    found = schema.get("required")
    return [name for name in found if isinstance(name, str)] if isinstance(found, list | tuple) else []


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= 60 else f"{text[:59]}…"
