"""Exact lexical evidence: which of the nearest carry the very words of an entry, and how rare they are.

A vector blurs what it averages. The second look gives each of the nearest what BM25 says of it (Robertson
and Zaragoza 2009, several fields added up before saturation), so that a tool that names the thing asked for
passes one that is merely about it. It re-orders; it admits nobody.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..catalogue.descriptor import Descriptor, Playbook
from .lexicon import place_of, term_key
from .words import stem, stop_words, terms

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Evidence", "entry_terms", "item_terms", "postings"]

#: how much a word counts by where it stands; tuned on the tuning halves of the public sets.
_NAME, _SUMMARY, _PARAMETER, _PARAMETER_TEXT, _EXAMPLE = 2.0, 1.0, 1.0, 0.5, 1.0
_SATURATION, _LENGTH = 1.2, 0.6
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
    _count(found, terms(item.name), _NAME)
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


def postings(items: Sequence[Counter[str]]) -> dict[str, np.ndarray]:
    """Return the arrays of an inverted index: `keys`, `offsets`, `rows`, `scores` and one `idf` per key.

    Args:
        items: the terms of each row.
    """
    import numpy as np

    total = len(items)
    lengths = [sum(item.values()) for item in items]
    mean = (sum(lengths) / total if total else 1.0) or 1.0
    lists: dict[int, list[tuple[int, float]]] = {}
    for row, item in enumerate(items):
        damping = _SATURATION * (1 - _LENGTH + _LENGTH * lengths[row] / mean)
        for term, count in item.items():
            lists.setdefault(term_key(term), []).append((row, count * (_SATURATION + 1) / (count + damping)))
    keys = sorted(lists)
    sizes = np.array([len(lists[key]) for key in keys], np.int64)
    idf = np.log1p((total - sizes + 0.5) / (sizes + 0.5)).astype(np.float32)
    flat = [pair for key in keys for pair in lists[key]]
    return {
        "keys": np.array(keys, np.uint32),
        "offsets": np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint32),
        "idf": idf,
        "rows": np.array([row for row, _ in flat], np.uint32),
        "scores": np.array([score for _, score in flat], np.float16),
    }


class Evidence:
    """An inverted index in use.

    Args:
        arrays: as `postings` made them, mapped from a file.
        total: the rows there are.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], total: int) -> None:
        self._keys, self._offsets, self._idf = arrays["keys"], arrays["offsets"], arrays["idf"]
        self._rows, self._scores = arrays["rows"], arrays["scores"]
        self._total = total
        # a word that nobody carries weighs what one weighs that a single item carries
        self._unknown = math.log1p((total - 0.5) / 1.5) if total else 0.0

    def of(self, wanted: Sequence[str], rows: np.ndarray) -> np.ndarray:
        """Return what speaks for each of `rows`: BM25 over the root of the entry's weight.

        The root keeps a short entry from being outweighed by its one word and a long one from
        counting double.
        """
        import numpy as np

        result = np.zeros(len(rows), np.float32)
        rows = rows.astype(np.uint32)
        mass = 0.0
        for term in wanted:
            place = self._place(term)
            if place is None:
                mass += self._unknown
                continue
            idf = float(self._idf[place])
            mass += idf
            start, end = int(self._offsets[place]), int(self._offsets[place + 1])
            here = self._rows[start:end]
            at = np.minimum(here.searchsorted(rows), end - start - 1)
            result += np.where(here[at] == rows, self._scores[start:end][at], 0.0) * np.float32(idf)
        return result / np.float32(math.sqrt(mass)) if mass > 0 else result

    def carrying(self, wanted: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows that carry any term, and each one's share of the entry's weight, best first."""
        import numpy as np

        shares = np.zeros(self._total, np.float32)
        mass = 0.0
        for term in wanted:
            place = self._place(term)
            mass += self._unknown if place is None else float(self._idf[place])
            if place is not None:
                shares[self._rows[int(self._offsets[place]) : int(self._offsets[place + 1])]] += self._idf[
                    place
                ]
        rows = np.flatnonzero(shares)
        order = np.argsort(-shares[rows], kind="stable")
        return rows[order], shares[rows][order] / np.float32(mass or 1.0)

    def _place(self, term: str) -> int | None:
        return place_of(term, self._keys)
