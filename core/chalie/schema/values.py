"""Values that fit a schema: their canonical bytes, which approvals bind to, and masking the secret ones."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from .references import resolved

__all__ = ["MASK", "canonical", "digest", "mask", "secret_paths"]

#: What is shown in place of a secret value.
MASK: Final = "•••"


def canonical(value: Any) -> bytes:
    """Return a JSON value's canonical bytes: the order of keys makes no difference, 1 and 1.0 do.

    Raises:
        ValueError: a number is not finite, or containers hold themselves.
        TypeError: something in it is no JSON value.
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def digest(value: Any) -> str:
    """Return the SHA-256 of a JSON value's canonical bytes, in hex."""
    return hashlib.sha256(canonical(value)).hexdigest()


def secret_paths(schema: Mapping[str, Any]) -> frozenset[tuple[str, ...]]:
    """Return where a schema's secrets are: parameters marked `writeOnly` or `format: password`.

    A path is made of property names; `*` stands for any one element or property, `**` for any number of
    steps (below a schema that refers to itself).
    """
    return frozenset(_secrets(schema, schema, (), ()))


def _secrets(
    root: Mapping[str, Any], node: Any, path: tuple[str, ...], above: tuple[tuple[int, int], ...]
) -> Iterator[tuple[str, ...]]:
    if not isinstance(node, Mapping):
        return
    if node.get("writeOnly") is True or node.get("format") == "password":
        yield path
    target = resolved(root, node)
    if target is not node and target is not None:
        seen = dict(above)
        if id(target) in seen:
            return  # its own first visit yields the paths of every further round
        inside = list(_secrets(root, target, path, (*above, (id(target), len(path)))))
        yield from inside
        if _returns(root, target):
            yield from ((*path, "**", *secret[len(path) :]) for secret in inside)
    for step, child in _children(node):
        yield from _secrets(root, child, path + step, above)


def _returns(root: Mapping[str, Any], target: Mapping[str, Any]) -> bool:
    """Tell whether a schema refers back to itself."""
    pending: list[Any] = [child for _, child in _children(target)]
    seen: set[int] = set()
    while pending:
        node = pending.pop()
        if not isinstance(node, Mapping) or id(node) in seen:
            continue
        seen.add(id(node))
        if "$ref" in node:
            referred = resolved(root, node)
            if referred is target:
                return True
            pending.append(referred)
        pending.extend(child for _, child in _children(node))
    return False


def _children(node: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the schemas inside one, each with the step from its value to theirs."""
    for key in ("properties", "dependentSchemas"):
        for name, child in (node.get(key) or {}).items():
            yield ((name,) if key == "properties" else ()), child
    for child in (node.get("patternProperties") or {}).values():
        yield ("*",), child
    for key in ("items", "prefixItems", "additionalItems", "contains", "unevaluatedItems"):
        inside = node.get(key)
        for child in inside if isinstance(inside, list) else (inside,):
            yield ("*",), child
    for key in ("additionalProperties", "unevaluatedProperties"):
        yield ("*",), node.get(key)
    for key in ("allOf", "anyOf", "oneOf"):
        for child in node.get(key) or ():
            yield (), child
    for key in ("if", "then", "else"):
        yield (), node.get(key)


def mask(arguments: Mapping[str, Any], paths: Iterable[tuple[str, ...]]) -> dict[str, Any]:
    """Return a copy of `arguments` with `•••` for every value that a path of `secret_paths` leads to."""
    paths = frozenset(paths)
    return {key: _masked(value, _stepped(paths, str(key))) for key, value in arguments.items()}


def _masked(value: Any, paths: frozenset[tuple[str, ...]]) -> Any:
    if not paths:
        return value
    if () in paths:
        return MASK
    if isinstance(value, Mapping):
        return {key: _masked(item, _stepped(paths, str(key))) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_masked(item, _stepped(paths, "*")) for item in value]
    return value


def _stepped(paths: Iterable[tuple[str, ...]], step: str) -> frozenset[tuple[str, ...]]:
    """Return what is left of each path after one step; a path that ends here is left as `()`."""
    left: set[tuple[str, ...]] = set()
    for path in paths:
        if path[:1] == ("**",):
            left.add(path)
            path = path[1:]
        if path and path[0] in (step, "*"):
            left.add(path[1:])
    return frozenset(left)
