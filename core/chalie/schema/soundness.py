"""Whether a parameter schema can be used: complete in itself, within bounds, and quick to validate against.

A schema comes from an author or from a foreign server. Before any library sees it, it is walked here: nothing
may point outside it (JSON Schema lets a `$ref` name any URL, and MCP's specification forbids to fetch one),
nothing may be so large, deep or branching that validating against it stalls the host. A schema may refer to
itself.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn

from ..errors import SchemaRefused
from .references import LISTS, REFERENCES, look_up, parts, refuse, resolved
from .work import work_by_depth

__all__ = ["bounded", "compiled", "self_contained"]

# Bounds on the schema itself: far beyond what a model can use, and quick to check.
_MOST_BYTES: Final = 256 * 1024
_MOST_SCHEMAS: Final = 4_000
_MOST_BRANCHES: Final = 500
_DEEPEST_SCHEMA: Final = 128

#: the drafts whose own schemas the validating library carries (jsonschema-rs, "Supported drafts")
_DRAFT: Final = re.compile(
    r"https?://json-schema\.org/(?:schema|draft-0[467]/schema|draft/(?:2019-09|2020-12)/schema)#?"
)


def self_contained(schema: Any) -> dict[str, Any]:
    """Return a plain copy of `schema` that stands by itself and describes an object.

    A reference at the root is replaced by what it names, and one to the root by one into `$defs`, because the
    host adds its own parameters to the root. Every other reference stays and is known to resolve.

    Raises:
        SchemaRefused: it is not the schema of an object, refers to something outside itself or to nothing, is
            beyond a bound, or is no valid JSON Schema. The message tells where.
    """
    root = _rooted(_checked(schema))
    work_by_depth(root)
    compiled(root)
    return root


def bounded(schema: Any) -> Any:
    """Return the validator of a schema of values of any kind, held to the bounds that parameters are.

    Raises:
        SchemaRefused: it refers to something outside itself, is beyond a bound, or is no valid JSON Schema.
    """
    root = _checked(schema)
    work_by_depth(root)
    return compiled(root)


def _checked(schema: Any) -> dict[str, Any]:
    root = _plain_copy(schema)
    _check_parts(root)
    _check_words(root)
    return root


def compiled(schema: Mapping[str, Any]) -> Any:
    """Return the validator of a schema; it has no way to fetch anything, and its messages show no values.

    Raises:
        SchemaRefused: the schema is not valid JSON Schema.
    """
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(
            dict(schema), retriever=_no_retrieval, validate_formats=False, mask="the value"
        )
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise _not_json_schema(error) from error


def _check_words(root: dict[str, Any]) -> None:
    """Refuse a schema whose keywords do not hold what JSON Schema says they hold."""
    import jsonschema_rs

    dialect = root.get("$schema")
    if isinstance(dialect, str) and not _DRAFT.fullmatch(dialect):
        refuse(
            f"is not valid JSON Schema: its $schema names {dialect[:200]!r}, which the host does not know, "
            "and nothing is ever fetched",
            "leave $schema out, or name a draft: https://json-schema.org/draft/2020-12/schema",
        )
    try:
        # Without a registry of its own the library would fetch what $schema names.
        jsonschema_rs.meta.validate(root, jsonschema_rs.Registry([], retriever=_no_retrieval))
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        wrong = _wrong_type(root, list(getattr(error, "instance_path", ())))
        raise wrong or _not_json_schema(error) from error


def _not_json_schema(error: Exception) -> SchemaRefused:
    where = "/".join(str(step) for step in getattr(error, "instance_path", ()))
    reason = str(error).split("\n", 1)[0][:300]
    return SchemaRefused(
        f"the parameter schema is not valid JSON Schema{f' at {where}' if where else ''}: {reason}",
        hint="correct it; it is read as JSON Schema 2020-12 unless $schema names another draft",
    )


#: what authors write for a type -> what JSON Schema calls it.
_TYPES: Final[Mapping[str, str]] = {
    "int": "integer",
    "long": "integer",
    "float": "number",
    "double": "number",
    "str": "string",
    "text": "string",
    "bool": "boolean",
    "list": "array",
    "tuple": "array",
    "dict": "object",
    "map": "object",
    "none": "null",
}
_KNOWN_TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")


def _wrong_type(root: Any, steps: Sequence[Any]) -> SchemaRefused | None:
    """Return the refusal of a `type` that is none, in an author's words; None where it is another word."""
    at = len(steps) - (2 if steps and isinstance(steps[-1], int) else 1)
    if at < 0 or steps[at] != "type" or steps[at - 1 : at] in (["properties"], ["$defs"], ["definitions"]):
        return None
    given = root
    for step in steps:
        given = given[step]
    kinds = given if isinstance(given, list) else [given]
    wrong = next((kind for kind in kinds if kind not in _KNOWN_TYPES), None)
    if wrong is None:
        return None
    named = [str(steps[n + 1]) for n in range(at - 1) if steps[n] == "properties"]
    whose = f"the type of the parameter {'.'.join(named)}" if named else "its type"
    meant = _TYPES.get(wrong.casefold()) if isinstance(wrong, str) else None
    listed = f"the types are {', '.join(_KNOWN_TYPES)}"
    return SchemaRefused(
        f"the parameter schema is not valid JSON Schema at {'/'.join(map(str, steps))}: {whose} is "
        f"{json.dumps(wrong)[:60]}",
        hint=f'write "{meant}"; {listed}' if meant else listed,
    )


