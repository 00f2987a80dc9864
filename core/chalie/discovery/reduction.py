"""Shortened vectors that keep the order of neighbours well enough to propose them.

A catalogue's vectors lie in fewer directions than they have columns. Their principal axes (Pearson 1901) keep
what tells them apart in a fraction of the columns, and eight bits are enough for each, so that a search reads
a fifth of the memory. What lies near in them is a proposal: the whole vectors order and choose.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Axes", "proposed"]

#: columns of a shortened vector: with so many, 99 in a hundred of the ten nearest are among those proposed.
_COLUMNS: Final = 192
#: reduced vectors hold values about 0.05, but the first few of a catalogue made of few templates lie far out.
#: Eight bits are spent on up to so much; on up to a third, such a catalogue lost six of a hundred neighbours.
_REACH: Final = 3 / 4
_EIGHT_BITS: Final = 127
#: proposed for each row that is wanted, and at least, since shortened vectors misplace some.
_PROPOSED, _FEWEST = 1.6, 64

#: rows that axes are worked out from, evenly spread; more move them little and cost in proportion.
_SAMPLE: Final = 20_000
_BLOCK: Final = 16_384


def proposed(count: int) -> int:
    """Return how many rows to propose where `count` are wanted."""
    return max(int(_PROPOSED * count), _FEWEST)


class Axes:
    """Principal axes of some rows.

    Args:
        centre: the rows' mean, float32 (dims,).
        axes: unit columns, the one that tells the rows apart best first, float32 (dims, columns).
    """

    def __init__(self, centre: np.ndarray, axes: np.ndarray) -> None:
        self.centre, self.axes = centre, axes

    @classmethod
    def of(cls, rows: np.ndarray) -> Axes:
        """Work them out; the same rows give the same axes.

        Args:
            rows: unit vectors of any float type, (n, dims).
        """
        import numpy as np

        some = _sampled(rows)
        centre = some.mean(axis=0)
        some -= centre
        _, found = np.linalg.eigh((some.T @ some).astype(np.float64))
        # eigh gives them in ascending order of what they explain
        best = found[:, ::-1][:, :_COLUMNS]
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
        """Return rows in these axes, int8 (n, columns)."""
        import numpy as np

        result = np.empty((len(rows), self.columns), np.int8)
        for start in range(0, len(rows), _BLOCK):
            part = (rows[start : start + _BLOCK].astype(np.float32) - self.centre) @ self.axes
            part *= _EIGHT_BITS / _REACH
            result[start : start + _BLOCK] = np.rint(part.clip(-_EIGHT_BITS, _EIGHT_BITS))
        return result

    def entry(self, vector: np.ndarray) -> np.ndarray:
        """Return an entry's vector in these axes, int8 (columns,).

        Its products with reduced rows order them as the whole vectors' do. It is not centred, since the
        centre's product with it is the same for every row, and as long as eight bits allow, since its length
        changes no order.
        """
        import numpy as np

        found = vector @ self.axes
        most = float(np.abs(found).max(initial=0.0))
        result: np.ndarray = np.rint(found * (_EIGHT_BITS / most if most > 0.0 else 0.0)).astype(np.int8)
        return result

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
