"""Parameter schemas: the one place where what a model is shown is put together, and what JSON values are made of.

`assemble` is that place, for ability classes, descriptors and the tools of MCP servers alike. The rest of this
file is about values that fit a schema: their canonical bytes, which approvals bind to, and masking the secret ones.
How a schema is checked stands in `soundness.py`, how one is derived from a class in `typed.py`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

from .errors import SchemaRefused
from .names import normal, shown
from .soundness import resolved, self_contained
from .typed import schema_of, structure

__all__ = [
    "INJECTED",
    "MASK",
    "Style",
    "assemble",
    "canonical",
    "digest",
    "known_names",
    "mask",
    "refuse_injected",
    "schema_of",
    "secret_paths",
    "self_contained",
    "structure",
]

#: The parameters the host adds to every tool and takes off each call before anything else looks at it.
INJECTED: Final = ("act_summary", "async")
#: What is shown in place of a secret value.
MASK: Final = "•••"

Style: TypeAlias = Literal["anthropic", "openai", "mcp"]

_ACT_SUMMARY: Final = {
    "type": "string",
    "description": "In a few words, for the person who may be asked: what this call does and why.",
}
_ASYNC: Final = {
    "type": "boolean",
    "description": "Run in the background: answer at once, and deliver the result to the conversation later.",
}
_COMBINATORS: Final = ("allOf", "anyOf", "oneOf")
# Rules about the whole object that the added parameters would break, and words of no use to a model.
_LEFT_OUT: Final = frozenset({"$schema", "$id", "id", "propertyNames", "minProperties", "maxProperties"})
# What the Anthropic and OpenAI APIs refuse at the top level of a tool's schema.
_REFUSED_ON_TOP: Final = frozenset({*_COMBINATORS, "not", "enum", "const", "if", "then", "else"})
_INJECTED_NORMAL: Final = frozenset(normal(name) for name in INJECTED)


def assemble(
    name: str, summary: str, parameters: Mapping[str, Any], *, background: bool, style: Style
) -> dict[str, Any]:
    """Return a tool as the model API of that style takes it, with the host's own parameters in its schema.

    Args:
        name: the name the model calls it by.
        summary: what the model is told of it.
        parameters: JSON Schema of an object, as `self_contained` returns it. It is not changed; calls are
            validated against it, not against what is shown.
        background: whether the channel runs calls in the background; only then is `async` offered.
        style: whose form: `anthropic` (input_schema), `openai` (a function of chat completions), `mcp`.

    Two model APIs refuse alternatives at the top level; for them the parameters of each alternative
    are shown side by side, and none of them as required.
    """
    shape = {key: value for key, value in parameters.items() if key not in _LEFT_OUT}
    properties = dict(shape.get("properties") or {})
    if style != "mcp" and not _REFUSED_ON_TOP.isdisjoint(shape):
        for branch in _branches(parameters, parameters, ()):
            for key, value in (branch.get("properties") or {}).items():
                properties.setdefault(key, value)
        shape = {key: value for key, value in shape.items() if key not in _REFUSED_ON_TOP}
    properties["act_summary"] = dict(_ACT_SUMMARY)
    if background:
        properties["async"] = dict(_ASYNC)
    shape["type"] = "object"
    shape["properties"] = properties
    shape["required"] = [*shape.get("required", ()), "act_summary"]
    if style == "anthropic":
        return {"name": name, "description": summary, "input_schema": shape}
    if style == "openai":
        return {"type": "function", "function": {"name": name, "description": summary, "parameters": shape}}
    return {"name": name, "description": summary, "inputSchema": shape}


def _branches(root: Mapping[str, Any], node: Any, above: tuple[int, ...]) -> Iterator[Mapping[str, Any]]:
    """Yield the schemas that speak of the same object as `node`: alternatives and references, each once."""
    node = resolved(root, node)
    if not isinstance(node, Mapping) or id(node) in above:
        return
    yield node
    for key in _COMBINATORS:
        for branch in node.get(key) or ():
            yield from _branches(root, branch, (*above, id(node)))
    for key in ("if", "then", "else"):
        if key in node:
            yield from _branches(root, node[key], (*above, id(node)))


def known_names(parameters: Mapping[str, Any]) -> frozenset[str]:
    """Return every parameter name a schema declares for its object, those of its alternatives included."""
    return frozenset(
        key for branch in _branches(parameters, parameters, ()) for key in branch.get("properties") or ()
    )


def refuse_injected(parameters: Mapping[str, Any]) -> None:
    """Refuse a schema that has a parameter called like one of the host's own, in whatever spelling.

    Raises:
        SchemaRefused: naming the parameter.
    """
    for name in known_names(parameters):
        if normal(name) in _INJECTED_NORMAL:
            raise SchemaRefused(
                f"the parameter {shown(name)} has a name the host adds to every tool",
                hint="rename the parameter; act_summary and async are taken off a call before the tool sees it",
            )


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
            yield from (path + ("**",) + secret[len(path) :] for secret in inside)
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
    for key in _COMBINATORS:
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
