"""What could be read as the beginning or end of a frame, or as a line of an error; and escaping it.

A reader does not compare code points: it takes full-width letters for letters and does not see what is not
drawn. So text is compared as its skeleton: compatibility forms and case are folded (NFKC and casefold), and
whatever is blank or not drawn at all may stand anywhere in a look-alike. Unicode Standard, chapter 5.21
(default ignorable code points), Annex 15 (NFKC) and Technical Standard 39 (skeletons) say more.

Escaping puts a `~` after the bracket, or before the label; text that holds such a `~` already gets one more,
so taking one off gives every text back as it was. It is `~` and not a backslash because a JSON body then
stays JSON for a reader that does not undo it. A bracket after an escape character always gets one: it would
begin a control sequence, and a terminal that obeys it can draw one text over another.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Mapping
from typing import Final

__all__ = ["escaped", "has_marker", "labels_escaped", "labels_restored", "restored"]

_LINE_ENDS: Final = "\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
# Controls, blanks, what is not drawn, and what is drawn as nothing; line ends are apart.
_UNDRAWN_ASCII: Final = "\x00-\x09\x0e-\x1b\x1f \x7f"
_UNDRAWN: Final = (
    _UNDRAWN_ASCII
    + "\x80-\x84\x86-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f"
    "\u202a-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U00013430-\U00013440\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# Where the characters are that NFKC and casefold turn into one ASCII character.
_COMPATIBLE: Final = (
    range(0x80, 0x3400),
    range(0xA600, 0xAC00),
    range(0xFB00, 0xFFF0),
    range(0x10780, 0x107C0),
    range(0x1CCD0, 0x1CD00),
    range(0x1D400, 0x1D800),
    range(0x1EE00, 0x1EF00),
    range(0x1F100, 0x1F200),
)
# What NFKC leaves alone and an eye still takes for the letter: Cyrillic, Armenian and modifier letters.
_ALIKE: Final = {
    "a": "\u0430\u0410", "d": "\u0501", "e": "\u0435\u0415", "h": "\u04bb\u041d", "i": "\u0456\u0406\u0131",
    "l": "\u04cf\u04c0", "n": "\u0578", "s": "\u0455\u0405", "t": "\u0422", "u": "\u057d", "v": "\u0475",
    ":": "\u02d0\u05c3\u0589\u2236\ua789", "=": "\u2e40\ua78a\u30a0",
}  # fmt: skip
_OF_MARKERS: Final = 'endstauhilv:=([]"'


class _Patterns:
    """The patterns for one kind of text.

    Args:
        spellings: each character of a marker -> the characters, in a regex class, that are read as it.
        undrawn: what may stand between them, in a regex class, besides line ends.
    """

    def __init__(self, spellings: Mapping[str, str], undrawn: str) -> None:
        opening, closing, quote, paren = (spellings[each] for each in '[]"(')
        gap = f"[{undrawn}{_LINE_ENDS}]*+"
        end = gap.join(f"[{spellings[each]}]" for each in "end:")
        rest = gap.join(f"[{spellings[each]}]" for each in "atus=")
        ligature = rf"(?:[{spellings['s']}]{gap}[{spellings['t']}]|[{spellings['st']}])"
        status = f"{gap}{ligature}{gap}{rest}"
        # A name, bare or as a JSON string, also where all of it stands inside of a JSON string.
        name = rf"(?:[^{opening}{closing}{quote}{paren}\\]++|\\+[{quote}]|\\+"
        name += rf"|[{quote}](?:[^{quote}\\]|\\.)*+[{quote}]|[{paren}](?!{status}))*+"
        self._marker = rf"(?!~)(?={gap}{end}|{name}[{paren}]{status})"
        self._opening = opening
        blank = f"[{undrawn}]*+"
        words = "|".join(blank.join(f"[{spellings[each]}]" for each in word) for word in ("hint", "valid"))
        self._label = f"{blank}(?:{words}){blank}[{spellings[':']}]"
        self._start = f"(?<![^{_LINE_ENDS}])"

    # Compiled on first need: most programs that start never meet a bracket.

    @functools.cached_property
    def to_escape(self) -> re.Pattern[str]:
        return re.compile(rf"((?<=\x1b)\[~*+|[{self._opening}]~*+{self._marker})", re.DOTALL)

    @functools.cached_property
    def to_restore(self) -> re.Pattern[str]:
        return re.compile(rf"((?<=\x1b)\[~*|[{self._opening}]~*(?=~{self._marker}))~", re.DOTALL)

    @functools.cached_property
    def unescaped(self) -> re.Pattern[str]:
        return re.compile(rf"(?<=\x1b)\[(?!~)|[{self._opening}]{self._marker}", re.DOTALL)

    @functools.cached_property
    def label_to_escape(self) -> re.Pattern[str]:
        return re.compile(f"{self._start}(~*{self._label})")

    @functools.cached_property
    def label_to_restore(self) -> re.Pattern[str]:
        return re.compile(f"{self._start}~(~*{self._label})")


#: for text in ASCII, which most is.
_ASCII: Final = _Patterns(
    {each: re.escape(each) + (each.upper() if each.isalpha() else "") for each in _OF_MARKERS}
    | {"st": "\ufb06"},
    _UNDRAWN_ASCII,
)


@functools.cache
def _whole() -> _Patterns:
    """Return the patterns for any text; made on first need, since a few milliseconds go into them."""
    spellings = {each: re.escape(each) + (each.upper() if each.isalpha() else "") for each in _OF_MARKERS}
    spellings |= {"st": ""}
    for each, alike in _ALIKE.items():
        spellings[each] += alike
    for block in _COMPATIBLE:
        for character in map(chr, block):
            folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", character).casefold())
            if folded in spellings:
                spellings[folded] += character
    return _Patterns(spellings, _UNDRAWN)


def escaped(text: str) -> str:
    """Return `text` so that nothing in it can be read as a marker."""
    if text.isascii():
        return _ASCII.to_escape.sub(r"\1~", text) if "[" in text else text
    return _whole().to_escape.sub(r"\1~", text) if _has_bracket(text) else text


def restored(text: str) -> str:
    """Return what `escaped` was given."""
    if text.isascii():
        return _ASCII.to_restore.sub(r"\1", text) if "[" in text else text
    return _whole().to_restore.sub(r"\1", text) if _has_bracket(text) else text


def has_marker(text: str) -> bool:
    """Return whether anything in `text` could be read as a marker."""
    if text.isascii():
        return "[" in text and _ASCII.unescaped.search(text) is not None
    return _has_bracket(text) and _whole().unescaped.search(text) is not None


def labels_escaped(text: str) -> str:
    """Return `text` so that no line of it can be read as an error's hint or its valid choices."""
    return (_ASCII if text.isascii() else _whole()).label_to_escape.sub(r"~\1", text)


def labels_restored(text: str) -> str:
    """Return what `labels_escaped` was given."""
    return (_ASCII if text.isascii() else _whole()).label_to_restore.sub(r"\1", text)


def _has_bracket(text: str) -> bool:
    return "[" in text or "\uff3b" in text or "\ufe47" in text
