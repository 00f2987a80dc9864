"""Whether a parameter schema can be used: complete in itself, within bounds, and quick to validate against.

A schema comes from an author or from a foreign server. Before any library sees it, it is walked here: nothing may
point outside it (JSON Schema lets a `$ref` name any URL, and MCP's specification forbids to fetch one), nothing
may be so large, deep or branching that validating against it stalls the host. A schema may refer to itself.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn
from urllib.parse import unquote

from .errors import SchemaRefused

__all__ = ["DEEPEST_DATA", "compiled", "resolved", "self_contained", "work_by_depth"]

#: How deep containers may lie in a call's arguments.
DEEPEST_DATA: Final = 64

# Bounds on the schema itself. The largest published tool schemas known have about 60 KiB and 1,000 subschemas.
_MOST_BYTES: Final = 256 * 1024
_MOST_SCHEMAS: Final = 4_000
_MOST_BRANCHES: Final = 500
_DEEPEST_SCHEMA: Final = 128
# How many subschemas may have a say on one and the same value, counting each way that leads to them.
_MOST_WORK: Final = 20_000

_MAPS: Final = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
_LISTS: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLES: Final = (
    "items", "additionalItems", "contains", "unevaluatedItems", "additionalProperties", "unevaluatedProperties",
    "propertyNames", "not", "if", "then", "else",
)  # fmt: skip
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_SAME_VALUE: Final = (
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "dependencies",
)
_OF_ELEMENTS: Final = ("items", "prefixItems", "additionalItems", "contains", "unevaluatedItems")
_OF_ANY_PROPERTY: Final = ("patternProperties", "additionalProperties", "unevaluatedProperties")


def self_contained(schema: Any) -> dict[str, Any]:
    """Return a plain copy of `schema` that stands by itself and describes an object.

    A reference at the root is replaced by what it names, and one to the root by one into `$defs`, because the
    host adds its own parameters to the root. Every other reference stays and is known to resolve.

    Raises:
        SchemaRefused: it is not the schema of an object, refers to something outside itself or to nothing, is
            beyond a bound, or is no valid JSON Schema. The message tells where.
    """
    root = _plain_copy(schema)
    _check_parts(root)
    root = _rooted(root)
    work_by_depth(root)
    compiled(root)
    return root


def compiled(schema: Mapping[str, Any]) -> Any:
    """Return the validator of a schema; it has no way to fetch anything, and its messages show no values.

    Raises:
        SchemaRefused: the schema is not valid JSON Schema.
    """
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(
            schema, retriever=_no_retrieval, validate_formats=False, mask="the value"
        )
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        reason = str(error).split("\n", 1)[0][:300]
        _refuse(
            f"is not valid JSON Schema: {reason}",
            "correct the schema; it is JSON Schema 2020-12 unless $schema says",
        )


def _no_retrieval(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is not part of the schema and nothing is fetched")


def _refuse(reason: str, hint: str | None = None) -> NoReturn:
    raise SchemaRefused(f"the parameter schema {reason}", hint=hint)


def _plain_copy(schema: Any) -> dict[str, Any]:
    """Return `schema` as plain JSON containers, of bounded size and depth."""
    if not isinstance(schema, Mapping):
        _refuse(f"is a {type(schema).__name__}, not an object", 'use {"type": "object", "properties": {…}}')
    pending: list[tuple[Any, int]] = [(schema, 1)]
    seen = 0
    while pending:
        node, depth = pending.pop()
        seen += 1
        if depth > _DEEPEST_SCHEMA:
            _refuse(
                f"is nested over {_DEEPEST_SCHEMA} levels deep",
                "name the inner parts in $defs and refer to them",
            )
        if seen > _MOST_BYTES:
            _refuse(f"is over {_MOST_BYTES} bytes")
        if isinstance(node, Mapping):
            for key in node:
                if not isinstance(key, str):
                    _refuse(f"has the key {key!r}, which is no text")
            pending.extend((child, depth + 1) for child in node.values())
        elif isinstance(node, (list, tuple)):
            pending.extend((child, depth + 1) for child in node)
        elif isinstance(node, float) and not math.isfinite(node):
            _refuse(f"holds {node}, which JSON does not know")
    try:
        text = json.dumps(schema, default=_as_dict, allow_nan=False)
    except (TypeError, ValueError) as error:
        _refuse(f"is not JSON: {error}")
    if len(text) > _MOST_BYTES:
        _refuse(f"has {len(text)} bytes, over {_MOST_BYTES}", "shorten descriptions, or split the tool")
    copy = json.loads(text)
    assert isinstance(copy, dict)  # it was a mapping
    return copy


def _as_dict(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


def _parts(node: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the subschemas directly inside one, each with its place."""
    for key in _MAPS:
        if isinstance(node.get(key), dict):
            for name, child in node[key].items():
                if not (key == "dependencies" and isinstance(child, list)):
                    yield f"{key}/{name}", child
    for key in (*_LISTS, *_SINGLES):
        inside = node.get(key)
        if isinstance(inside, list):
            yield from ((f"{key}/{at}", child) for at, child in enumerate(inside))
        elif inside is not None:
            yield key, inside


