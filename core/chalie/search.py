"""Search for one process: the cascade of the generation in use, and the one embedding model."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from .calls import Sight
from .catalogue.descriptor import Descriptor, Playbook
from .config import Config
from .errors import ChalieError

if TYPE_CHECKING:
    from .build import Upkeep
    from .catalogue.generations import Generation
    from .discovery.cascade import Cascade
    from .discovery.embedding import Embedder
    from .discovery.found import Found

__all__ = ["Kind", "Search", "Sighted"]

Kind = Literal["ability", "playbook"]
#: how an item looks from where it is searched.
Sighted = Callable[[Descriptor | Playbook], Sight]


class Search:
    """Opens indexes and model when they are first asked, and a damaged index is built again.

    Args:
        config: model, nearest and ceiling.
        upkeep: told of damage.
    """

    def __init__(self, config: Config, upkeep: Upkeep) -> None:
        self._config = config
        self._upkeep = upkeep
        self._lock = threading.RLock()
        self._cascade: tuple[str, Cascade] | None = None
        self._embedder: Embedder | None = None

    def find(self, generation: Generation, entries: Sequence[str], kind: Kind, sight: Sighted) -> Found:
        """Run the cascade over every entry."""
        found = self._cascade_of(generation).find(entries, kind, sight)
        if generation.damaged:
            self._upkeep.rebuild()
        return found

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one unit vector per text.

        Raises:
            ChalieError: there is no usable model.
        """
        vectors: list[list[float]] = self._model().embed(list(texts)).tolist()
        return vectors

    def _cascade_of(self, generation: Generation) -> Cascade:
        with self._lock:
            if self._cascade is None or self._cascade[0] != generation.id:
                from .discovery.cascade import Cascade

                self._drop_replaced()
                options = self._config.discovery
                made = Cascade(generation, self._model, nearest=options.nearest, ceiling=options.ceiling)
                self._cascade = (generation.id, made)
            return self._cascade[1]

    def _drop_replaced(self) -> None:
        """Let go of a model whose files are others now: the new generation was built with those."""
        from .discovery.embedding import fingerprint

        if self._embedder is not None:
            try:
                same = fingerprint(self._embedder.folder) == self._embedder.fingerprint
            except ChalieError:
                same = False
            if not same:
                self._embedder = None

    def _model(self) -> Embedder:
        with self._lock:
            if self._embedder is None:
                from .discovery.embedding import Embedder, model_folder

                points = self._upkeep.current().snapshot.entry_points("chalie.models")
                self._embedder = Embedder.open(model_folder(self._config.discovery.model, points))
            return self._embedder
