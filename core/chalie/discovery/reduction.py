"""Shorter vectors that keep the order of neighbours well enough to propose them.

A catalogue's vectors lie in fewer directions than they have columns. Their principal axes (Pearson 1901) keep
what tells them apart in a fraction of the columns, so that a search reads a fraction of the memory. What lies
near in them is a proposal: the whole vectors order and choose.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Axes"]

#: rows that axes are worked out from, evenly spread; more move them little and cost in proportion.
_SAMPLE: Final = 20_000
_BLOCK: Final = 16_384


class Axes:
    """Principal axes of some rows.

    Args:
        centre: the rows' mean, float32 (dims,).
        axes: unit columns, the one that tells the rows apart best first, float32 (dims, columns).
    """

    def __init__(self, centre: np.ndarray, axes: np.ndarray) -> None:
        self.centre, self.axes = centre, axes

    @classmethod
    def of(cls, rows: np.ndarray, columns: int) -> Axes:
        """Work them out; the same rows give the same axes.

        Args:
            rows: unit vectors of any float type, (n, dims).
            columns: how many axes, at most.
        """
        import numpy as np

        some = _sampled(rows)
        centre = some.mean(axis=0)
        some -= centre
        _, found = np.linalg.eigh((some.T @ some).astype(np.float64))
        # eigh gives them in ascending order of what they explain
        best = found[:, ::-1][:, :columns]
        return cls(centre, np.ascontiguousarray(best, np.float32))

    @classmethod
    def stored(cls, arrays: Mapping[str, np.ndarray], dims: int) -> Axes:
        """Return the axes that `arrays` made; `ValueError` where they are not for so many columns."""
        centre, axes = arrays["centre"], arrays["axes"]
        if centre.shape != (dims,) or axes.ndim != 2 or len(axes) != dims:
            raise ValueError("the reduced vectors' axes do not fit the vectors")
        return cls(centre, axes)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what `stored` reads."""
        return {"centre": self.centre, "axes": self.axes}

    @property
    def columns(self) -> int:
        """How many there are."""
        return int(self.axes.shape[1])

    def reduced(self, rows: np.ndarray) -> np.ndarray:
        """Return rows in these axes, float32 (n, columns)."""
        import numpy as np

        result = np.empty((len(rows), self.columns), np.float32)
        for start in range(0, len(rows), _BLOCK):
            part = rows[start : start + _BLOCK].astype(np.float32)
            np.matmul(part - self.centre, self.axes, out=result[start : start + _BLOCK])
        return result

    def entry(self, vector: np.ndarray) -> np.ndarray:
        """Return an entry's vector in these axes: its products with reduced rows order them as whole ones do.

        It is not centred, since the centre's product with it is the same for every row.
        """
        found: np.ndarray = vector @ self.axes
        return found

    def explains(self, rows: np.ndarray) -> float:
        """Return the share of the rows' variance that lies in these axes, 0 to 1."""
        some = _sampled(rows)
        inside = (some - self.centre) @ self.axes
        some -= some.mean(axis=0)
        whole = float((some * some).sum())
        inside -= inside.mean(axis=0)
        return float((inside * inside).sum()) / whole if whole > 0.0 else 1.0


def _sampled(rows: np.ndarray) -> np.ndarray:
    import numpy as np

    found: np.ndarray = rows[:: -(-len(rows) // _SAMPLE) or 1].astype(np.float32)
    return found
