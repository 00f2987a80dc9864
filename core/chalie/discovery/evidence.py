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
_MARKS = 4_096
_COMPARED = 24
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
    """Return each row's `keys` and `scores` between two `offsets`, and all `terms` with their `idf`.

    Args:
        items: the weighted terms of each row, as `item_terms` returns them.
    """
    import numpy as np

    keys, counts, sizes = array("I"), array("f"), array("q")
    for item in items:
        sizes.append(len(item))
        keys.extend(map(term_key, item))
        counts.extend(item.values())
    carried, said = np.array(keys, np.uint32), np.array(counts, np.float32)
    rows = np.repeat(np.arange(len(sizes)), sizes)
    lengths = np.bincount(rows, said, len(sizes))
    mean = (float(lengths.mean()) if len(sizes) else 1.0) or 1.0
    damping = (_SATURATION * (1 - _LENGTH + _LENGTH * lengths / mean)).astype(np.float32)
    terms_, holders = np.unique(carried, return_counts=True)
    return {
        "offsets": np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint32),
        "keys": carried,
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
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], total: int) -> None:
        self._keys, self._scores = arrays["keys"], arrays["scores"]
        # as wide as places are, which numpy would make of them at every look
        self._offsets = arrays["offsets"].astype("int64")
        self._terms, self._idf = arrays["terms"], arrays["idf"]
        if len(self._offsets) != total + 1 or not len(self._keys) == len(self._scores) == self._offsets[-1]:
            raise ValueError("the evidence does not fit the rows")
        # a word that nobody carries weighs what one weighs that a single item carries
        self._unknown = math.log1p((total - 0.5) / 1.5) if total else 0.0
        self._weight = lru_cache(maxsize=_WEIGHED)(self._weigh)

    def of(self, wanted: Sequence[str], rows: np.ndarray) -> np.ndarray:
        """Return what speaks for each of `rows`: BM25 over the root of the entry's weight.

        The root keeps a short entry from being outweighed by its one word and a long one from
        counting double.
        """
        import numpy as np

        asked, weights = self._weights(wanted)
        starts, ends = self._offsets.take(rows), self._offsets.take(rows + 1)
        sizes = ends - starts
        ends = sizes.cumsum()
        if not len(asked) or not len(ends) or not ends[-1]:
            return np.zeros(len(rows), np.float32)
        flat = (starts - (ends - sizes)).repeat(sizes)
        flat += np.arange(len(flat))
        carried = self._keys.take(flat)
        if len(asked) <= _COMPARED:
            # for a few it is quicker to compare all with each
            places, same = divmod((carried == asked[:, None]).ravel().nonzero()[0], len(carried))
        else:
            same, places = _shared(asked, carried)
        owners = ends.searchsorted(same, "right")
        found = np.bincount(owners, self._scores[flat[same]] * weights[places], len(rows))
        result: np.ndarray = (found / math.sqrt(float(weights.sum()))).astype(np.float32)
        return result

    def carries(self, term: str) -> bool:
        """Whether any row carries the term."""
        return self._place(term_key(term)) is not None

    def carrying(self, wanted: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows that carry any term, and each one's share of the entry's weight, best first."""
        import numpy as np

        asked, weights = self._weights(wanted)
        if not len(asked):
            return np.zeros(0, np.int64), np.zeros(0, np.float32)
        same, places = _shared(asked, self._keys)
        owners = self._offsets.searchsorted(same, "right") - 1
        shares = np.bincount(owners, weights[places], len(self._offsets) - 1)
        rows = np.flatnonzero(shares)
        order = np.argsort(-shares[rows], kind="stable")
        return rows[order], (shares[rows][order] / float(weights.sum())).astype(np.float32)

    def _weights(self, wanted: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the sorted keys of the terms asked for, and the weight of each."""
        import numpy as np

        keys = sorted(set(map(term_key, wanted)))
        return np.array(keys, np.uint32), np.array(list(map(self._weight, keys)), np.float32)

    def _weigh(self, key: int) -> float:
        place = self._place(key)
        return self._unknown if place is None else float(self._idf[place])

    def _place(self, key: int) -> int | None:
        terms_ = self._terms
        # of the array's own type: for any other the whole array would be converted first
        place = int(terms_.searchsorted(terms_.dtype.type(key)))
        return place if place < len(terms_) and terms_[place] == key else None


def _shared(asked: np.ndarray, carried: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where `carried` holds one of the sorted `asked`, and which one it is there."""
    import numpy as np

    # a few hundred distinct low bits tell nearly all strangers apart, at a fraction of a search
    marks = np.zeros(_MARKS, bool)
    marks[asked & (_MARKS - 1)] = True
    maybe = marks[carried & (_MARKS - 1)].nonzero()[0]
    near = carried[maybe]
    places = asked.searchsorted(near)
    places[places == len(asked)] = 0
    true = (asked[places] == near).nonzero()[0]
    return maybe[true], places[true]
