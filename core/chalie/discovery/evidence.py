"""Exact lexical evidence: which of the nearest carry the very words of an entry, and how rare they are.

A vector blurs what it averages. The second look gives each of the nearest what BM25 says of it (Robertson
and Zaragoza 2009, several fields added up before saturation), so that a tool that names the thing asked for
passes one that is merely about it. It re-orders; it admits nobody.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..catalogue.descriptor import Descriptor, Playbook
from .lexicon import term_key
from .words import stem, stop_words, terms

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Evidence", "entry_terms", "item_terms", "postings"]

#: how much a word counts by where it stands; tuned on the tuning halves of the public sets.
_NAME, _SUMMARY, _PARAMETER, _PARAMETER_TEXT, _EXAMPLE = 2.5, 2.0, 1.0, 0.5, 0.8
_SATURATION, _LENGTH = 1.2, 0.3
_WEIGHED = 8_192
#: the terms of a playbook's text and of a schema that are looked at.
_MOST_TERMS = 2_000


def entry_terms(entry: str) -> list[str]:
    """Return the terms of an entry that say something, each once."""
    stops = _stop_terms()
    return [term for term in dict.fromkeys(terms(entry)) if term not in stops]


def _stop_terms() -> frozenset[str]:
    if not _STOPS:
        _STOPS.append(frozenset(stem(word) for word in stop_words()) | stop_words())
    return _STOPS[0]


_STOPS: list[frozenset[str]] = []


def item_terms(item: Descriptor | Playbook) -> Counter[str]:
    """Return the weighted count of every term an ability or a playbook carries."""
    found: Counter[str] = Counter()
    _count(found, terms(item.spoken), _NAME)
    if isinstance(item, Playbook):
        _count(found, terms(item.description), _SUMMARY)
        _count(found, terms(item.body)[:_MOST_TERMS], _PARAMETER_TEXT / 2)
        return found
    _count(found, terms(item.summary), _SUMMARY)
    _count(found, terms(item.search_tooltip), _PARAMETER_TEXT)
    for name, text in _parameters(item.parameters):
        _count(found, terms(name), _PARAMETER)
        _count(found, terms(text)[:_MOST_TERMS], _PARAMETER_TEXT)
    _count(found, (term for action in item.actions for term in terms(action)), _PARAMETER)
    for example in item.examples:
        _count(found, dict.fromkeys(terms(example)), _EXAMPLE)
    return found


def _count(found: Counter[str], some: Iterable[str], weight: float) -> None:
    for term in some:
        found[term] += weight  # type: ignore[assignment]


def _parameters(schema: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    properties = schema.get("properties")
    for name, inner in properties.items() if isinstance(properties, Mapping) else ():
        text = inner.get("description") if isinstance(inner, Mapping) else None
        yield str(name), text if isinstance(text, str) else ""


def postings(items: Iterable[Mapping[str, float]]) -> dict[str, np.ndarray]:
    """Return all `terms` with their `idf`, and between two `offsets` each row's `carried` ones and `scores`.

    Args:
        items: the weighted terms of each row, as `item_terms` returns them.
    """
    import numpy as np

    keys, counts, sizes = array("I"), array("f"), array("q")
    for item in items:
        # a row without terms carries one that says nothing, so that every row has a sum
        some = item or {"": 0.0}
        sizes.append(len(some))
        keys.extend(map(term_key, some))
        counts.extend(some.values())
    said = np.array(counts, np.float32)
    rows = np.repeat(np.arange(len(sizes)), sizes)
    lengths = np.bincount(rows, said, len(sizes))
    mean = (float(lengths.mean()) if len(sizes) else 1.0) or 1.0
    damping = (_SATURATION * (1 - _LENGTH + _LENGTH * lengths / mean)).astype(np.float32)
    terms_, carried, holders = np.unique(np.array(keys, np.uint32), return_inverse=True, return_counts=True)
    return {
        "offsets": np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint32),
        "carried": carried.astype(np.uint32),
        "scores": (said * (_SATURATION + 1) / (said + damping[rows])).astype(np.float16),
        "terms": terms_,
        "idf": np.log1p((len(sizes) - holders + 0.5) / (holders + 0.5)).astype(np.float32),
    }


class Evidence:
    """What each row carries, in use.

    The terms stand by row, not by term: the second look asks of some fifty rows, whatever else there is.

    Args:
        arrays: as `postings` made them, mapped from a file.
        total: the rows there are.

    Raises:
        ValueError: the arrays do not fit each other.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], total: int) -> None:
        self._carried, self._scores = arrays["carried"], arrays["scores"]
        # as wide as places are, which numpy would make of them at every look
        self._offsets = arrays["offsets"].astype("int64")
        self._sizes = self._offsets[1:] - self._offsets[:-1]
        self._terms, self._idf = arrays["terms"], arrays["idf"]
        fits = len(self._offsets) == total + 1 and len(self._terms) == len(self._idf)
        if not fits or not len(self._carried) == len(self._scores) == self._offsets[-1]:
            raise ValueError("the evidence does not fit the rows")
        if total and (int(self._sizes.min()) < 1 or int(self._carried.max()) >= len(self._terms)):
            raise ValueError("the evidence speaks of terms that are not there")
        # a word that nobody carries weighs what one weighs that a single item carries
        self._unknown = math.log1p((total - 0.5) / 1.5) if total else 0.0
        self._found = lru_cache(maxsize=_WEIGHED)(self._find)

    def of(self, wanted: Sequence[str], rows: np.ndarray) -> np.ndarray:
        """Return what speaks for each of `rows`: BM25 over the root of the entry's weight.

        The root keeps a short entry from being outweighed by its one word and a long one from
        counting double.
        """
        import numpy as np

        worth, weight = self._asked(wanted)
        if weight <= 0.0 or not len(rows):
            return np.zeros(len(rows), np.float32)
        sizes = self._sizes.take(rows)
        begins = sizes.cumsum() - sizes
        places = (self._offsets.take(rows) - begins).repeat(sizes)
        places += np.arange(len(places))
        each = worth.take(self._carried.take(places))
        each *= self._scores.take(places)
        found: np.ndarray = np.add.reduceat(each, begins)
        found /= math.sqrt(weight)
        return found

    def carries(self, term: str) -> bool:
        """Whether any row carries the term."""
        return self._found(term_key(term))[0] >= 0

    def carrying(self, wanted: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows that carry any term, and each one's share of the entry's weight, best first."""
        import numpy as np

        worth, weight = self._asked(wanted)
        if weight <= 0.0 or not len(self._sizes):
            return np.zeros(0, np.int64), np.zeros(0, np.float32)
        shares = np.add.reduceat(worth.take(self._carried), self._offsets[:-1]) / weight
        rows = np.flatnonzero(shares)
        order = np.argsort(-shares[rows], kind="stable")
        return rows[order], shares[rows][order]

    def _asked(self, wanted: Sequence[str]) -> tuple[np.ndarray, float]:
        """Return what each of the terms is worth, 0 where it is not wanted, and the weight of all wanted."""
        import numpy as np

        worth, whole = np.zeros(len(self._terms), np.float32), 0.0
        for key in set(map(term_key, wanted)):
            place, weight = self._found(key)
            whole += weight
            if place >= 0:
                worth[place] = weight
        return worth, whole

    def _find(self, key: int) -> tuple[int, float]:
        """Return where a term stands and what it weighs; -1 where nobody carries it."""
        terms_ = self._terms
        # of the array's own type: for any other the whole array would be converted first
        place = int(terms_.searchsorted(terms_.dtype.type(key)))
        if place < len(terms_) and terms_[place] == key:
            return place, float(self._idf[place])
        return -1, self._unknown
