"""The body of a result as text: made from whatever an ability returned, and cut to what a model can take."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["body_text", "cut", "encodable"]

_DEEPEST = 100
_SURROGATE = re.compile("[\ud800-\udfff]")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{},:]|[^\s\[\]{},:"]+')
_WHOLE_CHARACTERS = re.compile(
    r"(?:[^\\]|\\[^u]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u(?![dD][89abAB])[0-9a-fA-F]{4})*"
)


def body_text(body: Any) -> str:
    """Return a body as text: text as it is, None as nothing, anything else as compact JSON.

    Never raises. What JSON does not know is put as near as it goes: NaN and infinities are null, bytes are their
    text or a note of their length, sets are arrays, a cycle and what lies deeper than 100 levels is a note, any
    other object is its text. A lone surrogate, which no encoding can carry, becomes U+FFFD.
    """
    if isinstance(body, str):
        return encodable(body)
    if body is None:
        return ""
    if isinstance(body, (bytes, bytearray, memoryview)):
        return _bytes_text(bytes(body))
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except Exception:  # whatever an author's object raises while it is looked at
        text = json.dumps(_plain(body, ()), ensure_ascii=False, separators=(",", ":"))
    return encodable(text)


def _plain(value: Any, above: tuple[int, ...]) -> Any:
    """Return the JSON value nearest to `value`; `above` holds the ids of the containers around it."""
    try:
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, int):
            return int(value) if value.bit_length() < 10_000 else "(a number too long to show)"
        if isinstance(value, float):
            return float(value) if value - value == 0 else None
        if isinstance(value, (bytes, bytearray, memoryview)):
            return _bytes_text(bytes(value))
        if id(value) in above:
            return "(a cycle)"
        if len(above) >= _DEEPEST:
            return "(too deep to show)"
        inside = (*above, id(value))
        if isinstance(value, Mapping):
            return {_key_text(key): _plain(item, inside) for key, item in value.items()}
        if isinstance(value, (set, frozenset)):
            return sorted((_plain(item, inside) for item in value), key=repr)
        if isinstance(value, Iterable) and isinstance(value, (list, tuple)):
            return [_plain(item, inside) for item in value]
        return str(value)
    except Exception:  # an author's object that cannot even be looked at
        return f"(a {type(value).__name__} that cannot be shown)"


def _key_text(key: Any) -> str:
    return key if isinstance(key, str) else str(_plain(key, ()))


def _bytes_text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"({len(data)} bytes that are not text)"


def encodable(text: str) -> str:
    """Return `text` with each lone surrogate, which no encoding can carry, as U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


def cut(text: str, limit_bytes: int) -> tuple[str, bool]:
    """Return `text` cut to `limit_bytes` of UTF-8, and whether anything was cut.

    JSON is cut after an element and closed again, so it stays valid; where that would lose more than half of
    what there is room for, the long string at the cut is shortened instead. Other text is cut between characters.
    """
    text = encodable(text)
    if len(text) <= limit_bytes and _size(text) <= limit_bytes:
        return text, False
    if text.lstrip()[:1] in ("{", "[") and _is_json(text):
        return _cut_json(text, limit_bytes), True
    return text.encode()[:limit_bytes].decode("utf-8", "ignore"), True


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _cut_json(text: str, limit_bytes: int) -> str:
    """Return the valid JSON `text`, of an array or object, cut to `limit_bytes` and closed again."""
    closers = ""  # what closes the containers open at this point, innermost first
    best_end, best_closers = 0, ""  # the longest cut so far that fits
    used = position = 0  # bytes and characters read
    is_value = True  # whether the next string is a value and not a key
    for match in _TOKEN.finditer(text):
        token = match.group()
        before = used + _size(text[position : match.start()])
        used, position = before + _size(token), match.end()
        if token in "{[":
            closers = ("}" if token == "{" else "]") + closers
            is_value = token == "["
        elif token in "}]":
            closers = closers[1:]
            is_value = True
        elif token in ",:":
            is_value = token == ":" or closers[0] == "]"
            continue
        elif not is_value:
            continue
        if used + len(closers) <= limit_bytes:
            best_end, best_closers = position, closers
        elif token[0] == '"' and best_end * 2 < limit_bytes:
            shorter = _cut_string(token, limit_bytes - before - len(closers))
            return text[: match.start()] + shorter + closers if shorter else text[:best_end] + best_closers
        elif used > limit_bytes:
            break
    return text[:best_end] + best_closers


def _cut_string(token: str, limit_bytes: int) -> str:
    """Return the JSON string `token` with as many of its characters as fit, or nothing where none does."""
    inside = token[1:-1].encode()[: max(limit_bytes - 2, 0)].decode("utf-8", "ignore")
    whole = _WHOLE_CHARACTERS.match(inside)  # not half of an escape, nor of an escaped surrogate pair
    return f'"{whole.group()}"' if whole and whole.group() else ""


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
