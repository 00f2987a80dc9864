"""What an ability returns: one `ToolResult`, either ok or an error that tells its reader the next step."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from attrs import field, frozen

__all__ = ["Scalar", "ToolResult"]

#: What a meta value may be.
Scalar: TypeAlias = str | int | float | bool | None

_CODE = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_META_KEY = re.compile(r"[a-z][a-z0-9_]{0,63}")
#: Words of the frame's own header; meta cannot stand in for them.
_TAKEN: Final = frozenset({"status", "code"})
_LONGEST_META: Final = 4096
_LARGEST_INTEGER: Final = 2**63


@frozen
class ToolResult:
    """The outcome of a call, made by `ToolResult.ok` or `ToolResult.error` and by nothing else.

    Attributes:
        status: `success` or `error`.
        body: of a success: text, or any JSON value; None for nothing to say. None for an error.
        rich: what a chat may draw beside the text (an image, a card); the model never sees it.
        meta: short facts about the result, flat: a count, a source, a unit. Shown in the frame's first line.
        message: of an error: one sentence for the model, what is wrong and with what.
        code: of an error: a stable kebab-case word, one of `chalie.errors.CODES` or the author's own.
        hint: of an error: the next step, or None.
        valid: of an error: what would have been accepted, or empty.
    """

    status: Literal["success", "error"]
    body: Any = None
    rich: Any = None
    meta: Mapping[str, Scalar] = field(factory=dict)
    message: str = ""
    code: str | None = None
    hint: str | None = None
    valid: tuple[str, ...] = ()

    @classmethod
    def ok(cls, body: Any = None, rich: Any = None, **meta: Scalar) -> ToolResult:
        """Return a success.

        Args:
            body: what the model reads: text as it is, anything else as JSON.
            rich: what a chat shows beside it.
            meta: flat facts, as in `ToolResult.ok(rows, count=len(rows))`.

        Raises:
            TypeError: a meta value is not a string, number, boolean or None.
            ValueError: a meta name or value cannot be shown in one line.
        """
        return cls("success", body, rich, _checked(meta) if meta else {})

    @classmethod
    def error(
        cls,
        message: str,
        *,
        code: str,
        hint: str | None = None,
        valid: Sequence[str] = (),
        **meta: Scalar,
    ) -> ToolResult:
        """Return an error: not an exception, but an answer the model can act on.

        Args:
            message: one sentence: what is wrong and with what.
            code: a stable kebab-case word a program can test for, as in `unknown-place`.
            hint: the next step, as in `pass a larger town nearby`.
            valid: what would have been accepted, as in `("metric", "imperial")`.
            meta: flat facts, as in `action="recall"`.

        Raises:
            TypeError: `message` or `hint` is not text, `valid` is one text, or a meta value is not a scalar.
            ValueError: `code` is not kebab-case, or a meta name or value cannot be shown in one line.
        """
        if not isinstance(message, str) or not (hint is None or isinstance(hint, str)):
            raise TypeError("ToolResult.error takes its message and hint as text")
        if not isinstance(code, str) or not _CODE.fullmatch(code):
            raise ValueError(f"the code {code!r} is not kebab-case, as in 'unknown-place'")
        if isinstance(valid, str):
            raise TypeError(f"valid is a sequence of texts, as in ({valid!r},), not one text")
        accepted = tuple(str(value) for value in valid)
        return cls("error", None, None, _checked(meta) if meta else {}, message, code, hint or None, accepted)


def _checked(meta: Mapping[str, Any]) -> dict[str, Scalar]:
    """Return `meta` with plain values; refuse what one line of text cannot carry back."""
    checked: dict[str, Scalar] = {}
    for key, value in meta.items():
        if key in _TAKEN or not _META_KEY.fullmatch(key):
            reason = "is the frame's own word" if key in _TAKEN else "is not a lower-case identifier"
            raise ValueError(f"the meta name {key!r} {reason}; rename it, as in source= or count=")
        checked[key] = _scalar(key, value)
    return checked


def _scalar(key: str, value: Any) -> Scalar:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if len(value) > _LONGEST_META:
            raise ValueError(
                f"meta {key}= has {len(value)} characters, over {_LONGEST_META}: put it in the body"
            )
        return str(value) if type(value) is str else str.__str__(value)
    if isinstance(value, int):
        if abs(value) > _LARGEST_INTEGER:
            raise ValueError(f"meta {key}= is beyond 64 bits: pass it as text")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"meta {key}={value!r} is no number JSON knows: leave it out or pass text")
        return float(value)
    raise TypeError(
        f"meta {key}= is a {type(value).__name__}, but meta is flat (text, numbers, booleans, None); "
        "put it in the body"
    )
