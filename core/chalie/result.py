"""What an ability returns: one `ToolResult`, either ok or an error that tells its reader the next step."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from attrs import field, frozen

__all__ = ["Scalar", "ToolResult", "check"]

#: What a meta value may be.
Scalar: TypeAlias = str | int | float | bool | None

_CODE = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_META_KEY = re.compile(r"[a-z][a-z0-9_]{0,63}")
#: What the host itself says in a frame's first line; meta cannot stand in for it.
_TAKEN: Final = frozenset({"status", "code", "result", "truncated"})
_LONGEST_META: Final = 4096
_LARGEST_INTEGER: Final = 2**63


@frozen
class ToolResult:
    """The outcome of a call, best made by `ToolResult.ok` or `ToolResult.error`.

    Whichever way it is made, it is checked: its parts go into the first line of a frame as they are.

    Attributes:
        status: `success` or `error`.
        body: of a success: text, or any JSON value; None for nothing to say. None for an error.
        rich: what a chat may draw beside the text (an image, a card); the model never sees it.
        meta: short facts about the result, flat: a count, a source, a unit. Shown in the frame's first line.
        message: of an error: one sentence for the model, what is wrong and with what.
        code: of an error: a stable kebab-case word, one of `chalie.errors.CODES` or the author's own.
        hint: of an error: the next step, or None.
        valid: of an error: what would have been accepted, or empty.

    Raises:
        TypeError: a part is not of its type.
        ValueError: a part cannot be shown where it belongs, or belongs to the other status.
    """

    status: Literal["success", "error"]
    body: Any = None
    rich: Any = None
    meta: Mapping[str, Scalar] = field(factory=dict)
    message: str = ""
    code: str | None = None
    hint: str | None = None
    valid: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        check(self)

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
        return cls("success", body, rich, meta)

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
        if isinstance(valid, str):
            raise TypeError(f"valid is a sequence of texts, as in ({valid!r},), not one text")
        accepted = tuple(str(value) for value in valid)
        return cls("error", None, None, meta, message, code, hint, accepted)


def check(result: ToolResult) -> None:
    """Refuse a result that says what no frame can carry, and make its parts plain values of its own.

    Every result is checked as it is made; the host checks those of an ability once more, since the meta of
    one may have been changed meanwhile.

    Raises:
        TypeError: a part is not of its type.
        ValueError: a part cannot be shown where it belongs, or belongs to the other status.
    """
    meta = result.meta
    if meta or type(meta) is not dict:
        _set(result, "meta", _checked(meta))
    status = result.status
    if type(status) is str and status == "success":
        if result.code is not None or result.hint is not None or result.message != "" or result.valid != ():
            raise ValueError("a success has no code, message, hint or valid choices: use ToolResult.error")
    elif type(status) is str and status == "error":
        _check_error(result)
    else:
        raise ValueError(f"the status {status!r:.80} is neither 'success' nor 'error'")


_set: Final = object.__setattr__


def _check_error(result: ToolResult) -> None:
    message, code, hint, valid = result.message, result.code, result.hint, result.valid
    if result.body is not None or result.rich is not None:
        raise ValueError("an error has neither a body nor a rich payload: say it in its message")
    if not isinstance(message, str) or not (hint is None or isinstance(hint, str)):
        raise TypeError("ToolResult.error takes its message and hint as text")
    if not isinstance(code, str) or not _CODE.fullmatch(code):
        raise ValueError(f"the code {code!r:.80} is not kebab-case, as in 'unknown-place'")
    if not isinstance(valid, tuple) or not all(isinstance(choice, str) for choice in valid):
        raise TypeError("valid is a tuple of texts, as in ('metric', 'imperial')")
    _set(result, "message", _plain(message))
    _set(result, "code", _plain(code))
    _set(result, "hint", _plain(hint) if hint else None)
    _set(result, "valid", tuple([_plain(choice) for choice in valid]))


def _plain(text: str) -> str:
    """Return a text without what a subclass would make of it."""
    return text if type(text) is str else str.__str__(text)


def _checked(meta: Mapping[str, Any]) -> dict[str, Scalar]:
    """Return `meta` with plain values; refuse what one line of text cannot carry back."""
    if not isinstance(meta, Mapping):
        raise TypeError(f"meta is a {type(meta).__name__}, and not a mapping of names to flat values")
    checked: dict[str, Scalar] = {}
    for key, value in meta.items():
        if not isinstance(key, str):
            raise TypeError(f"the meta name {key!r:.80} is no text")
        key = _plain(key)
        if key in _TAKEN or not _META_KEY.fullmatch(key):
            reason = "is the host's own word" if key in _TAKEN else "is not a lower-case identifier"
            raise ValueError(f"the meta name {key!r:.80} {reason}; rename it, as in source= or count=")
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
        return _plain(value)
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
