"""The graph that proposes the nearest rows where there are too many to compare each; it grows in place.

Its nodes are numbered as they were added. Rows are not: they follow the catalogue, where one package more
moves all that come after it. So each row has its node's number beside it, and a node whose row is gone stays,
as a step on the way to others, until there are too many of those.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from ..errors import IndexUnreadable
from .reduction import Axes, proposed

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Before", "Graph", "write"]

_LINKS: Final = 16
#: the width while building.
_BUILDING: Final = 128
#: the width of a search is 0.16 times the rows to the power of 0.6, and 80 at least; a quarter of it is
#: proposed at least. About as little as keeps 98 in a hundred of the ten nearest among 30,000, 100,000 and a
#: million rows of which many are nearly alike (see tests/benchmarks).
_SEARCHING, _GROWTH, _NARROWEST = 0.16, 0.6, 80
_PROPOSED: Final = 1 / 4
_BLOCK: Final = 16_384
#: rows that one thread adds, in the same way each time: several would save nothing worth the difference.
_FEW: Final = 1_000
#: nodes without a row that are put up with, as a share of the rows.
_DEAD: Final = 0.25
#: what the axes of a grown graph have to explain of its rows, as a share of what the best would.
_EXPLAINED: Final = 0.97


@frozen
class Before:
    """The graph of the generation before.

    Attributes:
        path: its file.
        arrays: the `vectors` it holds, as they are stored, and what `write` returned of them.
    """

    path: Path
    arrays: Mapping[str, np.ndarray]


def write(path: Path, rows: np.ndarray, before: Before | None) -> dict[str, np.ndarray]:
    """Write the graph of `rows` and return what `Graph` reads: `nodes`, the node of each row, and the axes.

    Args:
        path: the file to write.
        rows: unit vectors as they are stored, float16 (n, dims).
        before: what to grow from; rows it holds are not added again.
    """
    import numpy as np

    axes = Axes.of(rows)
    grown = None if before is None else _grown(rows, before, axes)
    if grown is None:
        index, nodes = _made(axes), np.full(len(rows), -1, np.int64)
    else:
        index, nodes, axes = grown
    missing = np.flatnonzero(nodes < 0)
    nodes[missing] = np.arange(len(index), len(index) + len(missing))
    threads = 1 if len(missing) <= _FEW else 0  # 0: one for each core
    for start in range(0, len(missing), _BLOCK):
        part = missing[start : start + _BLOCK]
        index.add(nodes[part].astype(np.uint64), axes.reduced(rows[part]), threads=threads)
    index.save(str(path))
    return {"nodes": nodes.astype(np.uint32), **axes.arrays()}


def _grown(rows: np.ndarray, before: Before, best: Axes) -> tuple[Any, np.ndarray, Axes] | None:
    """Return the graph before, the nodes it has of `rows`, and its axes; None where it is of little use."""
    import numpy as np

    known: dict[bytes, list[int]] = {}
    try:
        axes = Axes.stored(before.arrays, rows.shape[1])
        nodes_before, rows_before = before.arrays["nodes"], before.arrays["vectors"]
        for node, row in zip(nodes_before.tolist(), rows_before, strict=True):
            known.setdefault(_mark(row), []).append(node)
        nodes = np.array([node.pop() if (node := known.get(_mark(row))) else -1 for row in rows], np.int64)
        index = _made(axes)
        # not viewed: it is going to be written to
        index.load(str(before.path))
        fits = index.ndim == axes.columns and len(np.unique(nodes_before)) == len(nodes_before)
        if not fits or nodes.shape != (len(rows),) or int(nodes.max(initial=-1)) >= len(index):
            return None
    except Exception:  # whatever is wrong with it (the library raises its own), another one is made
        return None
    dead = len(index) - int((nodes >= 0).sum())
    # what came since may lie in other directions than the axes that told apart what was there
    apt = axes.explains(rows) >= _EXPLAINED * best.explains(rows)
    return (index, nodes, axes) if apt and dead <= _DEAD * len(rows) else None


def _mark(row: np.ndarray) -> bytes:
    return hashlib.blake2b(row.tobytes(), digest_size=16).digest()


def _made(axes: Axes) -> Any:
    from usearch.index import Index

    return Index(
        ndim=axes.columns,
        metric="ip",
        dtype="i8",
        connectivity=_LINKS,
        expansion_add=_BUILDING,
    )


class Graph:
    """A graph in use, mapped from its file.

    Args:
        path: its file.
        arrays: what `write` returned.
        dims: columns of a whole vector.

    Raises:
        ValueError: the file is no such graph, or the nodes or the axes are not its.
        RuntimeError: it is damaged.
    """

    def __init__(self, path: Path, arrays: Mapping[str, np.ndarray], dims: int) -> None:
        import numpy as np
        from usearch.index import Index

        nodes, self._axes = arrays["nodes"], Axes.stored(arrays, dims)
        index: Any = Index.restore(str(path), view=True)
        self._index, size = index, len(index)
        width = max(_NARROWEST, int(_SEARCHING * size**_GROWTH))
        index.expansion_search, self._fewest = width, int(_PROPOSED * width)
        if index.ndim != self._axes.columns:
            raise ValueError(f"{path.name}: the axes of the rows are not those of the graph")
        if len(np.unique(nodes)) < len(nodes) or int(nodes.max(initial=0)) >= max(size, 1):
            raise ValueError(f"{path.name}: the nodes of the rows are not those of the graph")
        self._rows = np.full(size, -1, np.int64)
        self._rows[nodes] = np.arange(len(nodes))
        self._whole = size == len(nodes)

    def near(self, vector: np.ndarray, count: int) -> np.ndarray:
        """Return more rows than `count`, or all there are, of those nearest by rounded distances.

        Args:
            vector: a unit vector.
            count: at most as many as there are rows.
        """
        import numpy as np

        wanted, rounded = max(proposed(count), self._fewest), self._axes.entry(vector)
        while True:
            # one entry is no work for several threads
            asked = min(wanted, len(self._rows))
            try:
                found = self._index.search(rounded, asked, threads=1).keys
                rows: np.ndarray = self._rows[found.astype(np.int64)]
            except (IndexError, RuntimeError) as error:  # the library's own of a file that is damaged
                raise IndexUnreadable(
                    f"the graph of the prose index cannot be read ({error})",
                    hint="run `chalie index --rebuild` to make it anew",
                ) from error
            if self._whole:
                return rows
            rows = rows[rows >= 0]
            if len(rows) >= count or asked == len(self._rows):
                return rows
            # what a package's last version said lies next to what it says now
            wanted *= 2
