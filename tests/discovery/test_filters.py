from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from chalie.calls import Sight
from chalie.catalogue.generations import Generation
from chalie.discovery import nearest
from chalie.discovery.cascade import Cascade, Item
from chalie.discovery.embedding import Embedder
from chalie.discovery.prose_index import Prose

from .conftest import Publish, ability, everything

ENTRY = "write a message to my dear friend in the town"


@pytest.fixture
def many(published: Publish) -> Generation:
    return published(
        [ability(f"tool_{number:03}", f"Send mail number {number} to a friend.") for number in range(300)]
    )


#: rows up to which all vectors are compared, and all reduced ones.
WAYS = {
    "exact": (3_000, 3_000),
    "scan": (10, 3_000),
    "scan and small sets exact": (40, 3_000),
    "graph": (10, 10),
    "graph and small sets exact": (40, 40),
}


@pytest.fixture(params=WAYS.values(), ids=WAYS.keys())
def rows_compared(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    exact, scanned = request.param
    monkeypatch.setattr(nearest, "EXACT_ROWS", exact)
    monkeypatch.setattr(nearest, "SCANNED_ROWS", scanned)
    return int(exact)


def ids_of(generation: Generation, wanted: Callable[[str], bool]) -> np.ndarray:
    return np.array([number for number, item in generation.snapshot.abilities() if wanted(item.name)])


@pytest.mark.parametrize("share", [2, 10, 25, 100])
def test_only_what_is_allowed_is_looked_at_and_all_of_it_is_found(
    rows_compared: int, published: Publish, embedder: Embedder, share: int
) -> None:
    generation = published(
        [ability(f"tool_{number:03}", f"Send mail number {number} to a friend.") for number in range(300)]
    )
    allowed = ids_of(generation, lambda name: int(name[-3:]) % share == 0)
    asked: list[str] = []

    def sight(item: Item) -> Sight:
        asked.append(item.name)
        return Sight()

    some = Cascade(generation, lambda: embedder, ceiling=math.inf)
    found = some.find([ENTRY], "ability", sight, allowed=allowed)
    assert len(found.hits) == min(5, len(allowed))
    assert all(int(hit.item.name[-3:]) % share == 0 for hit in found.hits)
    assert asked == [hit.item.name for hit in found.hits]


@pytest.mark.parametrize("share", [2, 7, 60])
def test_a_filter_changes_no_distance_and_no_order(
    rows_compared: int, published: Publish, embedder: Embedder, share: int
) -> None:
    verbs = ("send", "print", "archive", "translate", "rate", "share", "export")
    kinds = ("invoice", "flight", "recipe", "song", "patient", "parcel", "contract", "meeting", "lamp")
    generation = published(
        [ability(f"{verb}_{kind}", f"{verb.title()} a {kind}.") for kind in kinds for verb in verbs]
    )
    prose = Prose(generation, "ability")
    vector = embedder.embed(["translate the contract"])[0]
    among = np.arange(0, len(prose), share)
    rows, distances = prose.nearest(vector, 5, among)
    everywhere, all_distances = prose.nearest(vector, len(prose))
    kept = np.isin(everywhere, among)
    assert rows.tolist() == everywhere[kept][:5].tolist()
    assert distances == pytest.approx(all_distances[kept][:5], abs=2e-3)


def test_ids_the_index_does_not_have_are_no_rows(many: Generation) -> None:
    prose = Prose(many, "ability")
    known = prose.ids(np.arange(3))
    assert prose.rows(np.array([*known, known[-1] + 100_000])).tolist() == [0, 1, 2]
    assert prose.rows(np.zeros(0, np.int64)).tolist() == []


def test_what_only_a_setting_hides_is_said_to_be_hidden(many: Generation, embedder: Embedder) -> None:
    some = Cascade(many, lambda: embedder)
    entry = "send some mail to my dear friend"
    assert some.find([entry], "ability", everything).hits
    nothing = np.zeros(0, np.int64)
    (miss,) = some.find([entry], "ability", everything, allowed=nothing).misses
    assert miss.reason == "hidden"
    (miss,) = some.find(["compose a symphony for strings"], "ability", everything, allowed=nothing).misses
    assert miss.reason == "no-match"
