"""Search for one process: the cascade of the generation in use, and the one embedding model."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

from .calls import Channel, Setting, Sight
from .catalogue.descriptor import Descriptor, Playbook
from .config import Config
from .errors import ChalieError, IndexUnreadable

if TYPE_CHECKING:
    import numpy as np

    from .build import Upkeep
    from .catalogue.generations import Generation
    from .catalogue.snapshot import Snapshot
    from .discovery.cascade import Cascade
    from .discovery.embedding import Embedder
    from .discovery.found import Found
    from .ledger.permissions import Permissions, Rows

__all__ = ["Kind", "Search", "Sighted"]

Kind = Literal["ability", "playbook"]
#: how an item looks from where it is searched.
Sighted = Callable[[Descriptor | Playbook], Sight]
#: (generation, counter of the settings, policy channel, reach): what is known for one of them holds for good.
_View = tuple[str, int, str, tuple[str, ...] | None]
_VIEWS: Final = 16


class Search:
    """Opens indexes and model when they are first asked, and a damaged index is built again.

    Args:
        config: model, nearest and ceiling.
        upkeep: told of damage.
        permissions: what people set.
    """

    def __init__(self, config: Config, upkeep: Upkeep, permissions: Permissions) -> None:
        self._config = config
        self._upkeep = upkeep
        self._permissions = permissions
        self._views: dict[_View, np.ndarray | None] = {}
        self._lock = threading.RLock()
        self._cascade: tuple[str, Cascade] | None = None
        self._embedder: Embedder | None = None

    def find(
        self, generation: Generation, entries: Sequence[str], kind: Kind, sight: Sighted, channel: Channel
    ) -> Found:
        """Run the cascade over every entry.

        Args:
            channel: where it is asked; `sight` still decides on every hit.
        """
        allowed = self._allowed(generation, channel) if kind == "ability" else None
        found = self._cascade_of(generation).find(entries, kind, sight, allowed=allowed)
        if generation.damaged:
            self._upkeep.rebuild()
        return found

    def _allowed(self, generation: Generation, channel: Channel) -> np.ndarray | None:
        """Return the ids that stored settings leave to be seen on a channel; None where that is most of them.

        Worked out anew only where the settings or the catalogue are others.
        """
        rows = self._permissions.look()
        view = (generation.id, rows.counter, channel.policy, channel.permissions)
        with self._lock:
            if view not in self._views:
                while len(self._views) >= _VIEWS:
                    del self._views[next(iter(self._views))]
                try:
                    self._views[view] = _visible(generation.snapshot, channel, rows)
                except IndexUnreadable:
                    # the search itself says so; every hit is asked about anyway
                    return None
            return self._views[view]

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


def _visible(snapshot: Snapshot, channel: Channel, rows: Rows) -> np.ndarray | None:
    """Return the ids of the abilities that no row denies whole and that the channel reaches, ascending.

    Limits of policies and rows that end are left to whoever asks about a hit.
    """
    denied = _denied(rows, channel.policy)

    def seen(item: Descriptor) -> bool:
        said = denied.get(item.dist, frozenset())
        return any(
            channel.reaches(permission) and not _covers(said, item.name, permission)
            for permission, _ in item.permissions()
        )

    if channel.permissions is not None:
        owners = {name for each in channel.permissions for name in (each, each.rpartition(".")[0]) if name}
        reached = {
            number: item for name in owners for number, item in snapshot.numbered("name", name).items()
        }
        return _ids(number for number, item in reached.items() if seen(item))
    brought = (snapshot.numbered("dist", dist).items() for dist in denied)
    hidden = {number for items in brought for number, item in items if not seen(item)}
    # asking about the hidden ones that come up costs less than leaving out a few beforehand
    if not hidden or 2 * len(hidden) < snapshot.counts()["abilities"]:
        return None
    return _ids(number for number in snapshot.ids() if number not in hidden)


def _denied(rows: Rows, channel: str) -> Mapping[str, frozenset[str]]:
    """Return package -> the permissions, bare names and patterns that are denied there without an end."""
    found: dict[str, set[str]] = {}
    for row in rows.rows.values():
        if row.channel == channel and row.setting is Setting.DENY and row.until is None:
            found.setdefault(row.package, set()).add(row.permission)
    return {package: frozenset(denied) for package, denied in found.items()}


def _covers(denied: frozenset[str], name: str, permission: str) -> bool:
    if permission in denied or name in denied:
        return True
    return any(each.endswith("*") and name.startswith(each[:-1]) for each in denied)


def _ids(numbers: Iterable[int]) -> np.ndarray:
    import numpy as np

    return np.array(sorted(numbers), np.int64)
