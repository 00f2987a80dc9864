"""The name rung: tantivy proposes names, the alignment of words and the edit distance admit them."""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from .. import names
from ..errors import IndexUnreadable
from .words import content_words, is_unspaced, plain, stem

if TYPE_CHECKING:
    import tantivy

    from ..catalogue.descriptor import Descriptor, Playbook
    from ..catalogue.generations import Generation
    from ..catalogue.snapshot import Snapshot
    from ..catalogue.vectors import VectorStore

__all__ = ["FOLDER", "Kind", "Misfit", "NameIndex", "Names", "aligned", "edit_distance", "edits_allowed"]

Kind = Literal["ability", "playbook"]
FOLDER: Final = "names"

_FORMAT: Final = "3"
#: the most segments and letters a name of each kind has, and its longest qualified form: an entry of more of
#: them names nothing.
LONGEST: Final = "longest.json"
#: written before every term, so that one index serves both kinds.
_MARKS: Final = {"ability": "a", "playbook": "p"}
#: an entry with more content words than this is no name; names have fewer.
_MOST_WORDS: Final = 12
#: letters beyond which nothing is compared by edit distance: qualified names end well before.
_MOST_LETTERS: Final = 160
_PREFIX: Final = 3
_PROPOSED: Final = 200
_FEW: Final = 64
_WRITER_BYTES: Final = 16_000_000


class NameIndex:
    """Builds the index of the names of abilities and playbooks."""

    name = "names"

    def fingerprint(self) -> str:
        """Return the format of the index."""
        return f"names-{_FORMAT}"

    def build(
        self, snapshot: Snapshot, folder: Path, vectors: VectorStore, previous: Generation | None = None
    ) -> None:
        """Write `names/` for every discoverable ability and every playbook of `snapshot`."""
        import tantivy

        place = folder / FOLDER
        place.mkdir()
        index = tantivy.Index(_schema(), path=str(place))
        writer = index.writer(_WRITER_BYTES, 1)
        longest = dict.fromkeys(_MARKS, (0, 0, 0))
        for kind, number, item in _named(snapshot):
            segments = names.segments(item.spoken)
            # a script that sets no words apart may hold any number of them in one segment
            count = _MOST_WORDS if any(map(is_unspaced, segments)) else len(segments)
            letters = _letters(item.own_name)
            sizes = (count, len(letters), max(len(names.normal(name)) for name in _forms(item)))
            longest[kind] = _three(map(max, longest[kind], sizes))
            document = tantivy.Document()
            document.add_unsigned("id", number)
            document.add_text("parts", " ".join(sorted(_parts(segments, kind))))
            document.add_text("letters", letters)
            document.add_text("grams", " ".join(_grams(letters, kind)))
            writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()
        (place / LONGEST).write_text(json.dumps(longest), "utf-8")
        # a reader never writes: what only a writer needs goes
        for leftover in place.glob(".*.lock"):
            leftover.unlink()


