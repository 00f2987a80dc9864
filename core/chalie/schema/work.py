"""How much work it is to validate against a schema: alternatives inside alternatives multiply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn

from .references import MAPS, REFERENCES, look_up, refuse

__all__ = ["DEEPEST_DATA", "work_by_depth"]

#: How deep containers may lie in a call's arguments.
DEEPEST_DATA: Final = 64

# How many subschemas may have a say on one and the same value, counting each way that leads to them.
_MOST_WORK: Final = 20_000

_SAME_VALUE: Final = (
    "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies",
)  # fmt: skip
_OF_ELEMENTS: Final = ("items", "prefixItems", "additionalItems", "contains", "unevaluatedItems")
_OF_ANY_PROPERTY: Final = ("patternProperties", "additionalProperties", "unevaluatedProperties")
# Steps to read: subschemas times the places that each has a say on.
_MOST_STEPS: Final = 200_000
_LONGEST_CHAIN: Final = 200
_CEILING: Final = 10**12
_ANY_PROPERTY: Final = "*"
_ELEMENT: Final = "[]"


def work_by_depth(schema: Mapping[str, Any]) -> tuple[int, ...]:
    """Return, for values at each depth from 0 on, how many subschemas may have a say on one of them.

    Alternatives that lead to alternatives multiply, and where a schema refers to itself they multiply with
    each level of the data. A call whose values, times the work at their depth, come to millions is refused.
    The last entry is that of every greater depth where it is 0; there are never more than `DEEPEST_DATA` + 1.

    Raises:
        SchemaRefused: a part refers to itself without going into the data, or the work is over its bound for
            the outermost values already.
    """
    spread = _Spread(schema)
    start = id(schema)
    spread.add(schema)
    work = [spread.width(start)]
    by_part = {part: spread.width(part) for part in spread.parts()}
    while len(work) <= DEEPEST_DATA and work[-1]:
        by_part = {part: spread.deeper(part, by_part) for part in spread.parts()}
        work.append(by_part[start])
    if len(work) > 1 and work[1] > _MOST_WORK:
        _refuse_alternatives()
    return tuple(work)


def _refuse_alternatives() -> NoReturn:
    refuse("has too many alternatives inside alternatives", "use enum, or fewer nested anyOf and allOf")


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
        return self.same[part].total()

    def deeper(self, part: int, by_part: Mapping[int, int]) -> int:
        """Return the greatest sum, over the places inside a value, of what is known of the parts there."""
        places = self.inner[part].values()
        return min(
            max((sum(by_part[p] * n for p, n in place.items()) for place in places), default=0), _CEILING
        )

    def add(self, start: Mapping[str, Any]) -> None:
        """Follow every subschema of values inside values, beginning with the root's."""
        pending: list[Mapping[str, Any]] = [start]
        steps = 0
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
                        steps += 1
            if steps > _MOST_STEPS:
                _refuse_alternatives()
            anywhere = places.get(_ANY_PROPERTY, Counter())
            for place, counted in places.items():
                if place not in (_ANY_PROPERTY, _ELEMENT):
                    counted.update(anywhere)
            self.inner[id(node)] = places

    def expand(self, node: Mapping[str, Any], above: tuple[int, ...]) -> Counter[int]:
        """Return the subschemas that speak of the same value as `node`, each with the ways to it."""
        known = self.same.get(id(node))
        if known is not None:
            return known
        if id(node) in above or len(above) > _LONGEST_CHAIN:
            refuse(
                "refers to itself without going into the data", "put the reference under properties or items"
            )
        self.nodes[id(node)] = node
        counted: Counter[int] = Counter({id(node): 1})
        for child in _beside(self.root, node):
            if isinstance(child, Mapping):
                counted.update(self.expand(child, (*above, id(node))))
                if counted.total() > _MOST_WORK:
                    _refuse_alternatives()
        self.same[id(node)] = counted
        return counted


def _beside(root: Mapping[str, Any], node: Mapping[str, Any]) -> Iterator[Any]:
    for key in REFERENCES:
        if isinstance(node.get(key), str):
            yield look_up(root, node[key])
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
        elif isinstance(inside, Mapping) and key in MAPS:
            yield from inside.values()
        else:
            yield inside
