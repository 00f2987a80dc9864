"""Parameter schemas: what a model is shown of a tool, and what is done with values that fit.

`assemble` is the one place where a model's view is put together, for ability classes, descriptors and the
tools of MCP servers alike. The other files: `soundness.py` checks a schema (`references.py` and `work.py` are
parts of that), `typed.py` makes one from a class, `values.py` is about the values that fit one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

from ..errors import SchemaRefused
from ..names import normal, shown
from .references import resolved
from .soundness import bounded, compiled, self_contained
from .typed import schema_of, structure
from .values import MASK, canonical, digest, mask, secret_paths
from .work import DEEPEST_DATA, work_by_depth

__all__ = [
    "DEEPEST_DATA",
    "INJECTED",
    "MASK",
    "Style",
    "assemble",
    "bounded",
    "canonical",
    "compiled",
    "digest",
    "known_names",
    "mask",
    "refuse_injected",
    "resolved",
    "schema_of",
    "secret_paths",
    "self_contained",
    "structure",
    "work_by_depth",
]

#: The parameters the host adds to every tool and takes off each call before anything else looks at it.
INJECTED: Final = ("act_summary", "async")

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
    if not isinstance(node, Mapping) or id(node) in above:
        return
    yield node
    if "$ref" in node:
        yield from _branches(root, resolved(root, node), (*above, id(node)))
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
                hint="rename it; act_summary and async are taken off a call before the tool sees it",
            )
