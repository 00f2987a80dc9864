"""Rules for the letters of a text: none that looks like another one, none that cannot be seen."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..gate.display import escaped
from .finding import Finding, Subject, rule

__all__ = ["LATIN", "RULES", "check", "is_invisible", "look_alikes", "texts", "without_invisible"]

LOOKALIKE: Final = rule("look-alike")
INVISIBLE: Final = rule("invisible")
RULES: Final = (LOOKALIKE, INVISIBLE)

_FROM: Final = "аВеԁһіјкКМНоОрРсСТуУхХѕЅԍԛԝАЕІЈѵѡαΑΒΕΖΗΙΚΜΝοΟΡΤΥΧνρικυχωօոսհցզᎪᏴᏟᎬᎻᎫᏦᏞᎷᏢᏚᎢᏙᎳᏃɑɡгпьЬ"
_TO: Final = "aBedhijkKMHoOpPcCTyYxXsSGqwAEIJvwaABEZHIKMNoOPTYXvpikuxwonuhgqABCEHJKLMPSTVWZagrnbb"
#: letter of another script -> the Latin one it is drawn like (from Unicode's confusables.txt).
LATIN: Final[Mapping[str, str]] = dict(zip(_FROM, _TO, strict=True))
_WORD: Final = re.compile(r"[^\W\d_]+")
_STYLED: Final = (
    "MATHEMATICAL ",
    "FULLWIDTH LATIN ",
    "DOUBLE-STRUCK ",
    "CIRCLED LATIN ",
    "SCRIPT ",
    "BLACK-LETTER ",
)
#: small capitals, `ᴀ`.
_SMALL: Final = "LATIN LETTER SMALL CAPITAL "
#: characters of other categories than format that are drawn as nothing, and the soft hyphen.
_FILLERS: Final = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u180b\u180c\u180d\u180e\u180f\u00ad"
)
_JOINERS: Final = "\u200c\u200d"
#: scripts whose letters are joined or kept apart by joiners.
_JOINING: Final = (
    *("ARABIC", "SYRIAC", "THAANA", "NKO", "MONGOLIAN", "TIBETAN", "KHMER", "MYANMAR", "SINHALA"),
    *("DEVANAGARI", "BENGALI", "GURMUKHI", "GUJARATI", "ORIYA", "TAMIL", "TELUGU", "KANNADA", "MALAYALAM"),
)


def check(subject: Subject) -> Iterator[Finding]:
    """Yield the letters of an ability's texts that look like others or like nothing."""
    for where, text in texts(subject):
        hidden = [f"U+{ord(text[at]):04X}" for at in _invisible(text)]
        if hidden:
            said = ", ".join(dict.fromkeys(hidden[:8]))
            yield Finding.of(
                INVISIBLE,
                subject,
                where,
                f"{_whose(subject, where)} holds what cannot be seen: {said}",
                "remove it",
            )
        for word, wanted in look_alikes(text):
            odd = ", ".join(f"U+{ord(c):04X}" for c in dict.fromkeys(word) if not c.isascii())
            shown = word.encode("unicode_escape").decode()
            yield Finding.of(
                LOOKALIKE,
                subject,
                where,
                f"{_whose(subject, where)} has a word that looks like {wanted!r} and is {shown} ({odd})",
                f"write {wanted}",
            )


