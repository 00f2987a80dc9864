"""Put right what is misspelt in a sentence: a model that knows words knows nothing of `reserch`.

Only what nobody else writes is touched, and only where one edit (Damerau 1964) makes a common word of it.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from itertools import filterfalse
from typing import Final

from .lexicon import Lexicon
from .words import stem, terms

__all__ = ["Spelling"]

#: fewer letters are one edit away from too many words.
_LEAST_LETTERS: Final = 5
_MOST_LETTERS: Final = 24
#: where more of the words are strange, they are no misprints but names, a jargon, another language.
_STRANGE: Final = 1 / 3
_CORRECTED: Final = 8
_CACHED: Final = 2_048
#: a word with a capital is a name, or the first of a sentence, which is worth less than names are; what has
#: another sign before or after it is part of an address, a file's name, a flag.
_WORD: Final = re.compile(r"(?<![\w'\u2019./\\@:#$=-])[a-z]+(?![\w'\u2019/\\@=-]|[.:]\w)")


class Spelling:
    """Corrects words of a language by one vocabulary of it.

    Args:
        vocabulary: its words, in lower case; other entries do no harm.
        lexicon: which terms are known, and how common.
    """

    def __init__(self, vocabulary: Collection[str], lexicon: Lexicon) -> None:
        self._vocabulary, self._lexicon = vocabulary, lexicon
        self._likely = lru_cache(maxsize=_CACHED)(self._near)
        self._rarer = lru_cache(maxsize=_CACHED)(self._apart)

    def corrected(self, text: str, carried: Callable[[str], bool]) -> str:
        """Return `text` with its misspelt words put right; most texts come back as they are.

        Args:
            text: an entry.
            carried: whether some item holds a term: what an author writes is no misprint, and of two words
                that may be meant it is the likelier.
        """
        listed, found = self._lexicon.listed, terms(text)
        strange = [term for term in found if not listed(term)]
        if not strange or len(strange) > _STRANGE * len(found):
            return text
        left = _CORRECTED

        def put_right(match: re.Match[str]) -> str:
            nonlocal left
            word = match.group()
            if left and _LEAST_LETTERS <= len(word) <= _MOST_LETTERS and self._unknown(word, carried):
                left -= 1
                return self._meant(word, carried)
            return word

        return _WORD.sub(put_right, text)

    def _unknown(self, word: str, carried: Callable[[str], bool]) -> bool:
        term = stem(word)
        return word not in self._vocabulary and not self._lexicon.listed(term) and not carried(term)

    def _meant(self, word: str, carried: Callable[[str], bool]) -> str:
        found: list[str] = []
        for likely in (self._likely, self._rarer):
            found += likely(word)
            about = next((near for near in found if carried(stem(near))), None)
            if about is not None:
                return about
        return found[0] if found else word

    def _near(self, word: str) -> tuple[str, ...]:
        """Return the common words of the vocabulary that are one edit away, the likeliest first."""
        # letters out of order, and one where two are or two where one is, say which letters were meant;
        # a letter left out is likelier than another one written
        inside = self._vocabulary.__contains__
        return self._known(*(set(filter(inside, edit(word))) for edit in _EDITS))

    def _apart(self, word: str) -> tuple[str, ...]:
        """Return what is no word of the vocabulary, which lacks many, but has a known stem, as above."""
        inside = self._vocabulary.__contains__
        return self._known(*(set(filterfalse(inside, edit(word))) for edit in (_slips, _fuller)))

    def _known(self, *groups: Collection[str]) -> tuple[str, ...]:
        knows, weight = self._lexicon.knows, self._lexicon.weight
        found: dict[str, None] = {}
        for some in groups:
            likely = [near for near in some if knows(stem(near))]
            # the commonest, and of equals always the same
            found.update(dict.fromkeys(sorted(likely, key=lambda near: (weight(stem(near)), near))))
        return tuple(found)


def _slips(word: str) -> Iterator[str]:
    """Yield every text with two neighbours swapped, a letter doubled, or a double one written once."""
    for place, letter in enumerate(word):
        before, after = word[:place], word[place + 1 :]
        yield before + letter + letter + after
        if after:
            yield before + (after if after[0] == letter else after[0] + letter + after[1:])


def _fuller(word: str) -> Iterator[str]:
    """Yield every text with a letter more."""
    for place in range(len(word) + 1):
        yield from (word[:place] + letter + word[place:] for letter in string.ascii_lowercase)


def _edited(word: str) -> Iterator[str]:
    """Yield every text with a letter less, or another letter."""
    for place in range(len(word)):
        before, after = word[:place], word[place + 1 :]
        yield before + after
        yield from (before + letter + after for letter in string.ascii_lowercase)


_EDITS: Final = (_slips, _fuller, _edited)
