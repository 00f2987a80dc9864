"""The three rungs of a search: exact name, words of a name, meaning. The first that yields wins."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from .. import names
from ..calls import Sight
from ..catalogue.descriptor import Descriptor
from ..errors import ConfigError, IndexUnreadable
from . import name_index
from .evidence import entry_terms
from .found import Found, Hit, Item, Miss, Reason, Rung
from .meaning import Meaning
from .name_index import Kind, Misfit, Names
from .prose_index import Prose
from .words import TEXT_LIMIT, foreign_share, plain
from .words import words as all_words

if TYPE_CHECKING:
    import numpy as np

    from ..catalogue.generations import Generation
    from .embedding import Embedder

__all__ = ["Cascade", "Found", "Hit", "Item", "Miss", "Reason", "Rung"]

#: the nearest that get a second look; 50 answer one question more of all that the tuning sets ask.
_LOOKED_AT: Final = 32
#: what exact lexical evidence adds to a cosine; tuned on the tuning halves of the public sets, flat between
#: 0.06 and 0.12.
_EVIDENCE: Final = 0.08
#: what a shared word of a name adds to the distance up to which a phrase means that name; of the tuning
#: halves' small talk a third passes, of phrases made of names nine in ten.
_WORDS_SHARED: Final = 0.1
#: an entry in a script the model cannot read is answered by items that carry this share of its words' weight.
_CARRIED: Final = 0.5
#: words beyond which an entry with spaces is not compared by edit distance: it is a sentence.
_NAME_WORDS: Final = 6
#: edits of spelling that are told apart.
_RESPELT: Final = 8
#: some three kilobytes each.
_REMEMBERED: Final = 2_048
_READ_AT_ONCE: Final = 256


class Cascade:
    """Answers entries from one generation. Safe to use from several threads; indexes open when first needed.

    Args:
        generation: the generation to search; it has to stay open.
        embedder: opens the model when the prose rung is first reached; may raise `ConfigError`.
        nearest: how many the prose rung returns at most.
        ceiling: the distance above which nothing is an answer; None takes the model's own, infinity
            admits all.
        refuse: whether what lies beyond the ceiling is left out; else it is returned, with the ceiling it
            did not keep.
    """

    def __init__(
        self,
        generation: Generation,
        embedder: Callable[[], Embedder],
        *,
        nearest: int = 5,
        ceiling: float | None = None,
        refuse: bool = True,
    ) -> None:
        self._snapshot = generation.snapshot
        self._embedder = embedder
        self._nearest = nearest
        self._ceiling, self._refuse = ceiling, refuse
        self._names = Names(generation)
        self._prose = {kind: Prose(generation, kind) for kind in ("ability", "playbook")}
        self._recent: OrderedDict[tuple[Kind, int], Item] = OrderedDict()
        self._lock = threading.Lock()

    def find(
        self,
        entries: Sequence[str],
        kind: Kind,
        sight: Callable[[Item], Sight],
        *,
        allowed: np.ndarray | None = None,
    ) -> Found:
        """Return what answers the entries: each runs alone, each item appears once, nothing is cut.

        Never raises for what an entry says, nor for a damaged index: that is a miss and `degraded`.

        Args:
            entries: one name or one described action each; any text.
            kind: what is searched.
            sight: how an item looks from where the search was asked; asked only of what would be returned.
            allowed: the catalogue ids, ascending, that can be seen from there as far as stored settings say.
                It saves asking `sight` of the others, which matters where it leaves little; None where
                nearly everything can be seen. Pass the same array again while the settings stay the same.
        """
        hits: dict[tuple[str, str], Hit] = {}
        misses: list[Miss] = []
        degraded: dict[str, str] = {}
        for entry in entries:
            search = _Search(self, entry, kind, sight, degraded, allowed)
            found, miss = search.run()
            for hit in found:
                hits.setdefault(hit.item.key, hit)
            if miss is not None:
                misses.append(miss)
        return Found(tuple(hits.values()), tuple(misses), tuple(degraded), tuple(degraded.values()))

    def items(self, kind: Kind, ids: Iterable[int]) -> Iterator[Item]:
        """Yield the items of these ids, in that order; the last few hundred are remembered."""
        return (item for _, item in self.pairs(kind, list(ids)))

    def pairs(self, kind: Kind, ids: Sequence[int]) -> Iterator[tuple[int, Item]]:
        """Yield (id, item) of these ids, in that order."""
        for start in range(0, len(ids), _READ_AT_ONCE):
            page = ids[start : start + _READ_AT_ONCE]
            for number, item in zip(page, self.found(kind, page), strict=True):
                if item is not None:
                    yield number, item

    def found(
        self,
        kind: Kind,
        ids: Sequence[int],
        read: Callable[[Sequence[int]], Mapping[int, Item]] | None = None,
    ) -> list[Item | None]:
        """Return the item of each id, read at once; None for an id that the catalogue does not have.

        Args:
            kind: what the ids are of.
            ids: ids of the catalogue.
            read: reads those that were not read lately; by default the catalogue does.
        """
        recent = self._recent
        items = [recent.get((kind, number)) for number in ids]
        missing = [number for number, item in zip(ids, items, strict=True) if item is None]
        if missing:
            fresh = self._snapshot.few(kind, missing) if read is None else read(missing)
            with self._lock:
                recent.update(((kind, number), item) for number, item in fresh.items())
                while len(recent) > _REMEMBERED:
                    recent.popitem(last=False)
            items = [item or fresh.get(number) for number, item in zip(ids, items, strict=True)]
        return items


class _Search:
    """One entry on its way down the rungs."""

    def __init__(
        self,
        cascade: Cascade,
        entry: str,
        kind: Kind,
        sight: Callable[[Item], Sight],
        degraded: dict[str, str],
        allowed: np.ndarray | None,
    ) -> None:
        self._cascade, self._entry, self._kind, self._sight = cascade, entry, kind, sight
        self._degraded, self._allowed = degraded, allowed
        self._text = plain(entry)
        self._hidden = False
        self._meaning: Meaning | None = None
        self._read_as: str | None = None
        self._lost: Reason | None = None

    def run(self) -> tuple[list[Hit], Miss | None]:
        """Return the hits, or the miss."""
        if not any(char.isalnum() for char in self._text):
            return [], Miss(self._entry, "no-match")
        for rung, ask in (("exact", self._exact), ("name", self._name), ("prose", self._by_prose)):
            if rung == "prose" and not self._hidden and self._unready():
                # what it names is installed and out of order: something else of that meaning is not meant
                return [], Miss(self._entry, "unavailable")
            try:
                answer = ask()
            except (IndexUnreadable, ConfigError) as error:
                # without a model there is nothing to repair by itself; a damaged index is built again
                self._lost = "unavailable" if isinstance(error, ConfigError) else "index-unreadable"
                self._degraded.setdefault(rung, error.message)
                continue
            if isinstance(answer, Miss):
                return [], answer
            if answer:
                return answer, None
        return [], Miss(self._entry, self._reason())

    def _reason(self) -> Reason:
        if self._hidden:
            return "hidden"
        if self._lost is not None:
            return self._lost
        strange = self._meaning is not None and self._meaning.unread
        return "unsupported-language" if strange else "no-match"

    def _unready(self) -> bool:
        """Whether the entry is the very name of a tool whose package is not ready."""
        if self._kind != "ability":
            return False
        try:
            unready = self._cascade._snapshot.unready_names()
            return bool(unready) and names.normal(self._text) in unready
        except IndexUnreadable:
            return False

    def _exact(self) -> list[Hit] | Miss:
        letters = len(names.normal(self._text))
        if len(self._entry) >= TEXT_LIMIT or not letters or not self._as_short_as_a_name(letters):
            return []
        snapshot = self._cascade._snapshot
        found: Sequence[Item]
        if self._kind == "ability":
            found = [item for item in snapshot.named(self._text) if item.discoverable]
        else:
            found = snapshot.playbooks_named(self._text)
        hits = list(self._seen(found, "exact"))
        # twins that differ in case or joins alone are two names; the one spelt like the entry is meant
        if len(hits) > 1:
            hits.sort(key=lambda hit: self._respelt(hit.item))
            hits = [hit for hit in hits if not self._respelt(hit.item)] or hits
        owned = [hit.item for hit in hits if isinstance(hit.item, Descriptor)]
        if len({item.own_name for item in owned}) < len(owned):
            return Miss(self._entry, "ambiguous", tuple(sorted(map(snapshot.qualified, owned))))
        return hits

    def _as_short_as_a_name(self, letters: int) -> bool:
        try:
            return self._cascade._names.named(letters, self._kind)
        except IndexUnreadable:
            # the next rung says so
            return True

    def _name(self) -> list[Hit]:
        cascade, words, said = self._cascade, name_index.words_of(self._text), all_words(self._text)
        phrase = len(words) < len(said)
        proposed = cascade._names.aligned(words, self._kind, phrase=phrase)
        admitted = [
            (number, item)
            for number, item in cascade.pairs(self._kind, proposed)
            if name_index.aligned(words, item.spoken, phrase=phrase)
        ]
        misfits = {number: Misfit.of(said, item.spoken) for number, item in admitted}
        admitted.sort(key=lambda pair: (misfits[pair[0]], pair[1].name, pair[1].dist))
        partly = {number for number, _ in admitted if misfits[number].unsaid} if phrase else set()
        if partly:
            # where a name was not said whole, chance may have put its words there: what is meant lies near
            away = self._near(sorted(partly))
            admitted = [pair for pair in admitted if pair[0] in away or pair[0] not in partly]
            admitted.sort(key=lambda pair: away.get(pair[0], -1.0))
        hits = list(self._seen([item for _, item in admitted], "name"))
        # many words are a sentence, unless they were joined as those of a name are
        sentence = len(words) > _NAME_WORDS and len(self._text.split()) > 1
        return hits if hits or sentence else self._misspelt()

    def _misspelt(self) -> list[Hit]:
        """Return what has a name of nearly the same letters, of equals first the one spelt like the entry."""
        letters = name_index.comparable(self._text)
        edits = name_index.edits_allowed(letters) if letters else 0
        if not letters or not edits:
            return []
        away = dict(self._cascade._names.similar(letters, edits, self._kind))
        near = list(self._cascade.pairs(self._kind, list(away)))
        near.sort(key=lambda pair: (away[pair[0]], self._respelt(pair[1])))
        return list(self._seen([item for _, item in near], "name"))

    def _respelt(self, item: Item) -> int:
        """Return how many edits, also of case and joins, lie between the entry and the item's name."""
        spelt = self._entry.strip()
        return min(name_index.edit_distance(spelt, name, _RESPELT) for name in {item.name, item.own_name})

    def _near(self, numbers: list[int]) -> dict[int, float]:
        """Return id -> distance of those near enough to the entry; all, where there is no telling."""
        try:
            meaning = self._understood()
        except (IndexUnreadable, ConfigError):
            # the answer is whole without it; only its order is not
            meaning = None
        if meaning is None or meaning.unread or not meaning.vector.any():
            return dict.fromkeys(numbers, 0.0)
        try:
            rows, distances = meaning.prose.distances(meaning.vector, numbers)
        except IndexUnreadable:
            return dict.fromkeys(numbers, 0.0)
        ceilings = meaning.ceilings(meaning.prose.evidence.of(meaning.wanted, rows)) + _WORDS_SHARED
        known = zip(numbers, distances.tolist(), (distances <= ceilings).tolist(), strict=True)
        return {number: distance for number, distance, near in known if near}

    def _understood(self) -> Meaning | None:
        """Return what the entry means, worked out once; None where nothing can be compared with it."""
        if self._meaning is None:
            cascade = self._cascade
            prose = cascade._prose[self._kind]
            if not prose.built:
                # nothing was built for want of a model; where there still is none, this says so
                cascade._embedder()
            if not len(prose):
                return None
            embedder = cascade._embedder()
            prose.expect(embedder)
            self._meaning = Meaning.of(self._text, prose, embedder, cascade._ceiling)
        return self._meaning

    def _by_prose(self) -> list[Hit]:
        meaning = self._understood()
        if meaning is None:
            return []
        prose, text = meaning.prose, meaning.text
        self._read_as = text if text != self._text else None
        if meaning.unread and foreign_share(text) > 0.5:
            return self._carried(prose)
        if not meaning.vector.any():
            return []
        among = None if self._allowed is None else prose.rows(self._allowed)
        hits = self._within(meaning, among)
        if not hits and among is not None and not self._hidden:
            # whether there would be an answer somewhere else
            _, distances, scores = meaning.looked_at(_LOOKED_AT, None)
            self._hidden = bool((distances <= meaning.ceilings(scores)).any())
        return hits

    def _within(self, meaning: Meaning, among: np.ndarray | None) -> list[Hit]:
        asked = _LOOKED_AT
        while True:
            rows, distances, scores = meaning.looked_at(asked, among)
            order = (distances - _EVIDENCE * scores).argsort(kind="stable")
            ceilings = meaning.ceilings(scores)
            near = distances <= ceilings
            if meaning.unread:
                # where half the words mean nothing to the model, one of them has to be there
                near &= scores > 0
            if self._cascade._refuse:
                order = order[near[order]]
            hits = self._best(meaning.prose, rows[order], distances[order], ceilings[order])
            # where what was nearest is hidden here, look further, until enough is seen or everything was
            if len(hits) >= self._cascade._nearest or len(rows) < asked or len(order) < len(rows):
                return hits
            asked *= 4

    def _best(self, prose: Prose, rows: np.ndarray, distances: np.ndarray, ceilings: np.ndarray) -> list[Hit]:
        hits: list[Hit] = []
        most = self._cascade._nearest
        numbers, away, allowed = prose.ids(rows), distances.tolist(), ceilings.tolist()
        for start in range(0, len(numbers), most):
            # reading items is the dearest part of a search: a page at once, and none that nobody needs
            if len(hits) == most:
                break
            page = slice(start, start + most)
            items = self._cascade.found(self._kind, numbers[page], prose.few)
            for item, distance, ceiling in zip(items, away[page], allowed[page], strict=True):
                if item is not None and len(hits) < most:
                    hits.extend(self._seen((item,), "prose", round(distance, 4), round(ceiling, 4)))
        return hits

    def _carried(self, prose: Prose) -> list[Hit]:
        rows, shares = prose.evidence.carrying(entry_terms(self._text))
        hits: list[Hit] = []
        for number, share in zip(prose.ids(rows), shares.tolist(), strict=True):
            if share < _CARRIED or len(hits) == self._cascade._nearest:
                break
            hits.extend(self._seen(self._cascade.items(self._kind, [number]), "prose"))
        return hits

    def _seen(
        self, items: Iterable[Item], rung: Rung, distance: float | None = None, ceiling: float | None = None
    ) -> Iterator[Hit]:
        for item in items:
            sight = self._sight(item)
            if sight.hidden:
                self._hidden = True
                continue
            yield Hit(item, self._entry, rung, distance, sight.not_allowed, ceiling, self._read_as)