def texts(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield (where, text) for every text of an ability that a person or a model reads."""
    item = subject.descriptor
    yield "name", item.name
    yield "namespace", item.namespace
    yield "summary", item.summary
    yield "search tooltip", item.search_tooltip
    for number, example in enumerate(item.examples, 1):
        yield f"example {number}", example
    for action in item.actions:
        yield f"action {escaped(action)}", action
    yield from described(item.parameters, "parameter ")


def described(schema: Any, path: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield (where, text) for the names, titles, descriptions and choices of a schema's parameters."""
    if not isinstance(schema, Mapping) or depth > 8:
        return
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        for name, inner in properties.items():
            here = f"{path}{escaped(str(name))}"
            yield here, str(name)
            if isinstance(inner, Mapping):
                for fact in ("title", "description"):
                    if isinstance(inner.get(fact), str):
                        yield f"{fact} of {here}", inner[fact]
                choices = inner.get("enum")
                if isinstance(choices, list | tuple):
                    yield from ((f"a choice of {here}", each) for each in choices if isinstance(each, str))
                yield from described(inner, f"{here}.", depth + 1)
    items = schema.get("items")
    if isinstance(items, Mapping):
        yield from described(items, f"{path.removesuffix('.')}[].", depth + 1)


def _invisible(text: str) -> Iterator[int]:
    """Yield the positions of characters that are drawn as nothing and are not needed where they stand."""
    if text.isascii() and text.isprintable():
        return
    for at, character in enumerate(text):
        if is_invisible(text, at, character):
            yield at


def is_invisible(text: str, at: int, character: str) -> bool:
    """Tell whether the character at a position is drawn as nothing without need."""
    code = ord(character)
    if 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF:
        return not (at and _takes_variant(text[at - 1]))
    if character in _JOINERS:
        return not (at and _joins(text[at - 1]) and at + 1 < len(text) and _joins(text[at + 1]))
    if character in _FILLERS:
        return True
    category = unicodedata.category(character)
    return category in ("Cf", "Cs", "Co") or (category == "Cc" and character not in "\n\t\r")


def _takes_variant(character: str) -> bool:
    return unicodedata.category(character) in ("So", "Sm", "Sk", "Lo", "Po") or character.isdigit()


def _joins(character: str) -> bool:
    category = unicodedata.category(character)
    if category in ("So", "Sk") or 0xFE00 <= ord(character) <= 0xFE0F:
        return True
    return category in ("Lo", "Mn", "Mc", "Lm") and unicodedata.name(character, "").startswith(_JOINING)


def without_invisible(text: str) -> str:
    """Return a text without the characters that `invisible` names."""
    hidden = set(_invisible(text))
    return "".join(character for at, character in enumerate(text) if at not in hidden)


def look_alikes(text: str) -> Iterator[tuple[str, str]]:
    """Yield (word, the word it looks like) for each word with letters that pass for others."""
    if text.isascii():
        return
    words = _WORD.findall(text)
    foreign = [word for word in words if not any(c.isascii() for c in word)]
    plain = any(word.isascii() for word in words) and all(
        _drawn_latin(word) for word in foreign if _is_odd(word)
    )
    for word in dict.fromkeys(words):
        wanted = "".join(_latin(character) for character in word)
        if wanted == word:
            continue
        if len(word) == 1 and not unicodedata.name(word, "").startswith(_STYLED):
            continue  # a letter alone is a symbol, or a sound: α, ρ, ɪ
        mixed = any(c.isascii() for c in word)
        styled = any(_is_styled(c) for c in word)
        whole = plain and _drawn_latin(word)
        if styled or whole or (mixed and any(c in LATIN or _is_numeral(c) for c in word)):
            yield word, wanted


def _is_odd(word: str) -> bool:
    """Whether a word is of a script that has letters like Latin ones."""
    return any(unicodedata.name(c, "").startswith(("CYRILLIC", "GREEK")) for c in word)


def _drawn_latin(word: str) -> bool:
    return all(c in LATIN for c in word)


def _is_styled(character: str) -> bool:
    return (
        not character.isascii()
        and unicodedata.name(character, "").startswith((*_STYLED, _SMALL))
        and _latin(character) != character
    )


def _is_numeral(character: str) -> bool:
    return "ROMAN NUMERAL" in unicodedata.name(character, "") and _latin(character) != character


def _latin(character: str) -> str:
    if character in LATIN:
        return LATIN[character]
    name = "" if character.isascii() else unicodedata.name(character, "")
    if name.startswith(_SMALL):
        letter = name.removeprefix(_SMALL).lower()
        return letter if len(letter) == 1 else character
    if not name.startswith(_STYLED) and "ROMAN NUMERAL" not in name:
        return character
    folded = unicodedata.normalize("NFKC", character)
    return folded if folded.isascii() and folded.isalpha() else character


def _whose(subject: Subject, where: str) -> str:
    return f"the {where.removeprefix('a ')} of {escaped(subject.descriptor.name)}"
