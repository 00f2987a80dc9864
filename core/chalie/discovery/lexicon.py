"""The lexical half of a vector: random signs per word stem, weighted by how rare the word is."""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from .words import terms

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Lexicon", "place_of", "term_key"]

_CACHED_TERMS = 8_192
#: the rarest terms stand in two lines; a word of the language stands in ten times as many.
_RARE = 2.3


@lru_cache(maxsize=_CACHED_TERMS)
def term_key(term: str) -> int:
    """Return the 32-bit key under which a term is stored."""
    return zlib.crc32(term.encode("utf-8", "replace"))


def place_of(term: str, keys: np.ndarray) -> int | None:
    """Return where a term stands among sorted 32-bit keys, None where it does not."""
    # of the array's own type: for any other the whole array would be converted first
    key = keys.dtype.type(term_key(term))
    place = int(keys.searchsorted(key))
    return place if place < len(keys) and keys[place] == key else None


def _signs() -> np.ndarray:
    """Return the eight signs that each byte stands for, the highest bit first, float32 (256, 8)."""
    import numpy as np

    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    return 2 * bits.astype(np.float32) - 1


class Lexicon:
    """Weights and sign vectors of terms.

    Args:
        columns: width of the lexical half; a multiple of 8, at most 512.
        seed: of the signs. Two vectors are comparable only where columns and seed are equal.
        keys: sorted 32-bit keys of the known terms.
        weights: inverse document frequency of each known term, in general text.
        unknown: weight of every other term.
    """

    def __init__(
        self, columns: int, seed: int, keys: np.ndarray, weights: np.ndarray, unknown: float
    ) -> None:
        if columns % 8 or not 0 <= columns <= 512:
            raise ValueError(f"a lexical half has 0 to 512 columns, a multiple of 8, not {columns}")
        self.columns = columns
        self._key = seed.to_bytes(8, "little", signed=False)
        self._keys, self._weights, self._unknown = keys, weights, unknown
        self._signs = _signs()
        self._row = lru_cache(maxsize=_CACHED_TERMS)(self._make_row)
        #: the term's weight: its inverse document frequency in general text.
        self.weight = lru_cache(maxsize=_CACHED_TERMS)(self._weigh)
        #: whether the term is a word of the general text, not merely a name or a misprint in it.
        self.knows = lru_cache(maxsize=_CACHED_TERMS)(self._known)
        #: whether the term stands in the general text at all, or is no word but a number.
        self.listed = lru_cache(maxsize=_CACHED_TERMS)(self._listed)

    @classmethod
    def made_of(cls, arrays: Mapping[str, np.ndarray], columns: int, seed: int) -> Lexicon:
        """Build it from the arrays `keys` and `weights` of a model folder's lexicon; both may be missing."""
        import numpy as np

        keys = arrays.get("keys", np.zeros(0, np.uint32))
        weights = arrays.get("weights", np.zeros(0, np.float32))
        if keys.ndim != 1 or keys.shape != weights.shape:
            raise ValueError("the lexicon's keys and weights differ in number")
        unknown = float(weights.max()) if len(weights) else 1.0
        return cls(columns, seed, keys, weights, unknown)

    def _listed(self, term: str) -> bool:
        return not term.isalpha() or place_of(term, self._keys) is not None

    def _known(self, term: str) -> bool:
        # a term that stands nowhere weighs most
        return self.weight(term) <= self._unknown - _RARE

    def _weigh(self, term: str) -> float:
        place = place_of(term, self._keys)
        return self._unknown if place is None else float(self._weights[place])

    def _make_row(self, term: str) -> bytes:
        import numpy as np

        digest = hashlib.blake2b(
            term.encode("utf-8", "replace"), digest_size=self.columns // 8, key=self._key
        ).digest()
        row: np.ndarray = self._signs.take(np.frombuffer(digest, np.uint8), axis=0) * self.weight(term)
        return row.tobytes()

    def vector(self, text: str) -> np.ndarray | None:
        """Return the unit vector of a text, float32 (columns,); None for a text without terms."""
        import numpy as np

        if not self.columns:
            return None
        # each term once: a word that is said twice is not meant twice
        rows = b"".join(map(self._row, dict.fromkeys(terms(text))))
        if not rows:
            return None
        total: np.ndarray = np.add.reduce(np.frombuffer(rows, np.float32).reshape(-1, self.columns))
        square = float(total @ total)
        if square <= 0.0:
            return None
        total *= 1.0 / math.sqrt(square)
        return total

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        """Return one unit row per text, float32 (n, columns); a text without terms is a row of zeros."""
        import numpy as np

        result = np.zeros((len(texts), self.columns), np.float32)
        for row, text in zip(result, texts, strict=True):
            found = self.vector(text)
            if found is not None:
                row[:] = found
        return result
