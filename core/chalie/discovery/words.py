"""Cut text into the terms that lexical evidence is made of, in any script."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise

__all__ = ["content_words", "foreign_share", "is_unspaced", "plain", "stem", "stop_words", "terms", "words"]

#: characters of an entry or a document that are looked at; what follows is not read.
TEXT_LIMIT = 8_192

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
#: where there is none of this, there is nothing to cut: many times quicker to see.
_INNER_CAPITAL = re.compile("[A-Za-z0-9][A-Z]")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SURROGATE = re.compile("[\ud800-\udfff]")
_APOSTROPHE = re.compile("['\u2019]")
# Scripts written without spaces between words; Korean is spaced, but its particles are glued to the word.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_FOREIGN = re.compile("[^\u0000-\u024f\u1e00-\u1eff\u2000-\u2bff\ufb00-\ufb06\uff00-\uff65]")


def plain(text: str) -> str:
    """Return the part of `text` that is read: lone surrogates replaced, in Unicode's compatibility form."""
    text = text[:TEXT_LIMIT]
    # most entries: nothing to replace and nothing to compose
    return text if text.isascii() else unicodedata.normalize("NFKC", _SURROGATE.sub("\ufffd", text))


def words(text: str) -> list[str]:
    """Return the words of `text` in order: case folded, camelCase and snake_case cut, possessives joined."""
    return list(_words(text))


@lru_cache(maxsize=64)
def _words(text: str) -> tuple[str, ...]:
    text = plain(text)
    cut = (_CAMEL.sub(" ", text) if _INNER_CAPITAL.search(text) else text).replace("_", " ")
    # folding first is quicker, but outside ASCII it can take a letter apart
    found = _WORD.findall(cut.lower()) if text.isascii() else [w.casefold() for w in _WORD.findall(cut)]
    if "'" in text or "\u2019" in text:
        found = [_APOSTROPHE.sub("", word) for word in found]
    return tuple(found)


def is_unspaced(word: str) -> bool:
    """Whether a word is of a script that sets no words apart (Chinese, Japanese, Korean, Thai, …)."""
    return _UNSPACED.search(word) is not None


@lru_cache(maxsize=64)
def terms(text: str) -> tuple[str, ...]:
    """Return the lexical terms of `text` in order: stems of words, character pairs of unspaced scripts."""
    found = _words(text)
    if text.isascii():
        return tuple(map(stem, found))
    result: list[str] = []
    for word in found:
        if word.isascii():
            result.append(stem(word))
        elif is_unspaced(word):
            result.extend(_pairs(word))
        else:
            result.append(word)
    return tuple(result)


def _pairs(word: str) -> list[str]:
    result: list[str] = []
    position = 0
    for run in _UNSPACED.finditer(word):
        if run.start() > position:
            result.append(word[position : run.start()])
        letters = run.group()
        result.extend(
            [letters] if len(letters) == 1 else [letters[i : i + 2] for i in range(len(letters) - 1)]
        )
        position = run.end()
    if position < len(word):
        result.append(word[position:])
    return result


@cache
def stop_words() -> frozenset[str]:
    """Return the words that never make an entry point at a name (`stop_words.txt`, one a line)."""
    text = (files(__package__) / "stop_words.txt").read_text("utf-8")
    return frozenset(line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#"))


def content_words(text: str) -> list[str]:
    """Return the words of `text` that are not stop words, in order."""
    stops = stop_words()
    return [word for word in _words(text) if word not in stops]


def foreign_share(text: str) -> float:
    """Return the share of the letters of `text` that are not Latin, 0 where it has no letters."""
    text = plain(text)
    if text.isascii():
        return 0.0
    letters = [char for char in text if char.isalpha()]
    if not letters:
        return 0.0
    return sum(1 for char in letters if _FOREIGN.match(char)) / len(letters)


_VOWELS = frozenset("aeiou")
# the suffixes of steps 2 to 4, each before any that ends like it
_STEP2 = (
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("abli", "able"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
)
_STEP3 = (
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
)
_STEP4 = (
    "ement",
    "ance",
    "ence",
    "able",
    "ible",
    "ment",
    "ant",
    "ent",
    "ism",
    "ate",
    "iti",
    "ous",
    "ive",
    "ize",
    "al",
    "er",
    "ic",
    "ou",
)


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return the stem of an English word (M. F. Porter, "An algorithm for suffix stripping", 1980)."""
    if len(word) < 3 or not word.isalpha():
        return word
    word = _plural(word)
    word = _past(word)
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _suffix(word, _STEP2)
    word = _suffix(word, _STEP3)
    word = _residue(word)
    if word.endswith("e") and (
        _measure(word[:-1]) > 1 or (_measure(word[:-1]) == 1 and not _ends_short(word[:-1]))
    ):
        word = word[:-1]
    if word.endswith("ll") and _measure(word) > 1:
        word = word[:-1]
    return word


def _consonants(word: str) -> list[bool]:
    result: list[bool] = []
    for position, char in enumerate(word):
        if char in _VOWELS:
            result.append(False)
        else:
            result.append(char != "y" or position == 0 or not result[position - 1])
    return result


def _measure(word: str) -> int:
    shape = _consonants(word)
    return sum(1 for before, after in pairwise(shape) if not before and after)


def _has_vowel(word: str) -> bool:
    return not all(_consonants(word))


def _ends_short(word: str) -> bool:
    shape = _consonants(word)
    return len(word) >= 3 and shape[-3:] == [True, False, True] and word[-1] not in "wxy"


def _plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    if word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


def _past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        if word.endswith(suffix) and _has_vowel(word[: -len(suffix)]):
            word = word[: -len(suffix)]
            if word.endswith(("at", "bl", "iz")):
                return word + "e"
            if len(word) > 1 and word[-1] == word[-2] and _consonants(word)[-1] and word[-1] not in "lsz":
                return word[:-1]
            return word + "e" if _measure(word) == 1 and _ends_short(word) else word
    return word


def _suffix(word: str, rules: tuple[tuple[str, str], ...]) -> str:
    for suffix, replacement in rules:
        if word.endswith(suffix):
            base = word[: -len(suffix)]
            return base + replacement if _measure(base) > 0 else word
    return word


def _residue(word: str) -> str:
    if word.endswith("ion"):
        return word[:-3] if word[-4:-3] in ("s", "t") and _measure(word[:-3]) > 1 else word
    for suffix in _STEP4:
        if word.endswith(suffix):
            return word[: -len(suffix)] if _measure(word[: -len(suffix)]) > 1 else word
    return word
