"""A tool's parameters in rows and words, for the pages that people read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import frozen

__all__ = ["Field", "fields", "kind"]

_DEEPEST: Final = 6
_CHOICES: Final = 12
#: what bounds a value -> how it is said.
_BOUNDS: Final = (
    ("minimum", "≥ {}"),
    ("exclusiveMinimum", "> {}"),
    ("maximum", "≤ {}"),
    ("exclusiveMaximum", "< {}"),
    ("minLength", "{} characters or more"),
    ("maxLength", "up to {} characters"),
    ("minItems", "{} items or more"),
    ("maxItems", "up to {} items"),
    ("multipleOf", "a multiple of {}"),
    ("pattern", "matches {}"),
)


@frozen
class Field:
    """One parameter, or one field inside of one.

    Attributes:
        path: as in `edits[].oldText`.
        kind: its type in words.
        required: whether its object needs it.
        default: as JSON; None where there is none.
        bounds: what else a value has to fit, in words.
        description: the author's words.
        secret: whether the host masks it.
    """

    path: str
    kind: str
    required: bool
    default: str | None
    bounds: tuple[str, ...]
    description: str
    secret: bool


def fields(schema: Any, path: str = "", depth: int = 0) -> Iterator[Field]:
    """Yield the parameters of a JSON Schema, each followed by the fields inside it."""
    properties = _mapping(schema).get("properties")
    required = _mapping(schema).get("required")
    needed = set(required) if isinstance(required, list | tuple) else set()
    for name, given in _mapping(properties).items():
        inner = _mapping(given)
        here = f"{path}{name}"
        yield Field(
            path=here,
            kind=kind(given),
            required=name in needed,
            default=json.dumps(inner["default"], ensure_ascii=False, default=str)
            if "default" in inner
            else None,
            bounds=tuple(_bounds(inner)),
            description=inner["description"] if isinstance(inner.get("description"), str) else "",
            secret=inner.get("writeOnly") is True or inner.get("format") == "password",
        )
        if depth < _DEEPEST:
            yield from fields(inner, f"{here}.", depth + 1)
            yield from fields(inner.get("items"), f"{here}[].", depth + 1)


def kind(schema: Any, depth: int = 0) -> str:
    """Return the type of a value in words."""
    given = _mapping(schema)
    if depth > _DEEPEST:
        return "any value"
    if "const" in given:
        return f"always {_shown(given['const'])}"
    if isinstance(given.get("enum"), list | tuple):
        shown = [_shown(choice) for choice in given["enum"][:_CHOICES]]
        return f"one of {', '.join(shown)}{' …' if len(given['enum']) > _CHOICES else ''}"
    if isinstance(given.get("$ref"), str):
        return given["$ref"].rpartition("/")[2] or "any value"
    for join in ("anyOf", "oneOf"):
        branches = given.get(join)
        if isinstance(branches, list | tuple):
            return " or ".join(dict.fromkeys(kind(each, depth + 1) for each in branches)) or "any value"
    types = given.get("type")
    several = types if isinstance(types, list | tuple) else [types]
    return " or ".join(_typed(each, given, depth) for each in several)


def _typed(name: Any, given: Mapping[str, Any], depth: int) -> str:
    if name == "array":
        items = given.get("items")
        return f"list of {kind(items, depth + 1)}" if isinstance(items, Mapping) else "list"
    if name == "string" and isinstance(given.get("format"), str):
        return f"text ({given['format']})"
    known = {"string": "text", "boolean": "true or false", None: "any value", "null": "null"}
    return known.get(name, str(name))


def _bounds(given: Mapping[str, Any]) -> Iterator[str]:
    for key, words in _BOUNDS:
        value = given.get(key)
        if key == "minLength" and value == 1:
            yield "not empty"
        elif value is not None and not isinstance(value, bool | Mapping | list | tuple):
            yield words.format(value)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