def _check_parts(root: dict[str, Any]) -> None:
    """Refuse a schema with a part that is none, a reference that leads nowhere, or too many parts."""
    pending: list[tuple[str, Any]] = [("#", root)]
    seen: set[int] = set()
    while pending:
        place, node = pending.pop()
        if isinstance(node, bool) or id(node) in seen:
            continue
        if not isinstance(node, dict):
            _refuse(f"has {json.dumps(node)[:60]} at {place}, where a schema belongs")
        seen.add(id(node))
        if len(seen) > _MOST_SCHEMAS:
            _refuse(f"has over {_MOST_SCHEMAS} parts", "describe less of the data, or split the tool")
        for key in _LISTS:
            if isinstance(node.get(key), list) and len(node[key]) > _MOST_BRANCHES:
                _refuse(
                    f"has {len(node[key])} branches at {place}/{key}, over {_MOST_BRANCHES}",
                    "use enum, or fewer",
                )
        if node is not root and isinstance(node.get("$id"), str) and not node["$id"].startswith("#"):
            _refuse(f"changes its base with $id at {place}", "remove the inner $id")
        for key in _REFERENCES:
            if isinstance(node.get(key), str):
                pending.append((f"{place}/{key}", _target(root, node[key], place)))
        pending.extend((f"{place}/{where}", child) for where, child in _parts(node))


def _target(root: dict[str, Any], reference: str, place: str) -> Any:
    if not reference.startswith("#"):
        _refuse(
            f"refers to {reference[:200]!r} at {place}, outside of itself; nothing is ever fetched",
            "copy what it names into $defs and refer to that",
        )
    found = _look_up(root, reference)
    if found is None:
        _refuse(
            f"refers to {reference[:200]!r} at {place}, which it does not hold",
            "add it, for example under $defs",
        )
    return found


def _look_up(root: Mapping[str, Any], reference: str) -> Any:
    """Return what a local reference names (a pointer or an anchor), or None."""
    pointer = unquote(reference[1:])
    if pointer == "":
        return root
    if not pointer.startswith("/"):
        return _anchored(root, pointer)
    node: Any = root
    for step in pointer[1:].split("/"):
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, Mapping) and step in node:
            node = node[step]
        elif isinstance(node, list) and step.isdecimal() and int(step) < len(node):
            node = node[int(step)]
        else:
            return None
    return node if isinstance(node, (Mapping, bool)) else None


def _anchored(root: Mapping[str, Any], anchor: str) -> Any:
    pending: list[Any] = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, Mapping):
            if anchor in (node.get("$anchor"), node.get("$dynamicAnchor")) or node.get("$id") == f"#{anchor}":
                return node
            pending.extend(child for _, child in _parts(node))
    return None


def resolved(root: Mapping[str, Any], node: Any) -> Any:
    """Return what `node` refers to by `$ref`, through any chain, or `node` itself; None where it leads nowhere."""
    for _ in range(_DEEPEST_SCHEMA):
        if not isinstance(node, Mapping) or not isinstance(node.get("$ref"), str):
            return node
        node = _look_up(root, node["$ref"]) if node["$ref"].startswith("#") else None
    return None