def _no_retrieval(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is not part of the schema and nothing is fetched")


def _plain_copy(schema: Any) -> dict[str, Any]:
    """Return `schema` as plain JSON containers, of bounded size and depth."""
    if not isinstance(schema, Mapping):
        refuse(f"is a {type(schema).__name__}, not an object", 'use {"type": "object", "properties": {…}}')
    pending: list[tuple[Any, int]] = [(schema, 1)]
    seen = 0
    while pending:
        node, depth = pending.pop()
        seen += 1
        if depth > _DEEPEST_SCHEMA:
            refuse(
                f"is nested over {_DEEPEST_SCHEMA} levels deep",
                "name the inner parts in $defs and refer to them",
            )
        if seen > _MOST_BYTES:
            refuse(f"is over {_MOST_BYTES} bytes")
        if isinstance(node, Mapping):
            for key in node:
                if not isinstance(key, str):
                    refuse(f"has the key {key!r}, which is no text")
            pending.extend((child, depth + 1) for child in node.values())
        elif isinstance(node, (list, tuple)):
            pending.extend((child, depth + 1) for child in node)
        elif isinstance(node, float) and not math.isfinite(node):
            refuse(f"holds {node}, which JSON does not know")
    try:
        text = json.dumps(schema, default=_as_dict, allow_nan=False)
    except (TypeError, ValueError) as error:
        refuse(f"is not JSON: {error}")
    if len(text) > _MOST_BYTES:
        refuse(f"has {len(text)} bytes, over {_MOST_BYTES}", "shorten descriptions, or split the tool")
    copy = json.loads(text)
    assert isinstance(copy, dict)  # it was a mapping
    return copy


def _as_dict(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


def _check_parts(root: dict[str, Any]) -> None:
    """Refuse a schema with a part that is none, a reference that leads nowhere, or too many parts."""
    pending: list[tuple[str, Any]] = [("#", root)]
    seen: set[int] = set()
    while pending:
        place, node = pending.pop()
        if isinstance(node, bool) or id(node) in seen:
            continue
        if not isinstance(node, dict):
            refuse(f"has {json.dumps(node)[:60]} at {place}, where a schema belongs")
        seen.add(id(node))
        if len(seen) > _MOST_SCHEMAS:
            refuse(f"has over {_MOST_SCHEMAS} parts", "describe less of the data, or split the tool")
        for key in LISTS:
            if isinstance(node.get(key), list) and len(node[key]) > _MOST_BRANCHES:
                refuse(
                    f"has {len(node[key])} branches at {place}/{key}, over {_MOST_BRANCHES}",
                    "use enum, or fewer",
                )
        if node is not root and isinstance(node.get("$id"), str) and not node["$id"].startswith("#"):
            refuse(f"changes its base with $id at {place}", "remove the inner $id")
        for key in REFERENCES:
            if isinstance(node.get(key), str):
                pending.append((f"{place}/{key}", _target(root, node[key], place)))
        pending.extend((f"{place}/{where}", child) for where, child in parts(node))


def _target(root: dict[str, Any], reference: str, place: str) -> Any:
    if not reference.startswith("#"):
        refuse(
            f"refers to {reference[:200]!r} at {place}, outside of itself; nothing is ever fetched",
            "copy what it names into $defs and refer to that",
        )
    found = look_up(root, reference)
    if found is None:
        refuse(
            f"refers to {reference[:200]!r} at {place}, which it does not hold",
            "add it, for example under $defs",
        )
    return found


def _rooted(root: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with an object at its root that nothing inside refers back to."""
    if "$ref" in root:
        target = resolved(root, root)
        if not isinstance(target, Mapping):
            refuse("refers to itself at its root and says nothing else")
        root = {**target, **{key: value for key, value in root.items() if key != "$ref"}}
    kinds = root.get("type")
    if kinds is None and (
        _mentions_object(root) or any(_mentions_object(part) for part in _alternatives(root))
    ):
        kinds = "object"
    if "object" not in (kinds if isinstance(kinds, list) else [kinds]):
        refuse(
            f"describes {json.dumps(kinds) if kinds else 'anything'}, but arguments are always an object",
            'write {"type": "object", "properties": {}} for a tool without parameters',
        )
    root = {**root, "type": "object"}
    name = "root"
    while name in root.get("$defs", {}):
        name += "_"
    if _replace_root_references(root, f"#/$defs/{name}"):
        inner = {
            key: value for key, value in root.items() if key not in ("$defs", "definitions", "$schema", "$id")
        }
        root = {**root, "$defs": {**root.get("$defs", {}), name: json.loads(json.dumps(inner))}}
    return root


def _replace_root_references(root: dict[str, Any], instead: str) -> bool:
    """Point every reference to the root somewhere else, and return whether there was one."""
    found = False
    pending: list[Any] = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            for key in REFERENCES:
                if node.get(key) == "#":
                    del node[key]
                    node["$ref"] = instead
                    found = True
            pending.extend(child for _, child in parts(node))
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
