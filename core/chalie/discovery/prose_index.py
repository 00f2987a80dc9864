"""The prose rung: one vector per item, the nearest of an entry, and the evidence beside them."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .. import names
from ..catalogue.descriptor import Descriptor, Playbook
from ..catalogue.tables import descriptor_in, playbook_in
from ..errors import ConfigError, IndexUnreadable
from . import arrays, cards, evidence, graph, nearest
from .embedding import Embedder, fingerprint
from .model_files import tensors
from .name_index import Kind

if TYPE_CHECKING:
    import numpy as np

    from ..catalogue.generations import Generation
    from ..catalogue.snapshot import Snapshot
    from ..catalogue.vectors import VectorStore

__all__ = ["FOLDER", "Prose", "ProseIndex", "phrases"]

FOLDER: Final = "prose"
MANIFEST: Final = "prose.json"
_FORMAT: Final = 6
_READ: Final[Mapping[Kind, Callable[[str], Descriptor | Playbook]]] = {
    "ability": descriptor_in,
    "playbook": playbook_in,
}
#: what an ability is weighs as much as so many of its examples; flat from 1 to 2 on the tuning halves.
_DESCRIBED: Final = 1.5
_BATCH: Final = 256
#: the type and the dimensions of each array that an index may hold.
_ARRAYS: Final[Mapping[str, tuple[str, int]]] = {
    "vectors": ("f2", 2),
    "ids": ("u4", 1),
    "cards": ("u1", 1),
    "card_places": ("i8", 1),
    "offsets": ("u4", 1),
    "carried": ("u4", 1),
    "scores": ("f2", 1),
    "terms": ("u4", 1),
    "idf": ("f4", 1),
    "centre": ("f4", 1),
    "axes": ("f4", 2),
    "reduced": ("i1", 2),
    "nodes": ("u4", 1),
}


def phrases(item: Descriptor | Playbook) -> list[str]:
    """Return the texts whose mean vector stands for an item: what it is, then each example."""
    if isinstance(item, Playbook):
        return [f"{_words(item.name)}. {item.description}".strip()]
    properties = item.parameters.get("properties")
    known = [*(properties if isinstance(properties, Mapping) else ()), *item.actions]
    what = f"{_words(item.spoken)}. {item.summary} {' '.join(map(_words, known))}".strip()
    return [what, *item.examples]


def _words(name: str) -> str:
    return " ".join(names.segments(name))


class ProseIndex:
    """Builds the prose index with one embedding model.

    Args:
        model: the model's folder.
    """

    name = "prose"

    def __init__(self, model: Path) -> None:
        self._model = model
        self._fingerprint: str | None = None

    def fingerprint(self) -> str:
        """Return format and model; another model means another index, never a mixed one."""
        return f"prose-{_FORMAT}-{self._model_print()}"

    def _model_print(self) -> str:
        if self._fingerprint is None:
            self._fingerprint = fingerprint(self._model)
        return self._fingerprint

    def build(
        self, snapshot: Snapshot, folder: Path, vectors: VectorStore, previous: Generation | None = None
    ) -> None:
        """Write `prose/` for every discoverable ability and every playbook of `snapshot`.

        Args:
            previous: its graphs are grown from, where there are any.
        """
        place = folder / FOLDER
        place.mkdir()
        # opened only when something has to be embedded: usually everything is borrowed
        embedder = _Late(self._model)
        counts = {kind: self._write(place, kind, snapshot, embedder, vectors, previous) for kind in _READ}
        opened = embedder()
        arrays.save(place / "chat.vectors", {"vectors": opened.embed(opened.chat)})
        facts = {"format": _FORMAT, "model": self._model_print(), "dims": opened.dims, "counts": counts}
        (place / MANIFEST).write_text(json.dumps(facts, indent=1), "utf-8")

    def _write(
        self,
        place: Path,
        kind: Kind,
        snapshot: Snapshot,
        embedder: _Late,
        store: VectorStore,
        previous: Generation | None,
    ) -> int:
        import numpy as np

        ids: list[int] = []
        said: list[list[str]] = []
        found: list[Any] = []
        known: list[str] = []
        for number, text in snapshot.texts(kind):
            item = _READ[kind](text)
            if isinstance(item, Descriptor) and not item.discoverable:
                continue
            ids.append(number)
            said.append(phrases(item))
            found.append(evidence.item_terms(item))
            known.append(text)
        rows = self._vectors(said, embedder, store)
        near = nearest.written(rows, place / f"{kind}.usearch", _before(previous, kind))
        values = {"vectors": rows, "ids": np.array(ids, np.uint32), **near, **evidence.postings(found)}
        arrays.save(place / f"{kind}.vectors", {**values, **cards.written(known)})
        return len(ids)

    def _vectors(self, texts: Sequence[list[str]], embedder: _Late, store: VectorStore) -> np.ndarray:
        import numpy as np

        model = self._model_print()
        # the format, too, decides what is made of the texts
        keys = [hashlib.sha256(json.dumps([_FORMAT, *some]).encode()).hexdigest() for some in texts]
        known = store.get(list(dict.fromkeys(keys)), model)
        wanted = {key: some for key, some in zip(keys, texts, strict=True) if key not in known}
        missing = list(wanted)
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            made = _means(embedder(), [wanted[key] for key in batch]).astype(np.float16)
            fresh = {key: made[row].tobytes() for row, key in enumerate(batch)}
            store.put(fresh, model)
            known.update(fresh)
        if not keys:
            return np.zeros((0, embedder().dims), np.float16)
        # frombuffer refuses a row of another length, which a foreign store would hold
        return np.stack([np.frombuffer(known[key], np.float16) for key in keys])


def _before(previous: Generation | None, kind: Kind) -> graph.Before | None:
    """Return a generation's graph, None where it has none or one that is damaged."""
    if previous is None:
        return None
    try:
        place = previous.verified(FOLDER)
        path = place / f"{kind}.usearch"
        return graph.Before(path, tensors(place / f"{kind}.vectors")) if path.exists() else None
    except (OSError, IndexUnreadable, ConfigError):
        return None


