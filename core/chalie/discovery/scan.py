"""Proposes the nearest rows by comparing the shortened vector of every one.

A whole vector takes a kilobyte, a shortened one 192 bytes that the processor multiplies many at a time, so
that some ten thousand are compared in the time that takes to read a hundred whole ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from .reduction import Axes, proposed

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Scan", "write"]

#: of so many values one is looked at to tell how high the highest are.
_STRIDE: Final = 8


def write(rows: np.ndarray) -> dict[str, np.ndarray]:
    """Return what `Scan` reads: the shortened rows and their axes.

    Args:
        rows: unit vectors as they are stored, float16 (n, dims).
    """
    axes = Axes.of(rows)
    return {**axes.arrays(), "reduced": axes.reduced(rows)}


class Scan:
    """The shortened vectors of one index, in use.

    Args:
        arrays: what `write` returned.
        total: how many rows there are.
        dims: columns of a whole vector.

    Raises:
        ValueError: the arrays do not fit each other.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], total: int, dims: int) -> None:
        import numkong

        self._axes, reduced = Axes.stored(arrays, dims), arrays["reduced"]
        if reduced.shape != (total, self._axes.columns) or reduced.dtype.str[1:] != "i1":
            raise ValueError("the reduced vectors and the vectors differ in number")
        self._packed = numkong.dots_pack(reduced)

    def near(self, vector: np.ndarray, count: int, among: np.ndarray | None = None) -> np.ndarray:
        """Return `count` rows or more, ascending: the `count` nearest are very nearly always among them.

        Args:
            vector: a unit vector, float32 (dims,).
            count: how many are wanted.
            among: the only rows that count, ascending; None for all.
        """
        import numkong
        import numpy as np

        # numkong works on this thread alone; a second one of BLAS's is waited for on a busy machine
        alike = np.asarray(numkong.dots_packed(self._axes.entry(vector)[None], self._packed))[0]
        if among is None:
            return _highest(alike, count, proposed(count))
        rows: np.ndarray = among[_highest(alike[among], count, proposed(count))]
        return rows


def _highest(values: np.ndarray, least: int, aimed: int) -> np.ndarray:
    """Return the places, ascending, of the highest: `least` to four times `aimed`, if there are so many."""
    import numpy as np

    if aimed >= len(values):
        return np.arange(len(values))
    some, share = values[::_STRIDE].copy(), max(1, aimed // _STRIDE)
    for tried in (share, 2 * share):
        if tried <= len(some):
            some.partition(len(some) - tried)
            places: np.ndarray = (values >= some[-tried]).nonzero()[0]
            if least <= len(places) <= 4 * aimed:
                return places
    # the few looked at were not like the others
    return np.sort(values.argpartition(len(values) - aimed)[-aimed:])
