"""Text of others on a terminal: nothing in it can act, hide, reorder or look like ours."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, Final

__all__ = ["arguments_lines", "escaped", "quoted", "wrapped"]

#: letters, marks and symbols drawn as nothing or as a blank (Unicode's Default_Ignorable, and fillers)
_INVISIBLE: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u180b\u180c\u180d\u180f")
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
#: how many marks may stand on one letter: languages need two or three, hiding text takes many.
_MARKS: Final = 3


def escaped(text: str) -> str:
    """Return text with every control, ANSI, bidi, zero-width or otherwise invisible character as `\\uXXXX`.

    Blanks other than the plain one are escaped as well. Letters of every script stay as they are.
    """
    if text.isascii() and text.isprintable():
        return text
    pieces: list[str] = []
    marks = 0
    for character in text:
        category = unicodedata.category(character)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        hidden = (
            category in _HIDDEN
            or (category == "Zs" and character != " ")
            or character in _INVISIBLE
            or 0xFE00 <= ord(character) <= 0xFE0F  # variation selectors
            or 0xE0100 <= ord(character) <= 0xE01EF
            or marks > _MARKS
        )
        pieces.append(_code(character) if hidden else character)
    return "".join(pieces)


def quoted(value: object) -> str:
    """Return a JSON value as one line of JSON, escaped; reading it back gives exactly the value."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = json.dumps(repr(value), ensure_ascii=False)
    return escaped(text)


def arguments_lines(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Give each argument as `name: value`, whole however long it is, with its length where it is long."""
    for name, value in arguments.items():
        text = quoted(value)
        size = f" ({len(text):,} characters)" if len(text) > 200 else ""
        yield f"{quoted(name)}{size}: {text}"


def wrapped(line: str, width: int, indent: str, *, words: bool = False) -> Iterator[str]:
    """Break a line at a number of columns, so that no terminal cuts or overprints it.

    Args:
        line: already escaped.
        width: columns of the terminal.
        indent: begins every piece, so that text of others never begins a line of its own.
        words: break at a blank where there is one; it is for sentences, of which no character counts.
    """
    room = max(width - len(indent) - 1, 16)
    piece, used = "", 0
    for character in line:
        columns = _columns(character)
        if used + columns > room:
            head, rest = _at_blank(piece + character) if words else (piece, character)
            yield indent + head
            piece, used = rest, sum(map(_columns, rest))
            continue
        piece += character
        used += columns
    yield indent + piece


def _at_blank(text: str) -> tuple[str, str]:
    """Break text that is a character too long at its last blank, else before that character."""
    head, blank, rest = text.rpartition(" ")
    return (head, rest) if blank and head.strip() else (text[:-1], text[-1])


def _columns(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _code(character: str) -> str:
    """Return JSON's escape of a character: two of them outside the basic plane."""
    return json.dumps(character)[1:-1] if ord(character) > 0xFFFF else f"\\u{ord(character):04x}"
