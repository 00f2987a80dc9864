"""Parameters as a frozen attrs class: its JSON Schema, and an instance made from a call's arguments."""

from __future__ import annotations

import collections.abc
import datetime
import enum
import functools
import json
import pathlib
import types
import typing
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import attrs

from ..errors import ArgumentRefused, SchemaRefused
from .values import secret_paths

__all__ = ["schema_of", "structure"]

_T = TypeVar("_T")
_SCALARS: Final[Mapping[Any, Mapping[str, Any]]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    Any: {},
    datetime.date: {"type": "string", "format": "date"},
    datetime.datetime: {"type": "string", "format": "date-time"},
    pathlib.Path: {"type": "string"},
}
_LISTS: Final = (list, tuple, collections.abc.Sequence, set, frozenset, collections.abc.Set)
_TABLES: Final = (dict, collections.abc.Mapping)


def schema_of(cls: type) -> dict[str, Any]:
    """Return the JSON Schema of the arguments that make an instance of an attrs class.

    Fields without a default are required. A field's `metadata` adds any keywords of JSON Schema, as in
    `field(metadata={"description": "in degrees", "minimum": -90})`. Understood are the JSON types, `Literal`,
    enums, dates, unions, lists, tuples, sets, dicts with text keys and other attrs classes, recursive or not.

    Raises:
        SchemaRefused: `cls` is no attrs class, or a field's type has no JSON form; the field is named.
    """
    definitions: dict[str, Any] = {}
    root = _object(cls, definitions)
    if definitions.get(cls.__name__) is None:
        definitions.pop(cls.__name__, None)
    return {**root, "$defs": definitions} if definitions else root


def _object(cls: type, definitions: dict[str, Any]) -> dict[str, Any]:
    if not attrs.has(cls):
        raise SchemaRefused(
            f"{cls.__qualname__} cannot stand for parameters: it is no attrs class",
            hint="decorate it with @attrs.frozen, or return a JSON Schema",
        )
    try:
        attrs.resolve_types(cls, include_extras=True)
    except NameError as error:
        raise SchemaRefused(f"a field type of {cls.__qualname__} is unknown: {error}") from error
    properties: dict[str, Any] = {}
    required: list[str] = []
    for attribute in attrs.fields(cls):
        if not attribute.init:
            continue
        shape = {**_type(attribute.type, f"{cls.__qualname__}.{attribute.name}", definitions)}
        shape.update(attribute.metadata)
        if attribute.default is attrs.NOTHING:
            required.append(attribute.name)
        elif (default := _json_default(attribute.default)) is not attrs.NOTHING:
            shape["default"] = default
        properties[attribute.name] = shape
    result: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**result, "required": required} if required else result


def _json_default(default: Any) -> Any:
    """Return a default as a JSON value, or NOTHING where it has no fixed one."""
    if isinstance(default, enum.Enum):
        default = default.value
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # a class at run time
        return attrs.NOTHING
    try:
        return json.loads(json.dumps(default, allow_nan=False))
    except (TypeError, ValueError):
        return attrs.NOTHING


def _type(kind: Any, field: str, definitions: dict[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a field's type."""
    try:
        if kind in _SCALARS:
            return _SCALARS[kind]
    except TypeError:  # an unhashable annotation
        pass
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        notes = [{"description": note} for note in arguments[1:] if isinstance(note, str)]
        extra = [note for note in arguments[1:] if isinstance(note, Mapping)]
        return functools.reduce(
            lambda a, b: {**a, **b}, [*notes, *extra], {**_type(arguments[0], field, definitions)}
        )
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin in (typing.Union, types.UnionType):
        return _union([_type(argument, field, definitions) for argument in arguments])
    if kind in _LISTS or origin in _LISTS:
        return _list(origin or kind, arguments, field, definitions)
    if kind in _TABLES or origin in _TABLES:
        if arguments and arguments[0] is not str:
            raise SchemaRefused(f"the keys of {field} must be text, not {arguments[0]!r}")
        values = _type(arguments[1], field, definitions) if arguments else {}
        return {"type": "object", **({"additionalProperties": dict(values)} if values else {})}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [member.value for member in kind]}
    if isinstance(kind, type) and attrs.has(kind):
        if kind.__name__ not in definitions:
            definitions[kind.__name__] = None  # stands here while its own fields are read: it may hold itself
            definitions[kind.__name__] = _object(kind, definitions)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    raise SchemaRefused(
        f"the type {kind!r} of {field} has no JSON form",
        hint="use JSON types, Literal, enums, dates, lists, dicts, unions or attrs classes",
    )


def _union(shapes: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    if all(set(shape) == {"type"} and isinstance(shape["type"], str) for shape in shapes):
        return {"type": [shape["type"] for shape in shapes]}
    return {"anyOf": [dict(shape) for shape in shapes]}


def _list(
    origin: Any, arguments: tuple[Any, ...], field: str, definitions: dict[str, Any]
) -> Mapping[str, Any]:
    if origin is tuple and arguments and arguments[-1] is not Ellipsis:
        parts = [dict(_type(argument, field, definitions)) for argument in arguments]
        return {"type": "array", "prefixItems": parts, "minItems": len(parts), "maxItems": len(parts)}
    items = dict(_type(arguments[0], field, definitions)) if arguments else {}
    unique = {"uniqueItems": True} if origin in (set, frozenset, collections.abc.Set) else {}
    return {"type": "array", **({"items": items} if items else {}), **unique}


def structure(cls: type[_T], params: Mapping[str, Any]) -> _T:
    """Return an instance of an attrs class made from validated arguments.

    Raises:
        ArgumentRefused: a value does not fit; the message names each field.
    """
    import cattrs

    try:
        return _converter().structure(params, cls)  # type: ignore[no-any-return]  # what cls makes
    except Exception as error:  # cattrs groups what converters and validators of any kind raise
        # A validator's own words may show the value, which only a class without secrets can afford.
        in_words = _in_words if not secret_paths(schema_of(cls)) else cattrs.v.format_exception
        reasons = cattrs.transform_error(error, path="arguments", format_exception=in_words)
        text = "; ".join(reason.removesuffix(" @ arguments") for reason in reasons)
        raise ArgumentRefused(text.replace("arguments.", "")) from error


def _in_words(error: BaseException, kind: type | None) -> str:
    import cattrs

    said = isinstance(error, ValueError) and str(error)
    return said or cattrs.v.format_exception(error, kind)


@functools.cache
def _converter() -> Any:
    import cattrs

    converter = cattrs.Converter()
    for kind in (datetime.date, datetime.datetime):
        converter.register_structure_hook(kind, lambda value, wanted: wanted.fromisoformat(value))
    converter.register_structure_hook(pathlib.Path, lambda value, _: pathlib.Path(value))
    return converter
