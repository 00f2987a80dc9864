"""The graph that proposes the nearest rows where there are too many to compare each; it grows in place.

Its nodes are numbered as they were added. Rows are not: they follow the catalogue, where one package more
moves all that come after it. So each row has its node's number beside it, and a node whose row is gone stays,
as a step on the way to others, until there are too many of those.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Before", "Graph", "write"]

_LINKS: Final = 16
#: (rows, width while building, width of a search): as little as keeps 98 in a hundred of the ten nearest.
#: Measured at 10,000 and at 100,000 rows, where many are nearly alike.
_WIDTHS: Final = ((20_000, 64, 56), (10**9, 96, 160))
#: unit vectors of some 500 columns hold values about 0.05; eight bits are spent on up to 1 / _SCALE.
_SCALE: Final = 4.0
#: rows more than are asked for, since eight bits misplace a few.
_MORE: Final = 6
_BLOCK: Final = 16_384
#: rows that one thread adds, in the same way each time: several would save nothing worth the difference.
_FEW: Final = 1_000
#: nodes without a row that are put up with, as a share of the rows.
_DEAD: Final = 0.25


@frozen
class Before:
    """The graph of the generation before.

    Attributes:
        path: its file.
        rows: the vectors it holds, as they are stored.
        nodes: of each of these rows, its node.
    """

    path: Path
    rows: np.ndarray
    nodes: np.ndarray


def write(path: Path, rows: np.ndarray, before: Before | None) -> np.ndarray:
    """Write the graph of `rows` and return the node of each row, uint32.

    Args:
        path: the file to write.
        rows: unit vectors as they are stored, float16 (n, dims).
        before: what to grow from; rows it holds are not added again.
    """
    import numpy as np

    grown = None if before is None else _grown(rows, before)
    if grown is None:
        index, nodes = _made(rows), np.full(len(rows), -1, np.int64)
    else:
        index, nodes = grown
    missing = np.flatnonzero(nodes < 0)
    nodes[missing] = np.arange(len(index), len(index) + len(missing))
    threads = 1 if len(missing) <= _FEW else 0  # 0: one for each core
    for start in range(0, len(missing), _BLOCK):
        part = missing[start : start + _BLOCK]
        vectors = _eight_bits(rows[part].astype(np.float32))
        index.add(nodes[part].astype(np.uint64), vectors, threads=threads)
    index.save(str(path))
    return nodes.astype(np.uint32)


def _grown(rows: np.ndarray, before: Before) -> tuple[Any, np.ndarray] | None:
    """Return the graph before and the nodes that it has of `rows`; None where it is of little use."""
    import numpy as np

    known: dict[bytes, list[int]] = {}
    for node, row in zip(before.nodes.tolist(), before.rows, strict=True):
        known.setdefault(_mark(row), []).append(node)
    nodes = np.array([node.pop() if (node := known.get(_mark(row))) else -1 for row in rows], np.int64)
    index = _made(rows)
    try:
        # not viewed: it is going to be written to
        index.load(str(before.path))
    except (
        Exception
    ):  # the library raises its own and RuntimeError; another version of it may have written it
        return None
    dead = len(index) - int((nodes >= 0).sum())
    return None if dead > _DEAD * len(rows) else (index, nodes)


def _mark(row: np.ndarray) -> bytes:
    return hashlib.blake2b(row.tobytes(), digest_size=16).digest()


def _made(rows: np.ndarray) -> Any:
    from usearch.index import Index

    build_width, search_width = _widths(len(rows))
    return Index(
        ndim=rows.shape[1],
        metric="cos",
        dtype="i8",
        connectivity=_LINKS,
        expansion_add=build_width,
        expansion_search=search_width,
    )


def _widths(count: int) -> tuple[int, int]:
    return next((build, search) for most, build, search in _WIDTHS if count <= most)


def _eight_bits(vectors: np.ndarray) -> np.ndarray:
    """Return vectors as the graph takes them: it turns -1 to 1 into whole numbers of eight bits itself."""
    return (vectors * _SCALE).clip(-1.0, 1.0)


class Graph:
    """A graph in use, mapped from its file.

    Args:
        path: its file.
        nodes: of each row, its node.

    Raises:
        ValueError: the file is no such graph, or the nodes are not its.
        RuntimeError: it is damaged.
    """

    def __init__(self, path: Path, nodes: np.ndarray) -> None:
        import numpy as np
        from usearch.index import Index

        index: Any = Index.restore(str(path), view=True)
        index.expansion_search = _widths(len(nodes))[1]
        self._index, size = index, len(index)
        if len(np.unique(nodes)) < len(nodes) or int(nodes.max(initial=0)) >= max(size, 1):
            raise ValueError(f"{path.name}: the nodes of the rows are not those of the graph")
        self._rows = np.full(size, -1, np.int64)
        self._rows[nodes] = np.arange(len(nodes))
        self._whole = size == len(nodes)

    def near(self, vector: np.ndarray, count: int) -> np.ndarray:
        """Return some rows more than `count`, or all there are, of those nearest by rounded distances.

        Args:
            vector: a unit vector.
            count: at most as many as there are rows.
        """
        import numpy as np

        wanted, rounded = count + _MORE, _eight_bits(vector)
        while True:
            # one entry is no work for several threads
            asked = min(wanted, len(self._rows))
            found = self._index.search(rounded, asked, threads=1).keys
            rows: np.ndarray = self._rows[found.astype(np.int64)]
            if self._whole:
                return rows
            rows = rows[rows >= 0]
            if len(rows) >= count or asked == len(self._rows):
                return rows
            # what a package's last version said lies next to what it says now
            wanted *= 2
