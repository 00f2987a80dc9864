"""What is known of each row, kept beside the vectors: a hit is read without a query to the catalogue.

A query for five rows takes the catalogue as long as comparing ten thousand vectors. Both are of one
generation, which never changes, so that they always say the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Cards", "written"]


def written(texts: Iterable[str]) -> dict[str, np.ndarray]:
    """Return the texts of all rows as `cards`, and where each begins and the last ends as `card_places`."""
    import numpy as np

    cards, places = bytearray(), [0]
    for text in texts:
        cards += text.encode()
        places.append(len(cards))
    return {"cards": np.frombuffer(cards, np.uint8), "card_places": np.array(places, np.int64)}


class Cards:
    """The texts of one index, mapped from its file.

    Args:
        arrays: as `written` made them.
        total: the rows there are.

    Raises:
        ValueError: the arrays do not fit each other.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], total: int) -> None:
        self._cards, self._places = arrays["cards"], arrays["card_places"]
        if len(self._places) != total + 1 or self._places[-1] != len(self._cards):
            raise ValueError("the cards do not fit the rows")

    def texts(self, rows: np.ndarray) -> list[str]:
        """Return the text of each row."""
        starts, ends = self._places.take(rows).tolist(), self._places.take(rows + 1).tolist()
        return [str(self._cards[start:end].data, "utf-8") for start, end in zip(starts, ends, strict=True)]
