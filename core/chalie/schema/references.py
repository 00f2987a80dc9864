"""Where the parts of a schema are, and what its references name. Nothing here ever leaves the schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn
from urllib.parse import unquote

from ..errors import SchemaRefused

__all__ = ["LISTS", "MAPS", "REFERENCES", "look_up", "parts", "refuse", "resolved"]

MAPS: Final = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
LISTS: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLES: Final = (
    "items", "additionalItems", "contains", "unevaluatedItems", "additionalProperties",
    "unevaluatedProperties", "propertyNames", "not", "if", "then", "else",
)  # fmt: skip
REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")

# References that name references, at most.
_LONGEST_CHAIN: Final = 128


def refuse(reason: str, hint: str | None = None) -> NoReturn:
    """Refuse a schema: what is wrong with it, and what to do about it."""
    raise SchemaRefused(f"the parameter schema {reason}", hint=hint)


def parts(node: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the subschemas directly inside one, each with its place."""
    for key in MAPS:
        if isinstance(node.get(key), dict):
            for name, child in node[key].items():
                if not (key == "dependencies" and isinstance(child, list)):
                    yield f"{key}/{name}", child
    for key in (*LISTS, *_SINGLES):
        inside = node.get(key)
        if isinstance(inside, list):
            yield from ((f"{key}/{at}", child) for at, child in enumerate(inside))
        elif inside is not None:
            yield key, inside


def look_up(root: Mapping[str, Any], reference: str) -> Any:
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
            pending.extend(child for _, child in parts(node))
    return None


def resolved(root: Mapping[str, Any], node: Any) -> Any:
    """Return what `node` refers to by `$ref`, through any chain, or itself; None where it leads nowhere."""
    for _ in range(_LONGEST_CHAIN):
        if not isinstance(node, Mapping) or not isinstance(node.get("$ref"), str):
            return node
        node = look_up(root, node["$ref"]) if node["$ref"].startswith("#") else None
    return None
