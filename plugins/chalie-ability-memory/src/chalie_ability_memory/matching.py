"""Which memories a query means: by its words, and by meaning."""

from __future__ import annotations

import contextlib
import hashlib
import math
import re
import unicodedata
from array import array
from collections.abc import Callable, Sequence

from attrs import frozen

from .store import Memory, Store, Unusable, texts

__all__ = ["Match", "Meaning", "at_place", "by_words", "ranked"]

Embed = Callable[[Sequence[str]], list[list[float]]]

_WORD = re.compile(r"\w+")
_EMPTY_TEXT = (
    "a about all an and any are as at be by can could did do does for from had has have how i in is it its "
    "know me my of on or our please remember should tell that the their them there they this to was we were "
    "what when where which who why will with would you your s t d m ll re ve"
)
#: words that say nothing about which memory is meant.
_EMPTY = frozenset(_EMPTY_TEXT.split())
#: texts that have nothing to do with each other. What a model makes of the first tells it from others;
#: how near it puts them all to each other is its noise, above which nearness begins to mean something.
_PROBES = (
    "the train to the coast leaves at noon",
    "she plays the violin in an orchestra",
    "tomatoes need sun and water",
    "the invoice was paid twice",
    "a blue wool coat with buttons",
    "the router has to be restarted",
    "his knee hurts after running",
    "the council elects a new mayor",
)
#: standard deviations over the mean of the probes' cosines. At 1.5 about one unrelated memory in fifteen
#: is offered too; the model that reads the answer passes over it, but cannot see what was left out.
_ABOVE_NOISE = 1.5
#: the floor for a model that has no words for the probes.
_FLOOR_OF_UNKNOWN = 0.3


@frozen
class Match:
    """A memory, the share of the query's words it holds, and its cosine (None where there is no vector)."""

    memory: Memory
    words: float
    meaning: float | None

    @property
    def score(self) -> float:
        """What matches are ordered by: meaning, and half a point for having every word."""
        return (self.meaning or 0.0) + self.words / 2


class Meaning:
    """The embedding of the home, and the vectors it has made so far.

    A vector counts only beside vectors of the same model. Which model it is shows in what it makes of
    one fixed text; memories with a vector of another, or with none, are embedded anew when looked at.

    Args:
        embed: `context.embed`.
    """

    def __init__(self, embed: Embed) -> None:
        self._embed = embed
        self._probes: list[bytes] = []
        self.trouble = ""

    def of(self, text: str) -> tuple[str, bytes]:
        """Return (model, vector) of a text; two empty values, and `trouble` set, where there is none."""
        found = self._vectors([*_PROBES, text])
        self._probes = [probe for probe in found[:-1] if probe]
        if not self._probes or not found[-1]:
            return "", b""
        return _name(self._probes[0]), found[-1]

    def floor(self) -> float:
        """Return the cosine from which this model means something by it; after `of`."""
        import numpy as np

        if len(self._probes) < 3 or len({len(probe) for probe in self._probes}) > 1:
            return _FLOOR_OF_UNKNOWN
        rows = np.array([np.frombuffer(probe, dtype=np.float32) for probe in self._probes])
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        noise = (rows @ rows.T)[np.triu_indices(len(rows), 1)]
        # A crowded model's noise is lopsided; half of the way to identity is always near enough.
        return float(min(noise.mean() + _ABOVE_NOISE * noise.std(), (1 + noise.mean()) / 2))

    def renewed(self, memories: Sequence[Memory], model: str, store: Store) -> dict[str, bytes]:
        """Return id -> vector of that model, embedding and storing the ones that are missing."""
        vectors = {memory.id: memory.vector for memory in memories if memory.model == model and memory.vector}
        stale = [memory for memory in memories if memory.id not in vectors]
        fresh = self._vectors(texts(stale)) if stale else []
        made = {memory.id: vector for memory, vector in zip(stale, fresh, strict=False) if vector}
        if made:
            # A file that cannot be written is no reason not to recall; the next one tries again.
            with contextlib.suppress(Unusable):
                store.set_vectors((id, model, vector) for id, vector in made.items())
        return vectors | made

    def _vectors(self, wanted: Sequence[str]) -> list[bytes]:
        """Return a vector per text, empty where it is no direction (zero, infinite or not a number)."""
        try:
            found = [array("f", vector) for vector in self._embed(wanted)]
        except Exception as error:
            self.trouble = type(error).__name__
            return []
        if len(found) != len(wanted):
            self.trouble = "wrong number of vectors"
            return []
        return [vector.tobytes() if _is_direction(vector) else b"" for vector in found]