def _schema() -> tantivy.Schema:
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("id", fast=True)
    builder.add_text_field("parts", tokenizer_name="whitespace", index_option="basic")
    builder.add_text_field("grams", tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field("letters", stored=True, tokenizer_name="raw", index_option="basic")
    return builder.build()


def _named(snapshot: Snapshot) -> Iterator[tuple[Kind, int, Descriptor | Playbook]]:
    for number, ability in snapshot.abilities():
        if ability.discoverable:
            yield "ability", number, ability
    for number, book in snapshot.playbooks():
        yield "playbook", number, book


def _forms(item: Descriptor | Playbook) -> tuple[str, ...]:
    """Return everything an entry may spell an item by, the longest form of each."""
    return item.name, item.own_name, names.qualified(item.dist, item.name, True)


def _parts(segments: Iterable[str], kind: Kind) -> set[str]:
    """Return what a word can be looked up by: the whole segment, its stem, its prefixes, pairs of letters."""
    mark = _MARKS[kind]
    parts: set[str] = set()
    for segment in segments:
        parts.add(f"{mark}={segment}")
        parts.add(f"{mark}~{stem(segment)}")
        parts.update(f"{mark}<{segment[:size]}" for size in range(_PREFIX, len(segment)))
        if is_unspaced(segment):
            parts.update(_pairs(segment, kind))
    return parts


def _lookups(word: str, kind: Kind, phrase: bool) -> list[str]:
    mark = _MARKS[kind]
    found = [f"{mark}={word}", f"{mark}~{stem(word)}"]
    if len(word) >= _PREFIX and not phrase:
        found.append(f"{mark}<{word}")
    return found


def _pairs(word: str, kind: Kind) -> list[str]:
    return [f"{_MARKS[kind]}+{word[place : place + 2]}" for place in range(len(word) - 1)]


def _letters(name: str) -> str:
    return "".join(names.normal(name).split())


def _grams(letters: str, kind: Kind) -> list[str]:
    framed = f"^{letters}$"
    places = range(max(1, len(framed) - 2))
    return list(dict.fromkeys(_MARKS[kind] + framed[place : place + 3] for place in places))


class Names:
    """The name index of one generation. Safe to use from several threads."""

    def __init__(self, generation: Generation) -> None:
        self._generation = generation
        self._lock = threading.Lock()
        self._opened: tuple[tantivy.Index, tantivy.Schema] | None = None
        self._longest: dict[str, tuple[int, int, int]] = {}

    def named(self, letters: int, kind: Kind) -> bool:
        """Whether any name, bare or qualified, has so many letters or more.

        Raises:
            IndexUnreadable: the index is damaged.
        """
        self._index()
        return letters <= self._longest[kind][2]

    def aligned(self, words: Sequence[str], kind: Kind, *, phrase: bool = False) -> list[int]:
        """Return the ids of every name that may hold all the words; the caller still compares.

        Args:
            words: the content words of an entry.
            kind: whose names.
            phrase: as for the function `aligned`.

        Raises:
            IndexUnreadable: the index is damaged.
        """
        import tantivy

        if not 0 < len(words) <= _MOST_WORDS:
            return []
        index, schema = self._index()
        if len({stem(word) for word in words}) > self._longest[kind][0]:
            return []
        searcher = index.searcher()
        must = []
        for word in dict.fromkeys(words):
            known = [part for part in _lookups(word, kind, phrase) if searcher.doc_freq("parts", part)]
            options = [tantivy.Query.term_query(schema, "parts", part, "basic") for part in known]
            if is_unspaced(word) and len(word) > 1:
                options.append(_all(schema, _pairs(word, kind)))
            if not options:
                # most sentences end here: no name has this word
                return []
            must.append((tantivy.Occur.Must, tantivy.Query.disjunction_max_query(options)))
        # never cut: a name that holds the words is found however many others do
        query = tantivy.Query.const_score_query(tantivy.Query.boolean_query(must), 1.0)
        return sorted(number for number, _ in self._search(searcher, query, None))

    def similar(self, letters: str, edits: int, kind: Kind) -> list[tuple[int, int]]:
        """Return (id, edits) of the names within `edits` of `letters`, the nearest first.

        Raises:
            IndexUnreadable: the index is damaged.
        """
        import tantivy

        index, schema = self._index()
        if len(letters) - edits > self._longest[kind][1]:
            return []
        grams = _grams(letters, kind)
        # one edit changes at most three triples, a swap of neighbours four
        least = max(1, len(grams) - 4 * edits)
        should = [
            (tantivy.Occur.Should, tantivy.Query.term_query(schema, "grams", gram, "freq")) for gram in grams
        ]
        query = tantivy.Query.boolean_query(should, least)
        found: list[tuple[int, int]] = []
        for number, name in self._search(index.searcher(), query, _PROPOSED, stored=True):
            distance = edit_distance(letters, name, edits)
            if distance <= edits:
                found.append((number, distance))
        return sorted(found, key=lambda pair: pair[1])

    def _index(self) -> tuple[tantivy.Index, tantivy.Schema]:
        if self._opened is None:
            with self._lock:
                if self._opened is None:
                    self._opened = self._open()
        return self._opened

    def _open(self) -> tuple[tantivy.Index, tantivy.Schema]:
        place = self._generation.verified(FOLDER)
        try:
            known = json.loads((place / LONGEST).read_bytes())
            self._longest = {kind: _three(known[kind]) for kind in _MARKS}
            try:
                index = _opened(place)
            except ValueError as error:
                if "Lockfile" not in str(error):
                    raise
                # a reader, too, takes a lock in the folder, which may be read-only: read a copy then
                index = _opened(self._copy(place))
        except Exception as error:  # the library raises ValueError, OSError and its own
            raise _unreadable(place, error) from error
        return index, _schema()

    def _copy(self, place: Path) -> Path:
        folder = tempfile.mkdtemp(prefix="chalie-names-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        for path in place.iterdir():
            shutil.copyfile(path, Path(folder, path.name))
        return Path(folder)

    def _search(
        self, searcher: tantivy.Searcher, query: tantivy.Query, limit: int | None, stored: bool = False
    ) -> list[tuple[int, str]]:
        try:
            total = searcher.num_docs
            size = min(limit or _FEW, total)
            if not size:
                return []
            places = [place for _, place in searcher.search(query, size, count=False).hits]
            if limit is None and len(places) == size < total:
                # room for every name is made beforehand, which costs more than the search; few need it
                places = [place for _, place in searcher.search(query, total, count=False).hits]
            numbers = [int(value or 0) for value in searcher.fast_field_values("id", places)]
            texts = [searcher.doc(place)["letters"][0] if stored else "" for place in places]
        except Exception as error:  # as above
            raise _unreadable(self._generation.path / FOLDER, error) from error
        return list(zip(numbers, texts, strict=True))


def _three(sizes: Iterable[Any]) -> tuple[int, int, int]:
    segments, letters, qualified = map(int, sizes)
    return segments, letters, qualified


def _opened(place: Path) -> tantivy.Index:
    import tantivy

    index = tantivy.Index.open(str(place))
    index.config_reader("manual", 0)
    return index


def _all(schema: tantivy.Schema, terms: Sequence[str]) -> tantivy.Query:
    import tantivy

    queries = [
        (tantivy.Occur.Must, tantivy.Query.term_query(schema, "parts", term, "basic")) for term in terms
    ]
    return tantivy.Query.boolean_query(queries)


def aligned(words: Sequence[str], name: str, *, phrase: bool = False) -> bool:
    """Whether every word equals a segment of the name, or is a prefix (3+ letters) or inflection of one.

    Args:
        words: the content words of an entry.
        name: an ability's or a playbook's.
        phrase: the entry has other words as well. Then no prefix counts: who shortens a name writes nothing
            else, while `have fun` does not mean `functions`.
    """
    segments = names.segments(name)
    if not words or not all(any(_fits(word, segment) for segment in segments) for word in words):
        return False
    return not phrase or all(any(_same(word, segment) for segment in segments) for word in words)


class Misfit(NamedTuple):
    """How far all the words of an entry are from a name; the lower, the likelier it is meant.

    Attributes:
        repeated: how often words of the name were said more often than it has them.
        unsaid: segments of the name that were left out.
        strange: words that are none of its segments.
        changed: words that stand there in another form.
    """

    repeated: int
    unsaid: int
    strange: int
    changed: int

    @classmethod
    def of(cls, words: Sequence[str], name: str) -> Misfit:
        """Compare the words of an entry, each as often as it was said, with a name."""
        segments = names.segments(name)
        said = Counter(words)
        fitting = {word: sum(_fits(word, segment) for segment in segments) for word in said}
        return cls(
            repeated=sum(max(0, said[word] - fits) for word, fits in fitting.items() if fits),
            unsaid=sum(not any(_fits(word, segment) for word in said) for segment in segments),
            strange=sum(said[word] for word, fits in fitting.items() if not fits),
            changed=len(said.keys() - segments),
        )


def _fits(word: str, segment: str) -> bool:
    return _same(word, segment) or (len(word) >= _PREFIX and segment.startswith(word))


def _same(word: str, segment: str) -> bool:
    if word == segment or stem(word) == stem(segment):
        return True
    # a script that sets no words apart: a word of it may stand anywhere in the run
    return len(word) > 1 and is_unspaced(word) and word in segment


def words_of(entry: str) -> list[str]:
    """Return the content words of an entry, cut as names are: an entry `HTTPServer` has two."""
    return content_words(entry)


def edits_allowed(letters: str) -> int:
    """Return how many edits an entry of so many letters may be away from the name it means."""
    return 0 if len(letters) < 5 else 1 if len(letters) < 10 else 2


def edit_distance(left: str, right: str, most: int) -> int:
    """Return the edits (insert, delete, replace, swap neighbours) between two texts, or `most` + 1.

    The optimal string alignment distance, computed within a band of `most` around the diagonal.
    """
    if left == right:
        return 0
    if abs(len(left) - len(right)) > most:
        return most + 1
    beyond = most + 1
    before: list[int] = []
    row = [number if number <= most else beyond for number in range(len(right) + 1)]
    for place, char in enumerate(left, 1):
        start, end = max(1, place - most), min(len(right), place + most)
        current = [beyond] * (len(right) + 1)
        if place <= most:
            current[0] = place
        for other in range(start, end + 1):
            best = min(row[other] + 1, current[other - 1] + 1, row[other - 1] + (char != right[other - 1]))
            if place > 1 and other > 1 and char == right[other - 2] and left[place - 2] == right[other - 1]:
                best = min(best, before[other - 2] + 1)
            current[other] = min(best, beyond)
        if min(current) > most:
            return beyond
        before, row = row, current
    return row[len(right)]


def _unreadable(place: Path, error: Any) -> IndexUnreadable:
    return IndexUnreadable(
        f"the name index {place} cannot be read ({error})", hint="run `chalie index` to rebuild it"
    )


def comparable(entry: str) -> str | None:
    """Return the letters of an entry that may be a misspelt name, None where it is no such thing."""
    if len(entry) > 4 * _MOST_LETTERS:
        return None
    letters = _letters(plain(entry))
    return letters if 5 <= len(letters) <= _MOST_LETTERS else None
