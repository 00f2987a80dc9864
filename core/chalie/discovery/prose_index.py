"""The prose rung: one vector per item, the nearest of an entry, and the evidence beside them."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .. import names
from ..catalogue.descriptor import Descriptor, Playbook
from ..errors import ConfigError, IndexUnreadable
from . import arrays, evidence, graph
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
_FORMAT: Final = 4
#: what an ability is weighs as much as so many of its examples; flat from 1 to 2 on the tuning halves.
_DESCRIBED: Final = 1.5
_BATCH: Final = 256
#: rows up to which every vector is compared; above, a graph is faster (see tests/benchmarks).
EXACT_ROWS: Final = 3_000
#: rows up to which vectors are kept in memory as numbers the processor multiplies at once: some 40 MB.
_WARM_ROWS: Final = 20_000
#: a graph asked for more than one row in so many is slower than comparing all.
_WIDEST: Final = 8
_BLOCK: Final = 16_384


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
        abilities = ((number, item) for number, item in snapshot.abilities() if item.discoverable)
        counts = {
            "ability": self._write(place, "ability", abilities, embedder, vectors, previous),
            "playbook": self._write(place, "playbook", snapshot.playbooks(), embedder, vectors, previous),
        }
        opened = embedder()
        arrays.save(place / "chat.vectors", {"vectors": opened.embed(opened.chat)})
        facts = {"format": _FORMAT, "model": self._model_print(), "dims": opened.dims, "counts": counts}
        (place / MANIFEST).write_text(json.dumps(facts, indent=1), "utf-8")

    def _write(
        self,
        place: Path,
        kind: Kind,
        items: Iterable[tuple[int, Descriptor | Playbook]],
        embedder: _Late,
        store: VectorStore,
        previous: Generation | None,
    ) -> int:
        import numpy as np

        ids: list[int] = []
        texts: list[list[str]] = []
        found: list[Any] = []
        for number, item in items:
            ids.append(number)
            texts.append(phrases(item))
            found.append(evidence.item_terms(item))
        rows = self._vectors(texts, embedder, store)
        values = {"vectors": rows, "ids": np.array(ids, np.uint32), **evidence.postings(found)}
        if len(ids) > EXACT_ROWS:
            values["nodes"] = graph.write(place / f"{kind}.usearch", rows, _before(previous, kind))
        arrays.save(place / f"{kind}.vectors", values)
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
        values = tensors(place / f"{kind}.vectors")
        path = place / f"{kind}.usearch"
        return graph.Before(path, values["vectors"], values["nodes"]) if path.exists() else None
    except (OSError, KeyError, IndexUnreadable, ConfigError):
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
                raise ValueError(f"format {facts['format']}")
            values = tensors(place / f"{self._kind}.vectors")
            chat = tensors(place / "chat.vectors")["vectors"]
            file = place / f"{self._kind}.usearch"
            return _Opened(values, chat, file, int(facts["dims"]), str(facts["model"]))
        except (OSError, KeyError, TypeError, ValueError, RuntimeError, ConfigError) as error:
            raise IndexUnreadable(
                f"the prose index {place} cannot be read ({error})", hint="run `chalie index` to rebuild it"
            ) from error


class _Opened:
    """The arrays of one index.

    Args:
        values: `ids`, `vectors` and what `evidence.postings` makes.
        chat: vectors of small talk.
        file: the graph's, read where there are too many rows to compare each.
        dims: columns of every vector.
        model: fingerprint of the model that made them.
    """

    def __init__(
        self, values: Mapping[str, np.ndarray], chat: np.ndarray, file: Path, dims: int, model: str
    ) -> None:
        import numpy as np

        self.ids, self.model = values["ids"], model
        self._rows = values["vectors"]
        if self._rows.shape != (len(self.ids), dims) or chat.ndim != 2 or chat.shape[1] != dims:
            raise ValueError("vectors and ids differ in number")
        self.chat = chat
        self.evidence = evidence.Evidence(values, len(self.ids))
        self._graph: Any = None
        #: the rows last asked for among others, and their vectors.
        self._subset: tuple[np.ndarray, np.ndarray] | None = None
        #: the same where they are too many for that, and which rows they are.
        self._masked: tuple[np.ndarray, np.ndarray] | None = None
        self._ids_rows: tuple[np.ndarray, np.ndarray] | None = None
        if len(self.ids) <= _WARM_ROWS:
            self._rows = self._rows.astype(np.float32)
        if len(self.ids) > EXACT_ROWS:
            self._graph = graph.Graph(file, values["nodes"])

    def rows_of(self, ids: np.ndarray) -> np.ndarray:
        kept = self._ids_rows
        if kept is None or kept[0] is not ids:
            # ids ascend with the rows, since both follow the catalogue
            places = self.ids.searchsorted(ids)
            known = places[places < len(self.ids)]
            kept = self._ids_rows = (ids, known[self.ids[known] == ids[: len(known)]])
        return kept[1]

    def nearest(
        self, vector: np.ndarray, count: int, among: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        import numpy as np

        if vector.shape != (self._rows.shape[1],):
            raise IndexUnreadable(
                f"the index holds vectors of {self._rows.shape[1]} columns, the model gives {vector.shape}",
                hint="run `chalie index` to rebuild it with this model",
            )
        count = min(count, len(self.ids) if among is None else len(among))
        if not count:
            return np.zeros(0, np.int64), np.zeros(0, np.float32)
        if among is None and self._graph is None:
            rows, cosines = _top(self._rows @ vector, count)
        elif among is None:
            rows, cosines = self._by_graph(vector, count)
        elif len(among) <= EXACT_ROWS:
            places, cosines = _top(self._of(among) @ vector, count)
            rows = among[places]
        else:
            rows, cosines = self._widening(vector, count, among)
        return rows, 1.0 - cosines

    def _by_graph(self, vector: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        import numpy as np

        # the graph proposes by rounded distances; the exact ones order and choose
        rows = self._graph.near(vector, count)
        cosines = self._rows.take(rows, axis=0).astype(np.float32, copy=False) @ vector
        order = (-cosines).argsort(kind="stable")[:count]
        return rows[order], cosines[order]

    def _widening(self, vector: np.ndarray, count: int, among: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest of many rows: a graph knows no filter, so it is asked for ever more."""
        import numpy as np

        asked = count * len(self.ids) // len(among) + count
        while asked * _WIDEST < len(self.ids):
            rows, cosines = self._by_graph(vector, asked)
            kept = self._mask(among)[rows]
            if int(kept.sum()) >= count:
                return rows[kept][:count], cosines[kept][:count]
            asked *= 4
        cosines = np.empty(len(among), np.float32)
        for start in range(0, len(among), _BLOCK):
            part = among[start : start + _BLOCK]
            cosines[start : start + _BLOCK] = self._rows[part].astype(np.float32) @ vector
        places, cosines = _top(cosines, count)
        return among[places], cosines

    def _mask(self, among: np.ndarray) -> np.ndarray:
        import numpy as np

        kept = self._masked
        if kept is None or kept[0] is not among:
            mask = np.zeros(len(self.ids), bool)
            mask[among] = True
            kept = self._masked = (among, mask)
        return kept[1]

    def _of(self, among: np.ndarray) -> np.ndarray:
        import numpy as np

        kept = self._subset
        if kept is None or kept[0] is not among:
            kept = self._subset = (among, self._rows[among].astype(np.float32))
        return kept[1]


def _top(cosines: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return places and values of the `count` highest, the highest first, ties by place."""
    import numpy as np

    places = np.arange(len(cosines))
    if count < len(cosines):
        places = (-cosines).argpartition(count - 1)[:count]
    order = np.lexsort((places, -cosines[places]))
    return places[order], cosines[places[order]]