def _rooted(root: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with an object at its root that nothing inside refers back to."""
    if "$ref" in root:
        target = resolved(root, root)
        if not isinstance(target, Mapping):
            _refuse("refers to itself at its root and says nothing else")
        root = {**target, **{key: value for key, value in root.items() if key != "$ref"}}
    kinds = root.get("type")
    if kinds is None and (
        _mentions_object(root) or any(_mentions_object(part) for part in _alternatives(root))
    ):
        kinds = "object"
    if "object" not in (kinds if isinstance(kinds, list) else [kinds]):
        _refuse(
            f"describes {json.dumps(kinds) if kinds else 'anything'}, but arguments are always an object",
            'write {"type": "object", "properties": {}} for a tool without parameters',
        )
    root = {**root, "type": "object"}
    if _replace_root_references(root):
        defs = {**root.get("$defs", {})}
        inner = {
            key: value for key, value in root.items() if key not in ("$defs", "definitions", "$schema", "$id")
        }
        root = {**root, "$defs": {**defs, _ROOT: json.loads(json.dumps(inner))}}
    return root


_ROOT: Final = "_root"


def _replace_root_references(root: dict[str, Any]) -> bool:
    """Point every reference to the root at `#/$defs/_root` instead, and return whether there was one."""
    found = False
    pending: list[Any] = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            for key in _REFERENCES:
                if node.get(key) == "#":
                    del node[key]
                    node["$ref"] = f"#/$defs/{_ROOT}"
                    found = True
            pending.extend(child for _, child in _parts(node))
    return found


def _mentions_object(node: Any) -> bool:
    kinds = node.get("type") if isinstance(node, dict) else None
    return isinstance(node, dict) and (
        "object" in (kinds if isinstance(kinds, list) else [kinds])
        or (kinds is None and "properties" in node)
    )


def _alternatives(root: dict[str, Any]) -> Iterator[Any]:
    for key in ("allOf", "anyOf", "oneOf"):
        for part in root.get(key) or ():
            yield resolved(root, part)


def work_by_depth(schema: Mapping[str, Any]) -> tuple[int, ...]:
    """Return, for values at each depth from 0 on, how many subschemas may have a say on one of them.

    Alternatives that lead to alternatives multiply, and where a schema refers to itself they multiply with each
    level of the data. A call whose values, times the work at their depth, come to millions is not validated.
    The last entry is that of every greater depth where it is 0; there are never more than `DEEPEST_DATA` + 1.

    Raises:
        SchemaRefused: a part refers to itself without going into the data, or the work is over its bound for
            the outermost values already.
    """
    spread = _Spread(schema)
    start = id(schema)
    spread.add(schema)
    work = [spread.width(start)]
    if work[0] > _MOST_WORK:
        _refuse("has too many alternatives inside alternatives", "use enum, or fewer nested anyOf and allOf")
    by_part = {part: spread.width(part) for part in spread.parts()}
    while len(work) <= DEEPEST_DATA and work[-1]:
        by_part = {part: spread.deeper(part, by_part) for part in spread.parts()}
        work.append(by_part[start])
    if len(work) > 1 and work[1] > _MOST_WORK:
        _refuse("has too many alternatives inside alternatives", "use enum, or fewer nested anyOf and allOf")
    return tuple(work)


class _Spread:
    """Which subschemas speak of one value (its width), and which of the values inside it."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self.nodes: dict[int, Mapping[str, Any]] = {}
        self.same: dict[int, Counter[int]] = {}
        self.inner: dict[int, dict[str, Counter[int]]] = {}

    def parts(self) -> tuple[int, ...]:
        return tuple(self.inner)

    def width(self, part: int) -> int:
        return min(self.same[part].total(), _CEILING)

    def deeper(self, part: int, by_part: Mapping[int, int]) -> int:
        """Return the greatest sum, over the places inside a value, of what is known of the parts there."""
        places = self.inner[part].values()
        return min(
            max((sum(by_part[p] * n for p, n in place.items()) for place in places), default=0), _CEILING
        )

    def add(self, start: Mapping[str, Any]) -> None:
        """Follow every subschema of values inside values, beginning with the root's."""
        pending: list[Mapping[str, Any]] = [start]
        while pending:
            node = pending.pop()
            if id(node) in self.inner:
                continue
            places: dict[str, Counter[int]] = {}
            for part, times in self.expand(node, ()).items():
                for place, child in _inside(self.nodes[part]):
                    if isinstance(child, dict):
                        places.setdefault(place, Counter())[id(child)] += times
                        pending.append(child)
            anywhere = places.get(_ANY_PROPERTY, Counter())
            for place, counted in places.items():
                if place not in (_ANY_PROPERTY, _ELEMENT):
                    counted.update(anywhere)
            self.inner[id(node)] = places

    def expand(self, node: Mapping[str, Any], above: tuple[int, ...]) -> Counter[int]:
        """Return the subschemas that speak of the same value as `node`, each with the number of ways to it."""
        known = self.same.get(id(node))
        if known is not None:
            return known
        if id(node) in above:
            _refuse(
                "refers to itself without going into the data", "put the reference under properties or items"
            )
        self.nodes[id(node)] = node
        counted: Counter[int] = Counter({id(node): 1})
        for child in _beside(self.root, node):
            if isinstance(child, Mapping):
                for part, times in self.expand(child, (*above, id(node))).items():
                    counted[part] = min(counted[part] + times, _CEILING)
        self.same[id(node)] = counted
        return counted


_CEILING: Final = 10**12
_ANY_PROPERTY: Final = "*"
_ELEMENT: Final = "[]"


def _beside(root: Mapping[str, Any], node: Mapping[str, Any]) -> Iterator[Any]:
    for key in _REFERENCES:
        if isinstance(node.get(key), str):
            yield _look_up(root, node[key])
    yield from _under(node, _SAME_VALUE)


def _inside(node: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, child in (node.get("properties") or {}).items():
        yield f".{name}", child
    yield from ((_ELEMENT, child) for child in _under(node, _OF_ELEMENTS))
    yield from ((_ANY_PROPERTY, child) for child in _under(node, _OF_ANY_PROPERTY))


def _under(node: Mapping[str, Any], keys: tuple[str, ...]) -> Iterator[Any]:
    for key in keys:
        inside = node.get(key)
        if isinstance(inside, list):
            yield from inside
        elif isinstance(inside, Mapping) and key in _MAPS:
            yield from inside.values()
        else:
            yield inside
