"""The vectors of a catalogue, kept by content: what did not change is never embedded twice."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from . import tables

__all__ = ["VectorStore"]

_BATCH = 400


class VectorStore:
    """Vectors by content hash and model, for the builders of one generation.

    Those asked for or put are kept for the next generation; the rest are left behind.

    Args:
        previous: catalogues to borrow from, the nearest first; a damaged or absent one lends nothing.
    """

    def __init__(self, previous: Sequence[Path] = ()) -> None:
        self._previous = tuple(previous)
        self._kept: dict[tuple[str, str], bytes] = {}
        self.borrowed = 0
        self.embedded = 0

    def get(self, keys: Sequence[str], model: str) -> dict[str, bytes]:
        """Return what is known of these content hashes for this model; absent keys are left out.

        Args:
            keys: content hashes.
            model: the model's fingerprint.
        """
        found = {key: self._kept[model, key] for key in keys if (model, key) in self._kept}
        for path in self._previous:
            wanted = [key for key in keys if key not in found]
            if not wanted:
                break
            for key, data in _read(path, wanted, model):
                found[key] = self._kept[model, key] = data
                self.borrowed += 1
        return found

    def put(self, rows: Mapping[str, bytes], model: str) -> None:
        """Keep new vectors: content hash -> bytes, for this model."""
        for key, data in rows.items():
            self._kept[model, key] = bytes(data)
        self.embedded += len(rows)

    def save(self, path: Path) -> None:
        """Write what was used into the catalogue at `path`."""
        connection = sqlite3.connect(path)
        try:
            connection.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;")
            with connection:
                connection.executemany(
                    "INSERT OR REPLACE INTO vectors VALUES(?,?,?)",
                    ((model, key, data) for (model, key), data in sorted(self._kept.items())),
                )
        finally:
            connection.close()

    def keep_all(self) -> None:
        """Carry everything over from the nearest catalogue: its indexes are taken as they are."""
        for path in self._previous[:1]:
            for model, key, data in _rows(path):
                self._kept[model, key] = data


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)


def _read(path: Path, keys: Sequence[str], model: str) -> Iterator[tuple[str, bytes]]:
    try:
        connection = _connect(path)
    except sqlite3.Error:
        return
    try:
        for start in range(0, len(keys), _BATCH):
            batch = keys[start : start + _BATCH]
            marks = ",".join("?" * len(batch))
            yield from connection.execute(
                f"SELECT content_hash, bytes FROM vectors WHERE model=? AND content_hash IN ({marks})",
                (model, *batch),
            )
    except sqlite3.Error:
        return
    finally:
        connection.close()


def _rows(path: Path) -> Iterator[tuple[str, str, bytes]]:
    try:
        connection = _connect(path)
    except sqlite3.Error:
        return
    try:
        yield from connection.execute("SELECT model, content_hash, bytes FROM vectors")
    except sqlite3.Error:
        return
    finally:
        connection.close()


def count(path: Path) -> int:
    """Return how many vectors the catalogue at `path` holds."""
    return sum(1 for _ in _rows(path / tables.FILE if path.is_dir() else path))
