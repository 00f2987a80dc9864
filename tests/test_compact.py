from __future__ import annotations

import json
from collections.abc import Mapping
from json import encoder
from typing import Any

import pytest
from chalie.compact import compact
from hypothesis import given
from hypothesis import strategies as st

KEYS = st.text(max_size=5) | st.integers() | st.booleans() | st.none() | st.floats()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3) | st.tuples(inner),
    max_leaves=8,
)


def by_json(value: Any, **how: Any) -> Any:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), **how)
    except (TypeError, ValueError) as error:
        return type(error), str(error)


def by_compact(value: Any, **how: Any) -> Any:
    try:
        return compact(**how)(value)
    except (TypeError, ValueError) as error:
        return type(error), str(error)


@given(VALUES, st.booleans())
def test_a_value_is_written_or_refused_as_json_dumps_does(value: Any, allow_nan: bool) -> None:
    assert by_compact(value, allow_nan=allow_nan) == by_json(value, allow_nan=allow_nan)
    assert by_compact(value, default=repr) == by_json(value, default=repr)


@given(VALUES)
def test_it_does_so_without_the_encoder_in_c(value: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoder, "c_make_encoder", None)
        assert by_compact(value) == by_json(value)


def test_a_cycle_ends_in_an_exception() -> None:
    value: dict[str, Any] = {}
    value["again"] = value
    with pytest.raises(RecursionError):
        compact()(value)


def test_a_mapping_that_is_no_dict_is_refused_as_json_refuses_it() -> None:
    class Own(Mapping[str, int]):
        def __getitem__(self, key: str) -> int:
            return 1

        def __iter__(self) -> Any:
            return iter("a")

        def __len__(self) -> int:
            return 1

    assert by_compact(Own()) == by_json(Own())