class _Late:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._opened: Embedder | None = None

    def __call__(self) -> Embedder:
        if self._opened is None:
            self._opened = Embedder.open(self._folder)
        return self._opened


def _means(embedder: Embedder, texts: Sequence[Sequence[str]]) -> np.ndarray:
    """Return one unit row per item: the mean of its texts' unit vectors, the first a little weightier."""
    import numpy as np

    rows = embedder.embed([text for some in texts for text in some])
    starts = np.cumsum([0, *(len(some) for some in texts)])[:-1]
    rows[starts] *= _DESCRIBED
    means = np.add.reduceat(rows, starts, axis=0)
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    result: np.ndarray = np.divide(means, lengths, out=np.zeros_like(means), where=lengths > 1e-9)
    return result


class Prose:
    """The prose index of one generation for one kind. Safe to use from several threads.

    Raises:
        IndexUnreadable: on first use, where a file is damaged, missing, or of another model.
    """

    def __init__(self, generation: Generation, kind: Kind) -> None:
        self._generation, self._kind = generation, kind
        self._lock = threading.Lock()
        self._opened: _Opened | None = None

    @property
    def built(self) -> bool:
        """Whether the generation has a prose index at all: it has none where it was built without a model."""
        return ProseIndex.name in self._generation.manifest.builders

    def expect(self, embedder: Embedder) -> None:
        """Make sure that the index was built with this very model.

        Raises:
            IndexUnreadable: it was not; vectors of two models say nothing about each other.
        """
        made, given = self._open().model, embedder.fingerprint
        if made != given:
            # not the generation's fault: whoever changed the model builds anew, and that is under way
            raise IndexUnreadable(
                f"the index was built with another model ({made}) than the one in use ({given})",
                hint="run `chalie index` to rebuild it with this model",
            )

    def nearest(
        self, vector: np.ndarray, count: int, among: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return rows and cosine distances of the `count` nearest, nearest first.

        Args:
            vector: a unit vector.
            count: how many, at most.
            among: the only rows that count, ascending; None for all.
        """
        return self._open().nearest(vector, count, among)

    def rows(self, ids: np.ndarray) -> np.ndarray:
        """Return the rows of those of the catalogue ids that the index has, ascending."""
        return self._open().rows_of(ids)

    def __len__(self) -> int:
        return len(self._open().ids)

    def ids(self, rows: np.ndarray) -> list[int]:
        """Return the catalogue ids of rows."""
        found: list[int] = self._open().ids[rows].tolist()
        return found

    def distances(self, vector: np.ndarray, ids: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of some catalogue ids, and their cosine distances."""
        opened = self._open()
        rows = opened.rows_of_few(ids)
        return rows, opened.distances(vector, rows)

    def few(self, ids: Sequence[int]) -> dict[int, Descriptor | Playbook]:
        """Return the abilities or playbooks of a few catalogue ids."""
        opened, read = self._open(), _READ[self._kind]
        try:
            texts = opened.cards.texts(opened.rows_of_few(ids))
            return {number: read(text) for number, text in zip(ids, texts, strict=True)}
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise IndexUnreadable(
                f"the prose index holds a tool that cannot be read ({error!r})",
                hint="run `chalie index --rebuild` to make it anew",
            ) from error

    @property
    def evidence(self) -> evidence.Evidence:
        """The exact lexical evidence of this kind."""
        return self._open().evidence

    @property
    def chat(self) -> np.ndarray:
        """Vectors of small talk, float32 (n, dims)."""
        return self._open().chat

    def _open(self) -> _Opened:
        if self._opened is None:
            with self._lock:
                if self._opened is None:
                    self._opened = self._read()
        return self._opened

    def _read(self) -> _Opened:
        place = self._generation.verified(FOLDER)
        try:
            facts = json.loads((place / MANIFEST).read_bytes())
            if facts["format"] != _FORMAT:
                # the code was changed where it lies; a build makes another one
                self._generation.damaged = True
                raise ValueError(f"format {facts['format']}")
            values = tensors(place / f"{self._kind}.vectors")
            chat = tensors(place / "chat.vectors")["vectors"]
            file = place / f"{self._kind}.usearch"
            return _Opened(values, chat, file, int(facts["dims"]), str(facts["model"]))
        except (
            OSError,
            KeyError,
            TypeError,
            ValueError,
            ArithmeticError,
            RuntimeError,
            ConfigError,
        ) as error:
            raise IndexUnreadable(
                f"the prose index {place} cannot be read ({error})",
                hint="run `chalie index --rebuild` to make it anew",
            ) from error


class _Opened:
    """The arrays of one index.

    Args:
        values: `ids`, `vectors`, and what `nearest.written`, `evidence.postings` and `cards.written` make.
        chat: vectors of small talk.
        file: the graph's, read where there is one.
        dims: columns of every vector.
        model: fingerprint of the model that made them.
    """

    def __init__(
        self, values: Mapping[str, np.ndarray], chat: np.ndarray, file: Path, dims: int, model: str
    ) -> None:
        for name, array in values.items():
            if (array.dtype.str[1:], array.ndim) != _ARRAYS.get(name, (array.dtype.str[1:], array.ndim)):
                raise ValueError(f"{name} is of another kind")
        self.ids, self.model = values["ids"], model
        if not bool((self.ids[1:] > self.ids[:-1]).all()):
            raise ValueError("the ids do not ascend")
        if values["vectors"].shape != (len(self.ids), dims) or chat.ndim != 2 or chat.shape[1] != dims:
            raise ValueError("vectors and ids differ in number")
        self.chat = chat
        self.evidence = evidence.Evidence(values, len(self.ids))
        self.cards = cards.Cards(values, len(self.ids))
        near = nearest.Nearest(values, file)
        self.nearest, self.distances = near.nearest, near.distances
        self._ids_rows: tuple[np.ndarray, np.ndarray] | None = None

    def rows_of_few(self, ids: Sequence[int]) -> np.ndarray:
        """Return the row of each of a few ids, in their order; `IndexUnreadable` where one has none."""
        import numpy as np

        wanted = np.array(ids, self.ids.dtype)
        rows: np.ndarray = self.ids.searchsorted(wanted)
        if not len(self.ids) or bool((self.ids.take(rows, mode="clip") != wanted).any()):
            raise IndexUnreadable(
                "the prose index lacks a tool that the catalogue has",
                hint="run `chalie index --rebuild` to make it anew",
            )
        return rows

    def rows_of(self, ids: np.ndarray) -> np.ndarray:
        kept = self._ids_rows
        if kept is None or kept[0] is not ids:
            # ids ascend with the rows, since both follow the catalogue
            places = self.ids.searchsorted(ids)
            known = places[places < len(self.ids)]
            kept = self._ids_rows = (ids, known[self.ids[known] == ids[: len(known)]])
        return kept[1]
