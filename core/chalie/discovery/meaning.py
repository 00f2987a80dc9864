"""What an entry means to the model, and how far from it an answer may lie."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from attrs import frozen

from .evidence import entry_terms

if TYPE_CHECKING:
    import numpy as np

    from .embedding import Embedder
    from .prose_index import Prose

__all__ = ["Meaning"]

#: items at which a model's ceiling holds as it stands, and the fewest for which it is made higher.
_CROWD: Final = 100
_FEW: Final = 2
#: the sentences of small talk that an entry is compared with: one alone may share a word by chance.
_TALK: Final = 10


@frozen
class Meaning:
    """One entry as the model reads it, beside the index that it is compared with.

    Attributes:
        prose: the index.
        text: the entry as it was read, misspelt words put right.
        unread: whether the model cannot know the entry's words.
        vector: its unit vector, float32 (dims,), or zeros.
        wanted: its terms.
        ceiling: the cosine distance up to which something answers it.
        granted: what a unit of exact lexical evidence adds to that.
    """

    prose: Prose
    text: str
    unread: bool
    vector: np.ndarray
    wanted: Sequence[str]
    ceiling: float
    granted: float

    @classmethod
    def of(cls, text: str, prose: Prose, embedder: Embedder, ceiling: float | None) -> Meaning:
        """Read an entry.

        Args:
            text: the part of it that is read.
            prose: what it is asked of.
            embedder: the model of that index.
            ceiling: what replaces the model's own; None takes that.
        """
        unread = not embedder.reads(text)
        if embedder.spelling is not None and not unread:
            text = embedder.spelling.corrected(text, prose.evidence.carries)
        vector, wanted = embedder.embed([text])[0], entry_terms(text)
        reach = _reach(prose, embedder, vector, wanted, ceiling)
        return cls(prose, text, unread, vector, wanted, reach, embedder.refusal.evidence)

    def ceilings(self, scores: np.ndarray) -> np.ndarray:
        """Return the distance up to which each of several rows answers, by the evidence for it."""
        return self.ceiling + self.granted * scores

    def looked_at(self, count: int, among: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return rows, distances and evidence of the nearest, as `Prose.nearest` takes its arguments."""
        rows, distances = self.prose.nearest(self.vector, count, among)
        return rows, distances, self.prose.evidence.of(self.wanted, rows)


def _reach(
    prose: Prose, embedder: Embedder, vector: np.ndarray, wanted: Sequence[str], given: float | None
) -> float:
    """Return the distance up to which something answers: less for small talk, for little said, in a crowd."""
    ceiling, refusal = embedder.ceiling if given is None else given, embedder.refusal
    if refusal.content:
        weight = sum(map(embedder.lexicon.weight, wanted))
        ceiling -= refusal.content * max(0.0, math.log((1.0 + refusal.enough) / (1.0 + weight)))
    if refusal.chat and len(prose.chat):
        alike = prose.chat @ vector
        most = min(_TALK, len(alike))
        alike.partition(len(alike) - most)
        ceiling -= refusal.chat * max(0.0, float(alike[-most:].sum()) / most)
    ceiling -= refusal.crowd * math.log(max(len(prose), _FEW) / _CROWD)
    return min(ceiling, refusal.farthest) if given is None else ceiling
