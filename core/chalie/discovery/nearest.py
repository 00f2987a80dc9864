"""Which rows lie nearest to an entry: few are all compared, of many some are proposed and then compared.

Up to `EXACT_ROWS` every vector is read. Up to `SCANNED_ROWS` every shortened vector is (`scan`), and above it
a graph leads to the ones worth reading (`graph`). The order and the distances are always of whole vectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..errors import IndexUnreadable
from . import graph, scan

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Nearest", "written"]

#: rows up to which every vector is compared; above, shortened ones are faster (see tests/benchmarks).
EXACT_ROWS: Final = 1_000
#: rows up to which every shortened vector is; above, a graph is faster.
SCANNED_ROWS: Final = 30_000
#: a graph asked for more than one row in so many is slower than comparing all.
_WIDEST: Final = 8
_BLOCK: Final = 16_384
#: numbers in a matrix whose product with a vector OpenBLAS surely leaves to one thread.
_ONE_THREAD: Final = 200_000


def written(rows: np.ndarray, path: Path, before: graph.Before | None) -> dict[str, np.ndarray]:
    """Return what `Nearest` reads beside the vectors, and write the graph to `path` where there is one.

    Args:
        rows: unit vectors as they are stored, float16 (n, dims).
        path: where a graph goes.
        before: the graph to grow from, if any.
    """
    if len(rows) <= EXACT_ROWS:
        return {}
    if len(rows) <= SCANNED_ROWS:
        return scan.write(rows)
    return graph.write(path, rows, before)


class Nearest:
    """The vectors of one index, in use.

    Args:
        arrays: `vectors`, and what `written` made of them.
        path: the graph's file, read where there is one.

    Raises:
        ValueError: the arrays do not fit each other.
        RuntimeError: the graph's file is damaged.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], path: Path) -> None:
        self._rows = arrays["vectors"]
        self._proposing = _proposing(arrays, path, self._rows.shape)
        if self._proposing is None:
            # few enough to keep as numbers that are multiplied at once
            self._rows = _floats(self._rows)
        #: the rows last asked for among others, and their vectors.
        self._subset: tuple[np.ndarray, np.ndarray] | None = None
        #: the same where they are too many for that, and which rows they are.
        self._masked: tuple[np.ndarray, np.ndarray] | None = None

    def nearest(
        self, vector: np.ndarray, count: int, among: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return rows and cosine distances of the `count` nearest, nearest first (see `Prose.nearest`)."""
        import numpy as np

        if vector.shape != (self._rows.shape[1],):
            raise IndexUnreadable(
                f"the index holds vectors of {self._rows.shape[1]} columns, the model gives {vector.shape}",
                hint="run `chalie index` to rebuild it with this model",
            )
        count = min(count, len(self._rows) if among is None else len(among))
        if not count:
            return np.zeros(0, np.int64), np.zeros(0, np.float32)
        proposing = self._proposing
        if among is not None and len(among) <= EXACT_ROWS:
            places, cosines = _top(_products(self._of(among), vector), count)
            rows = among[places]
        elif proposing is None:
            rows, cosines = _top(_products(self._rows, vector), count)
        elif among is None:
            rows, cosines = self._compared(proposing.near(vector, count), vector, count)
        elif isinstance(proposing, scan.Scan):
            rows, cosines = self._compared(proposing.near(vector, count, among), vector, count)
        else:
            rows, cosines = self._widening(proposing, vector, count, among)
        return rows, 1.0 - cosines

    def distances(self, vector: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the cosine distance of each of `rows`, float32."""
        result: np.ndarray = 1.0 - _products(_floats(self._rows.take(rows, axis=0)), vector)
        return result

    def _compared(self, rows: np.ndarray, vector: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest of the rows proposed, and their cosines."""
        cosines = _floats(self._rows.take(rows, axis=0)) @ vector
        order = (-cosines).argsort(kind="stable")[:count]
        return rows[order], cosines[order]

    def _widening(
        self, proposing: graph.Graph, vector: np.ndarray, count: int, among: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest of many rows: a graph knows no filter, so it is asked for ever more."""
        import numpy as np

        total = len(self._rows)
        asked = count * total // len(among) + count
        while asked * _WIDEST < total:
            rows, cosines = self._compared(proposing.near(vector, asked), vector, asked)
            kept = self._mask(among)[rows]
            if int(kept.sum()) >= count:
                return rows[kept][:count], cosines[kept][:count]
            asked *= 4
        cosines = np.empty(len(among), np.float32)
        for start in range(0, len(among), _BLOCK):
            part = among[start : start + _BLOCK]
            cosines[start : start + _BLOCK] = _products(_floats(self._rows[part]), vector)
        places, cosines = _top(cosines, count)
        return among[places], cosines

    def _mask(self, among: np.ndarray) -> np.ndarray:
        import numpy as np

        kept = self._masked
        if kept is None or kept[0] is not among:
            mask = np.zeros(len(self._rows), bool)
            mask[among] = True
            kept = self._masked = (among, mask)
        return kept[1]

    def _of(self, among: np.ndarray) -> np.ndarray:
        kept = self._subset
        if kept is None or kept[0] is not among:
            kept = self._subset = (among, _floats(self._rows[among]))
        return kept[1]


def _proposing(
    arrays: Mapping[str, np.ndarray], path: Path, shape: tuple[int, ...]
) -> scan.Scan | graph.Graph | None:
    total, dims = shape
    if "nodes" in arrays:
        return graph.Graph(path, arrays, dims)
    return scan.Scan(arrays, total, dims) if "reduced" in arrays else None


def _floats(rows: np.ndarray) -> np.ndarray:
    """Return float16 rows as float32, which takes numpy itself twenty times as long."""
    import numkong
    import numpy as np

    return np.asarray(numkong.astype(rows, "float32"))


def _products(rows: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Return the product of each row with `vector`, worked out by this thread alone.

    For a large matrix BLAS shares the work with threads of its own. Waiting for one to be given a processor
    takes milliseconds where others are busy; the product takes a tenth of one.
    """
    import numpy as np

    step = max(1, _ONE_THREAD // rows.shape[1])
    result = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), step):
        np.matmul(rows[start : start + step], vector, out=result[start : start + step])
    return result


def _top(cosines: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return places and values of the `count` highest, the highest first, ties by place."""
    import numpy as np

    places = np.arange(len(cosines))
    if count < len(cosines):
        places = (-cosines).argpartition(count - 1)[:count]
    order = np.lexsort((places, -cosines[places]))
    return places[order], cosines[places[order]]
