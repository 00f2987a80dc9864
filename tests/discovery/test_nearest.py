from __future__ import annotations

from pathlib import Path

import numkong
import numpy as np
import pytest
from chalie.discovery import nearest, reduction, scan
from chalie.discovery.nearest import Nearest
from hypothesis import given
from hypothesis import strategies as st

NOWHERE = Path("no graph")


def rows_of(chance: np.random.Generator, count: int, dims: int = 384) -> np.ndarray:
    """Unit vectors in heaps, with less in each direction than in the one before, as of a language."""
    spread = 0.985 ** np.arange(dims)
    heaps = np.random.default_rng(1).normal(size=(60, dims)) * spread
    rows = heaps[chance.integers(60, size=count)] + 0.7 * chance.normal(size=(count, dims)) * spread
    unit: np.ndarray = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
    return unit


def arrays_of(rows: np.ndarray) -> dict[str, np.ndarray]:
    return {"vectors": rows, **nearest.written(rows, NOWHERE, None)}


def test_a_scan_of_reduced_vectors_gives_the_neighbours_that_whole_ones_have() -> None:
    rows = rows_of(np.random.default_rng(2), 6_000)
    arrays = arrays_of(rows)
    assert arrays["reduced"].shape == (6_000, 192) and arrays["reduced"].dtype == np.int8
    some = Nearest(arrays, NOWHERE)
    right = 0
    for vector in rows_of(np.random.default_rng(3), 100).astype(np.float32):
        found, distances = some.nearest(vector, 50, None)
        cosines = rows.astype(np.float32) @ vector
        right += len({*found[:10].tolist()} & {*(-cosines).argsort()[:10].tolist()})
        assert np.allclose(distances, 1.0 - cosines[found], atol=1e-6)
        assert (np.diff(distances) >= 0).all()
    assert right >= 0.98 * 1_000


def test_a_catalogue_made_of_few_templates_keeps_its_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(12)
    # three heaps far apart, told apart within by little: the first axes hold what eight bits must not cut off
    heaps = np.linalg.qr(chance.normal(size=(384, 3)))[0].T
    # along its heap a row lies more or less far out, so that what is cut off is what tells rows apart
    rows = heaps[chance.integers(3, size=4_000)] * chance.uniform(0.6, 1.4, (4_000, 1))
    ways = np.linalg.qr(chance.normal(size=(384, 100)))[0].T
    rows = rows + 0.05 * chance.normal(size=(4_000, 100)) @ ways
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
    asked = rows[:100].astype(np.float32)

    def recall() -> float:
        some, right = Nearest(arrays_of(rows), NOWHERE), 0
        for vector in asked:
            cosines = rows.astype(np.float32) @ vector
            right += len(
                {*some.nearest(vector, 32, None)[0][:10].tolist()} & {*(-cosines).argsort()[:10].tolist()}
            )
        return right / 1_000

    whole = recall()
    monkeypatch.setattr(reduction, "_REACH", 1 / 6)
    assert whole > recall() and whole >= 0.95


def test_a_scan_asked_for_everything_leaves_nothing_out() -> None:
    rows = rows_of(np.random.default_rng(4), 3_200)
    some, vector = Nearest(arrays_of(rows), NOWHERE), rows[7].astype(np.float32)
    assert sorted(some.nearest(vector, 3_200, None)[0].tolist()) == list(range(3_200))
    among = np.arange(100, 3_200)
    assert sorted(some.nearest(vector, 9_999, among)[0].tolist()) == among.tolist()


def test_rows_that_are_all_alike_are_found_like_any_others() -> None:
    rows = np.repeat(rows_of(np.random.default_rng(5), 1), 3_500, axis=0)
    found, distances = Nearest(arrays_of(rows), NOWHERE).nearest(rows[0].astype(np.float32), 5, None)
    assert len(set(found.tolist())) == 5
    assert distances == pytest.approx(0.0, abs=2e-3)


def test_vectors_of_few_columns_are_reduced_to_as_many() -> None:
    rows = rows_of(np.random.default_rng(6), 3_100, dims=16)
    arrays = arrays_of(rows)
    assert arrays["reduced"].shape == (3_100, 16)
    vector = rows[3].astype(np.float32)
    found, _ = Nearest(arrays, NOWHERE).nearest(vector, 5, None)
    assert found.tolist() == (-(rows.astype(np.float32) @ vector)).argsort(kind="stable")[:5].tolist()


@pytest.mark.parametrize("name", ["reduced", "axes", "centre"])
def test_reduced_vectors_that_do_not_fit_the_vectors_are_refused(name: str) -> None:
    arrays = arrays_of(rows_of(np.random.default_rng(7), 3_100))
    with pytest.raises(ValueError, match=r"do not fit the vectors|differ in number"):
        Nearest({**arrays, name: arrays[name][:-1]}, NOWHERE)


@given(
    values=st.lists(st.integers(-2000, 2000), min_size=1, max_size=300),
    least=st.integers(1, 300),
    more=st.integers(0, 100),
    ascending=st.booleans(),
)
def test_the_highest_are_never_left_out_for_lower_ones_and_never_too_few(
    values: list[int], least: int, more: int, ascending: bool
) -> None:
    given_ = np.array(sorted(values) if ascending else values, np.int32)
    places = scan._highest(given_, least, least + more)
    assert (np.diff(places) > 0).all()
    assert len(places) >= min(least, len(given_))
    left = np.delete(given_, places)
    assert not len(left) or left.max() <= given_[places].min()


@given(st.lists(st.integers(0, 2**16 - 1), max_size=64))
def test_halves_become_the_floats_that_numpy_makes_of_them(bits: list[int]) -> None:
    halves = np.array([bits], np.uint16).view(np.float16)
    assert np.array_equal(nearest._floats(halves), halves.astype(np.float32), equal_nan=True)


@pytest.mark.parametrize("columns", [1, 7, 64, 192])
def test_a_scan_multiplies_whole_numbers_exactly(columns: int) -> None:
    chance = np.random.default_rng(11)
    rows = chance.integers(-128, 128, (500, columns)).astype(np.int8)
    entry = chance.integers(-128, 128, (1, columns)).astype(np.int8)
    products = np.asarray(numkong.dots_packed(entry, numkong.dots_pack(rows)))
    assert np.array_equal(products, entry.astype(np.int32) @ rows.astype(np.int32).T)


@pytest.mark.parametrize("count", [0, 1, 3_000, 9_001])
def test_products_in_pieces_are_those_of_the_whole(count: int) -> None:
    rows = rows_of(np.random.default_rng(8), count).astype(np.float32)
    vector = rows_of(np.random.default_rng(9), 1)[0].astype(np.float32)
    assert np.allclose(nearest._products(rows, vector), rows @ vector, atol=1e-6)
