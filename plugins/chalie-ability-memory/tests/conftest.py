"""An embedding small enough to reason about, and a context like the host's."""

from __future__ import annotations

import hashlib
import math
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

# The ability is tested from its source; it is installed only where a test is about installing.
sys.path.append(str(Path(__file__).parents[1] / "src"))

#: words that mean the same to the little model below.
SAME = {
    "physician": "doctor", "gp": "doctor", "puppy": "dog", "hound": "dog", "automobile": "car",
    "vehicle": "car", "beverage": "tea", "drink": "tea",
}  # fmt: skip


def model(salt: str = "", dims: int = 64) -> Callable[[Sequence[str]], list[list[float]]]:
    """Return an embedding: the mean of one pseudo-random direction per word, synonyms sharing theirs."""

    def direction(word: str) -> list[float]:
        seed = hashlib.shake_256(f"{salt}{SAME.get(word, word)}".encode()).digest(dims)
        return [byte / 127.5 - 1 for byte in seed]

    def embed(texts: Sequence[str]) -> list[list[float]]:
        rows = []
        for text in texts:
            words = re.findall(r"\w+", text.lower())
            total = [math.fsum(column) for column in zip(*map(direction, words), strict=True)] or [0.0] * dims
            length = math.hypot(*total) or 1.0
            rows.append([value / length for value in total])
        return rows

    return embed


@pytest.fixture
def make_memory(tmp_path: Path) -> Callable[..., Callable[..., Any]]:
    """Return a maker of memories: `memory = make_memory(principal)`, then `memory("store", text=…)`."""

    def make(principal: str = "ada", embed: Any = None) -> Callable[..., Any]:
        from chalie_ability_memory.ability import Memory

        def call(action: str, **params: Any) -> Any:
            context: Any = SimpleNamespace(
                principal=principal,
                conversation=None,
                channel="chat",
                client={},
                data_folder=tmp_path,
                embed=embed or model(),
            )
            return Memory().bind(context).run({"action": action, **params})

        return call

    return make


@pytest.fixture
def other_model() -> Callable[..., Any]:
    """Return the maker of embeddings, for tests about more than one."""
    return model
