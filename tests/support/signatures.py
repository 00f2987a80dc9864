"""Signatures as a reader would write them, the same on every Python and with every version of attrs."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import attrs

__all__ = ["of_class", "of_function"]

_WIDE = 100


def of_function(name: str, function: Callable[..., Any], *, method: bool = False) -> str:
    """Return `async def name(…) -> …`, over several lines where it is long."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if method:
        parameters = parameters[1:]
    words = list(_parameters(parameters))
    returns = "" if signature.return_annotation is inspect.Signature.empty else signature.return_annotation
    head = "async def " if inspect.iscoroutinefunction(function) else "def "
    return _fitted(f"{head}{name}", words, f" -> {_type(returns)}" if returns else "")


def of_class(cls: type) -> str:
    """Return how a class is made: `Name(field: type = default, …)`."""
    words = []
    for field in attrs.fields(cls):
        if field.init:
            default = "" if field.default is attrs.NOTHING else f" = {_default(field.default)}"
            words.append(f"{field.alias}: {_type(field.type)}{default}")
    return _fitted(cls.__name__, words, "")


def _parameters(parameters: Iterable[inspect.Parameter]) -> Iterable[str]:
    named_only = False
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not named_only:
            named_only = True
            yield "*"
        text = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        named_only = named_only or text == "*"
        text += parameter.name
        if parameter.annotation is not parameter.empty:
            text += f": {_type(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            text += f" = {_default(parameter.default)}"
        yield text


def _type(annotation: Any) -> str:
    if isinstance(annotation, str):
        return annotation
    return getattr(annotation, "__name__", None) or str(annotation)


def _default(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, attrs.Factory):  # type: ignore[arg-type]
        return f"{value.factory.__name__}()"
    return repr(value)


def _fitted(head: str, words: Iterable[str], tail: str) -> str:
    words = list(words)
    line = f"{head}({', '.join(words)}){tail}"
    if len(line) > _WIDE:
        line = f"{head}(\n{''.join(f'    {word},{chr(10)}' for word in words)}){tail}"
    return line.replace("'", '"')
