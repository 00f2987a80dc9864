"""Text of others on a terminal: it cannot act, hide, reorder, or be cut."""

from __future__ import annotations

import json
import unicodedata

import pytest
from chalie.gate.display import arguments_lines, escaped, quoted, wrapped
from hypothesis import given
from hypothesis import strategies as st

anything = st.text(st.characters(exclude_categories=()))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | anything,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(anything, inner, max_size=4),
    max_leaves=12,
)


@given(anything)
def test_nothing_that_acts_or_hides_is_left(text: str) -> None:
    shown = escaped(text)
    for character in shown:
        assert unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
        assert character == " " or unicodedata.category(character) != "Zs"
    shown.encode("utf-8")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", "\\u001b[2J"),
        ("a\rb\nc\x07\x7f\x9b", "a\\u000db\\u000ac\\u0007\\u007f\\u009b"),
        ("safe\u202etxt.exe", "safe\\u202etxt.exe"),
        ("\u2066x\u2069\u200e\u061c", "\\u2066x\\u2069\\u200e\\u061c"),
        ("a\u200bb\u200dc\ufeffd\u2060", "a\\u200bb\\u200dc\\ufeffd\\u2060"),
        ("a\u00a0b\u3000c", "a\\u00a0b\\u3000c"),
        ("\u3164\u2800\u115f", "\\u3164\\u2800\\u115f"),
        ("x\ufe0f\U000e0100", "x\\ufe0f\\udb40\\udd00"),
        ("\U000e0041", "\\udb40\\udc41"),
        ("\ud800", "\\ud800"),
        ("Zürich, Москва, 東京, naïve, 🌤", "Zürich, Москва, 東京, naïve, 🌤"),
        ("हिन्दी", "हिन्दी"),
        ("a" + "\u0301" * 5, "a" + "\u0301" * 3 + "\\u0301\\u0301"),
    ],
)
def test_what_is_escaped_and_what_is_left(text: str, shown: str) -> None:
    assert escaped(text) == shown


@given(values)
def test_a_shown_value_read_back_is_exactly_the_value(value: object) -> None:
    shown = quoted(value)
    assert "\n" not in shown
    assert json.dumps(json.loads(shown)) == json.dumps(value)


def test_a_backslash_of_the_text_is_no_escape_of_ours() -> None:
    assert quoted("\\u202e") != quoted("\u202e")


def test_what_is_not_json_is_shown_all_the_same() -> None:
    assert quoted({1, 2}) == '"{1, 2}"'


@given(anything, st.integers(1, 200))
def test_no_part_of_a_line_is_lost_in_wrapping_and_no_piece_begins_a_line_of_its_own(
    text: str, width: int
) -> None:
    pieces = list(wrapped(escaped(text), width, "  | "))
    assert all(piece.startswith("  | ") for piece in pieces)
    assert "".join(piece[4:] for piece in pieces) == escaped(text)
    columns = [sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in piece) for piece in pieces]
    assert max(columns) <= max(width, 4 + 16 + 2)


def test_the_tail_of_a_long_argument_is_there_and_its_length_is_said_first() -> None:
    (line,) = arguments_lines({"command": "true " * 10_000 + "; rm -rf ~"})
    assert line.startswith('"command" (50,012 characters): "true true')
    assert line.endswith('; rm -rf ~"')


@given(st.text(alphabet="ab \u4e2d", max_size=80), st.integers(20, 40))
def test_a_sentence_is_broken_at_blanks_and_loses_nothing_else(text: str, width: int) -> None:
    lines = list(wrapped(text, width, "  ", words=True))
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(len(line) < width for line in lines)


def test_a_word_is_cut_only_where_it_does_not_fit_a_line() -> None:
    text = f"because: write is set to allow {'x' * 30} by ada"
    assert list(wrapped(text, 24, "  ", words=True)) == [
        "  because: write is set",
        "  to allow",
        "  xxxxxxxxxxxxxxxxxxxxx",
        "  xxxxxxxxx by ada",
    ]