def _is_direction(vector: Sequence[float]) -> bool:
    length = math.fsum(value * value for value in vector)
    return math.isfinite(length) and length > 0


def _name(probe: bytes) -> str:
    """Return a model's name: its probe vector to two digits, so that rounding elsewhere changes nothing."""
    values = array("f", probe)
    coarse = ",".join(f"{round(value, 2) + 0.0:.2f}" for value in values)
    return hashlib.sha256(f"{len(values)}:{coarse}".encode()).hexdigest()[:16]


def ranked(
    memories: Sequence[Memory], query: str, vector: bytes, vectors: dict[str, bytes], floor: float
) -> list[Match]:
    """Return the memories a query means, the best first.

    Args:
        memories: the ones to choose from.
        query: what is looked for.
        vector: the query's vector, or empty.
        vectors: memory id -> its vector, of the same model.
        floor: the cosine under which a memory is not offered for its meaning alone.
    """
    cosines = _cosines(vector, vectors)
    found = [Match(memory, by_words(query, memory.text), cosines.get(memory.id)) for memory in memories]
    fitting = [match for match in found if match.words > 0 or (match.meaning or 0.0) >= floor]
    return sorted(fitting, key=lambda match: -match.score)


def _cosines(vector: bytes, vectors: dict[str, bytes]) -> dict[str, float]:
    same = [id for id, other in vectors.items() if len(other) == len(vector)]
    if not vector or not same:
        return {}
    import numpy as np

    rows = np.frombuffer(b"".join(vectors[id] for id in same), dtype=np.float32).reshape(len(same), -1)
    query = np.frombuffer(vector, dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(query)
    return dict(zip(same, (rows @ query / lengths).tolist(), strict=True))


def by_words(query: str, text: str, *, inflected: bool = True) -> float:
    """Return the share of the query's telling words that a text holds, 0 to 1.

    A word counts where the text has it, or, with `inflected`, has another form of it (`walk`, `walking`).
    A query that stands in the text as it is counts in full, which also serves scripts without blanks.
    """
    folded_query, folded_text = _folded(query), _folded(text)
    if folded_query and re.search(rf"(?<!\w){re.escape(folded_query)}(?!\w)", folded_text):
        return 1.0
    wanted = telling_words(query)
    if not wanted:
        return 0.0
    if not folded_query.isascii() and folded_query in folded_text:
        return 1.0
    present = set(_WORD.findall(folded_text))
    held = [
        word
        for word in wanted
        if word in present or (inflected and any(_inflects(word, other) for other in present))
    ]
    return len(held) / len(wanted)


def telling_words(query: str) -> frozenset[str]:
    """Return the words of a query that say which memory is meant."""
    return frozenset(_WORD.findall(_folded(query))) - _EMPTY


def _inflects(word: str, other: str) -> bool:
    short, long = sorted((word, other), key=len)
    if len(short) < 4:
        return len(short) == 3 and long == f"{short}s"
    return long.startswith(short) and len(long) - len(short) <= 3


def at_place(memories: Sequence[Memory], location: str) -> list[Memory]:
    """Return the memories of a place: those whose location has every word of the one given.

    `Malta` finds what was stored for `Valletta, Malta`; `Valletta, Malta` does not find what is only `Malta`.
    """
    wanted = set(_WORD.findall(_folded(location)))
    return [
        memory for memory in memories if wanted and wanted <= set(_WORD.findall(_folded(memory.location)))
    ]


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
