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
from . import arrays, evidence
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
_FORMAT: Final = 1
_BATCH: Final = 256
#: rows up to which every vector is compared; above, a graph is faster (see tests/benchmarks).
EXACT_ROWS: Final = 3_000
_GRAPH_SEARCH, _GRAPH_ADD, _GRAPH_LINKS = 128, 128, 16


def phrases(item: Descriptor | Playbook) -> list[str]:
    """Return the texts whose mean vector stands for an item: what it is, then each example."""
    if isinstance(item, Playbook):
        return [f"{_words(item.name)}. {item.description}".strip()]
    properties = item.parameters.get("properties")
    known = [*(properties if isinstance(properties, Mapping) else ()), *item.actions]
    what = f"{_words(item.name)}. {item.summary} {' '.join(map(_words, known))}".strip()
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

    def build(self, snapshot: Snapshot, folder: Path, vectors: VectorStore) -> None:
        """Write `prose/` for every discoverable ability and every playbook of `snapshot`."""
        place = folder / FOLDER
        place.mkdir()
        # opened only when something has to be embedded: usually everything is borrowed
        embedder = _Late(self._model)
        abilities = ((number, item) for number, item in snapshot.abilities() if item.discoverable)
        counts = {
            "ability": self._write(place, "ability", abilities, embedder, vectors),
            "playbook": self._write(place, "playbook", snapshot.playbooks(), embedder, vectors),
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
        if len(ids) > EXACT_ROWS:
            _graph(rows).save(str(place / f"{kind}.usearch"))
        values = {"vectors": rows, "ids": np.array(ids, np.uint32), **evidence.postings(found)}
        arrays.save(place / f"{kind}.vectors", values)
        return len(ids)

    def _vectors(self, texts: Sequence[list[str]], embedder: _Late, store: VectorStore) -> np.ndarray:
        import numpy as np

        model = self._model_print()
        keys = [hashlib.sha256(json.dumps(some).encode()).hexdigest() for some in texts]
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


class _Late:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._opened: Embedder | None = None

    def __call__(self) -> Embedder:
        if self._opened is None:
            self._opened = Embedder.open(self._folder)
        return self._opened


def _means(embedder: Embedder, texts: Sequence[Sequence[str]]) -> np.ndarray:
    """Return one unit row per item: the mean of the unit vectors of its texts."""
    import numpy as np

    rows = embedder.embed([text for some in texts for text in some])
    starts = np.cumsum([0, *(len(some) for some in texts)])[:-1]
    means = np.add.reduceat(rows, starts, axis=0)
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    result: np.ndarray = np.divide(means, lengths, out=np.zeros_like(means), where=lengths > 1e-9)
    return result


def _graph(rows: np.ndarray) -> Any:
    import numpy as np
    from usearch.index import Index

    index = Index(
        ndim=rows.shape[1],
        metric="ip",
        dtype="f16",
        connectivity=_GRAPH_LINKS,
        expansion_add=_GRAPH_ADD,
        expansion_search=_GRAPH_SEARCH,
    )
    index.add(np.arange(len(rows), dtype=np.uint64), rows)
    return index


class Prose:
    """The prose index of one generation for one kind. Safe to use from several threads.

    Raises:
        IndexUnreadable: on first use, where a file is damaged, missing, or of another model.
    """

    def __init__(self, generation: Generation, kind: Kind) -> None:
        self._generation, self._kind = generation, kind
        self._lock = threading.Lock()
        self._opened: _Opened | None = None

    def nearest(self, vector: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return rows and cosine distances of the `count` nearest, nearest first."""
        return self._open().nearest(vector, count)

    def __len__(self) -> int:
        return len(self._open().ids)

    def ids(self, rows: Iterable[int]) -> list[int]:
        """Return the catalogue ids of rows."""
        ids = self._open().ids
        return [int(ids[row]) for row in rows]

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
            return _Opened(values, chat, place / f"{self._kind}.usearch", int(facts["dims"]))
        except (OSError, KeyError, TypeError, ValueError, RuntimeError, ConfigError) as error:
            raise IndexUnreadable(
                f"the prose index {place} cannot be read ({error})", hint="run `chalie index` to rebuild it"
            ) from error


class _Opened:
    def __init__(self, values: Mapping[str, np.ndarray], chat: np.ndarray, graph: Path, dims: int) -> None:
        import numpy as np

        self.ids = values["ids"]
        self._rows = values["vectors"]
        if self._rows.shape != (len(self.ids), dims) or chat.ndim != 2 or chat.shape[1] != dims:
            raise ValueError("vectors and ids differ in number")
        self.chat = chat
        self.evidence = evidence.Evidence(values, len(self.ids))
        self._graph: Any = None
        self._full: np.ndarray | None = None
        if len(self.ids) > EXACT_ROWS:
            from usearch.index import Index

            self._graph = Index.restore(str(graph), view=True)
            self._graph.expansion_search = _GRAPH_SEARCH
        else:
            self._full = self._rows.astype(np.float32)

    def nearest(self, vector: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        import numpy as np

        if vector.shape != (self._rows.shape[1],):
            raise IndexUnreadable(
                f"the index holds vectors of {self._rows.shape[1]} columns, the model gives {vector.shape}",
                hint="run `chalie index` to rebuild it with this model",
            )
        count = min(count, len(self.ids))
        if not count:
            return np.zeros(0, np.int64), np.zeros(0, np.float32)
        if self._full is not None:
            rows, cosines = self._exact(self._full, vector, count)
        else:
            rows = self._graph.search(vector, count).keys.astype(np.int64)
            cosines = self._rows[rows].astype(np.float32) @ vector
            order = np.argsort(-cosines, kind="stable")
            rows, cosines = rows[order], cosines[order]
        return rows, 1.0 - cosines

    @staticmethod
    def _exact(full: np.ndarray, vector: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        import numpy as np

        cosines = full @ vector
        rows = (
            np.argpartition(-cosines, count - 1)[:count] if count < len(cosines) else np.arange(len(cosines))
        )
        order = np.lexsort((rows, -cosines[rows]))
        return rows[order], cosines[rows[order]]
