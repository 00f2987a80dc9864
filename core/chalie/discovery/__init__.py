"""Finding abilities and playbooks by name or by meaning, offline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..catalogue.generations import IndexBuilder

__all__ = ["builders"]


def builders(model_folder: Path | None) -> tuple[IndexBuilder, ...]:
    """Return what builds a generation's indexes.

    Args:
        model_folder: as `embedding.model_folder` found it; None where there is no usable model: then
        there is no
            prose index, and searches say so.
    """
    from .name_index import NameIndex
    from .prose_index import ProseIndex

    return (NameIndex(),) if model_folder is None else (NameIndex(), ProseIndex(model_folder))
