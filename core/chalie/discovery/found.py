"""What a search answers: hits, misses with their reason, and the rungs that were lost."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from ..catalogue.descriptor import Descriptor, Playbook

__all__ = ["Found", "Hit", "Item", "Miss", "Reason", "Rung"]

Item = Descriptor | Playbook
Rung = Literal["exact", "name", "prose"]
Reason = Literal["no-match", "ambiguous", "unsupported-language", "unavailable", "hidden", "index-unreadable"]


@frozen
class Hit:
    """One ability or playbook that answers an entry.

    Attributes:
        item: what was found.
        entry: the entry it answers, as it was asked.
        rung: the rung that found it.
        distance: 1 - cosine of entry and item (0 to 2); None on the rungs that measure no distance.
        not_allowed: the line that would allow it, where it may be found but not called from here.
        ceiling: the distance up to which this item answers this entry; None where none is measured.
        read_as: the entry with its misspelt words put right, where it was found by that.
    """

    item: Item
    entry: str
    rung: Rung
    distance: float | None = None
    not_allowed: str | None = None
    ceiling: float | None = None
    read_as: str | None = None


@frozen
class Miss:
    """One entry that found nothing.

    Attributes:
        entry: the entry, as it was asked.
        reason: why; `no-match` only where everything was searched.
        owners: the qualified names to choose from, where the reason is `ambiguous`.
    """

    entry: str
    reason: Reason
    owners: tuple[str, ...] = ()


@frozen
class Found:
    """The union over all entries, in the order asked, each item once.

    Attributes:
        hits: what was found.
        misses: the entries that found nothing.
        degraded: the rungs that could not be asked (`exact`, `name`, `prose`).
        causes: for people, why each of them could not.
    """

    hits: tuple[Hit, ...]
    misses: tuple[Miss, ...]
    degraded: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
