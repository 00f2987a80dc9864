from __future__ import annotations

from collections import Counter

import numpy as np
from chalie.discovery import evidence
from chalie.discovery.evidence import Evidence
from hypothesis import given
from hypothesis import strategies as st

from .conftest import ability, playbook

WORDS = st.sampled_from(["rain", "sun", "wind", "mail", "send", "read", "file", "note", "list", "find"])
ITEMS = st.lists(st.lists(WORDS, max_size=8).map(Counter), min_size=1, max_size=12)


def opened(items: list[Counter[str]]) -> Evidence:
    return Evidence(evidence.postings(items), len(items))


@given(ITEMS, st.lists(WORDS, max_size=5, unique=True))
def test_evidence_speaks_only_for_rows_that_carry_a_word(
    items: list[Counter[str]], wanted: list[str]
) -> None:
    rows = np.arange(len(items))[::-1]
    scores = opened(items).of(wanted, rows)
    for row, score in zip(rows, scores, strict=True):
        assert (score > 0) == any(word in items[row] for word in wanted)


@given(ITEMS, st.lists(WORDS, min_size=1, max_size=5, unique=True))
def test_the_carried_share_is_that_of_the_entrys_weight(items: list[Counter[str]], wanted: list[str]) -> None:
    rows, shares = opened(items).carrying(wanted)
    assert list(shares) == sorted(shares, reverse=True)
    for row, share in zip(rows, shares, strict=True):
        assert 0 < share <= 1.0001
        assert (share > 0.999) == all(word in items[row] for word in wanted)


def test_a_rare_word_says_more_than_a_common_one() -> None:
    items = [Counter({"send": 1, "mail": 1}), Counter({"send": 1, "fax": 1}), *[Counter({"send": 1})] * 5]
    mail, fax = opened(items).of(["send", "fax"], np.array([0, 1]))
    assert fax > 2 * mail


def test_words_that_say_nothing_are_no_evidence() -> None:
    assert evidence.entry_terms("can you please show me all of the tools") == []
    assert evidence.entry_terms("what's the weather, the weather in Valletta?") == ["weather", "valletta"]


def test_names_parameters_actions_and_examples_all_carry_words() -> None:
    item = ability("sendMail", "Writes a letter.", examples=["drop a line to mum"], parameters=["recipient"])
    found = evidence.item_terms(item)
    assert {"send", "mail", "letter", "mum", "recipi"} <= set(found)
    assert found["mail"] > found["letter"]


def test_a_playbook_carries_its_title_description_and_text() -> None:
    found = evidence.item_terms(playbook("plan-a-trip", "Steps for travel", body="Compare the hotels"))
    assert found["trip"] > found["travel"] > found["hotel"] > 0


def test_a_schema_that_is_none_gives_no_words() -> None:
    from attrs import evolve

    for parameters in (
        {},
        {"properties": []},
        {"properties": {"x": 7}},
        {"properties": {"x": {"description": 5}}},
    ):
        assert evidence.item_terms(evolve(ability("a"), parameters=parameters))


def test_weights_that_no_count_gives_are_no_evidence_and_no_crash() -> None:
    arrays = evidence.postings([{"rain": 1.0}, {"sun": 1.0}])
    arrays["idf"] = -arrays["idf"]
    some = Evidence(arrays, 2)
    assert some.of(["rain"], np.arange(2)).tolist() == [0.0, 0.0]
    assert len(some.carrying(["rain"])[0]) == 0
