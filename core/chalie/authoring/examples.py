"""The rule that an ability's examples find it: asked through the product's own search."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..calls import Sight
from ..catalogue.descriptor import Descriptor
from ..gate.display import escaped
from .finding import Finding, Subject, rule

if TYPE_CHECKING:
    from ..catalogue.tables import Contents

__all__ = ["RULES", "check"]

LOST: Final = rule("example-lost")
RULES: Final = (LOST,)


def check(subjects: Sequence[Subject], rivals: Iterable[Descriptor], model: Path) -> Iterator[Finding]:
    """Yield the examples that other abilities win.

    Args:
        subjects: whose examples are asked.
        rivals: what else is there to be found.
        model: the embedding model's folder.
    """
    from ..catalogue.generations import Generations
    from ..catalogue.publishing import publish
    from ..discovery import builders
    from ..discovery.cascade import Cascade
    from ..discovery.embedding import Embedder

    asked = [each for each in subjects if each.descriptor.examples and each.descriptor.discoverable]
    if not asked:
        return
    everything = _distinct([each.descriptor for each in subjects], rivals)
    with tempfile.TemporaryDirectory(prefix="chalie-lint-") as home:
        generation = publish(Generations(Path(home)), _contents(everything), builders(model))
        try:
            embedder = Embedder.open(model)
            cascade = Cascade(generation, lambda: embedder)
            for subject in asked:
                for number, example in enumerate(subject.descriptor.examples, 1):
                    found = cascade.find([example], "ability", lambda _: Sight())
                    order = [hit.item for hit in found.hits]
                    if order and order[0].key != subject.descriptor.key:
                        yield _lost(subject, number, example, order[0].name)
        finally:
            generation.snapshot.close()


def _lost(subject: Subject, number: int, example: str, winner: str) -> Finding:
    return Finding.of(
        LOST,
        subject,
        f"example {number}",
        f"the example {escaped(example)!r} of {subject.descriptor.name} finds {escaped(winner)} first",
        "say what only this tool does, or drop the example",
    )


def _distinct(own: Iterable[Descriptor], rivals: Iterable[Descriptor]) -> list[Descriptor]:
    """Return every ability once, what is linted before what is installed."""
    found: dict[tuple[str, str], Descriptor] = {}
    for item in (*own, *rivals):
        found.setdefault(item.key, item)
    return list(found.values())


def _contents(descriptors: Sequence[Descriptor]) -> Contents:
    from ..catalogue.tables import Contents, DistributionRow

    dists = sorted({item.dist for item in descriptors})
    rows = tuple(DistributionRow(dist, "0", "", "", "", False, "ready") for dist in dists)
    return Contents(distributions=rows, abilities=tuple(descriptors))
