from __future__ import annotations

import string

import pytest
from chalie.discovery import name_index
from chalie.discovery.name_index import Names
from chalie.errors import IndexUnreadable
from hypothesis import given
from hypothesis import strategies as st

from .conftest import Publish, ability, playbook

LETTERS = st.text(string.ascii_lowercase, min_size=1, max_size=14)


@pytest.mark.parametrize(
    ("entry", "name", "fits"),
    [
        ("search", "web_search", True),
        ("searching the web", "web_search", True),
        ("web searches", "WebSearch", True),
        ("rev", "review_tool_calls", True),
        ("all", "review_tool_calls", False),
        ("re", "review_tool_calls", False),
        ("what's the weather", "weather", True),
        ("weather in Valletta", "weather", False),
        ("please show me the tool", "show_tool", False),
        ("查询天气", "天气查询", False),
        ("天气", "天气查询", True),
        ("天", "天气查询", False),
        ("погода", "погода_сегодня", True),
        ("", "weather", False),
    ],
)
def test_words_admit_a_name_only_where_every_one_fits(entry: str, name: str, fits: bool) -> None:
    assert name_index.aligned(name_index.words_of(entry), name) is fits


@given(left=LETTERS, right=LETTERS, most=st.integers(0, 3))
def test_the_edit_distance_is_the_full_table_cut_at_its_bound(left: str, right: str, most: int) -> None:
    assert name_index.edit_distance(left, right, most) == min(full_distance(left, right), most + 1)


def full_distance(left: str, right: str) -> int:
    table = {(i, 0): i for i in range(len(left) + 1)} | {(0, j): j for j in range(len(right) + 1)}
    for i in range(1, len(left) + 1):
        for j in range(1, len(right) + 1):
            same = left[i - 1] == right[j - 1]
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (not same))
            if i > 1 and j > 1 and left[i - 1] == right[j - 2] and left[i - 2] == right[j - 1]:
                table[i, j] = min(table[i, j], table[i - 2, j - 2] + 1)
    return table[len(left), len(right)]


def test_short_entries_are_not_corrected() -> None:
    assert [name_index.edits_allowed("x" * size) for size in (1, 4, 5, 9, 10, 40)] == [0, 0, 1, 1, 2, 2]


def test_every_name_with_the_words_is_proposed_however_many(published: Publish) -> None:
    names = Names(published([ability(f"search_thing_{number}") for number in range(700)]))
    assert len(names.aligned(["search"], "ability")) == 700
    assert len(names.aligned(["thing", "search"], "ability")) == 700
    assert names.aligned(["search", "nothing"], "ability") == []


@given(
    name=st.lists(LETTERS, min_size=1, max_size=4).map("_".join),
    others=st.lists(LETTERS, max_size=5),
    phrase=st.booleans(),
    data=st.data(),
)
def test_the_index_proposes_whatever_the_words_admit(
    name: str, others: list[str], phrase: bool, data: st.DataObject
) -> None:
    # the index is asked for what `aligned` would admit: nothing that fits may be missing from its terms
    segment = data.draw(st.sampled_from(name.split("_")))
    for word in (segment, segment[:3], segment + "s", *others):
        if word and name_index.aligned([word], name, phrase=phrase):
            parts = name_index._parts(name_index.names.segments(name), "ability")
            assert parts.intersection(name_index._lookups(word, "ability", phrase))


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("wether", ["weather"]),
        ("waether", ["weather"]),
        ("weathers", ["weather"]),
        ("serch_memory", ["search_memory"]),
        ("Serach Memroy", ["search_memory"]),
        ("wthr", []),
        ("completely different", []),
    ],
)
def test_a_misspelt_name_is_proposed_within_its_edits(
    published: Publish, typed: str, found: list[str]
) -> None:
    abilities = [ability("weather"), ability("search_memory"), ability("leather_goods")]
    generation = published(abilities)
    letters = name_index.comparable(typed)
    edits = name_index.edits_allowed(letters or "")
    hits = Names(generation).similar(letters, edits, "ability") if letters and edits else []
    items = dict(generation.snapshot.abilities())
    assert [items[number].name for number, _ in hits] == found


def test_abilities_and_playbooks_are_kept_apart(published: Publish) -> None:
    names = Names(published([ability("plan_trip")], [playbook("plan-event", "")]))
    assert names.aligned(["plan"], "ability") == [1] and names.aligned(["plan"], "playbook") == [1]
    assert names.aligned(["trip"], "playbook") == []
    assert names.similar("plantrap", 1, "playbook") == []
    assert [number for number, _ in names.similar("plantrap", 1, "ability")] == [1]


def test_what_may_not_be_found_is_not_indexed(published: Publish) -> None:
    names = Names(published([ability("secret_thing", discoverable=False), ability("open_thing")]))
    assert len(names.aligned(["thing"], "ability")) == 1


def test_an_empty_catalogue_has_a_name_index(published: Publish) -> None:
    names = Names(published())
    assert names.aligned(["weather"], "ability") == [] and names.similar("weather", 1, "ability") == []


def test_a_damaged_index_is_said_before_the_library_reads_it(published: Publish) -> None:
    generation = published([ability("weather")])
    victim = sorted((generation.path / "names").glob("*.term"))[0]
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 1
    victim.write_bytes(data)
    with pytest.raises(IndexUnreadable, match="checksum"):
        Names(generation).aligned(["weather"], "ability")


def test_a_missing_index_is_said(published: Publish) -> None:
    generation = published([ability("weather")])
    for path in (generation.path / "names").iterdir():
        path.unlink()
    with pytest.raises(IndexUnreadable):
        Names(generation).aligned(["weather"], "ability")


def test_a_shortened_word_means_a_name_only_where_nothing_else_is_said() -> None:
    aligned = name_index.aligned
    assert aligned(["mess"], "send_message") and not aligned(["mess"], "send_message", phrase=True)
    assert aligned(["messages"], "send_message", phrase=True)
    assert aligned(["天气"], "查询天气预报", phrase=True)


def test_names_that_only_begin_like_a_word_of_a_phrase_are_not_even_read(published: Publish) -> None:
    names = Names(published([ability("functions"), ability("have_fun")]))
    assert names.aligned(["fun"], "ability") == [1, 2]
    assert len(names.aligned(["fun"], "ability", phrase=True)) == 1


@pytest.mark.parametrize(
    ("entry", "names_"),
    [
        # what the name has and the entry lacks counts most, then what the entry has and the name lacks
        ("library books search", ["search_library_books", "search_library", "search_library_books_archive"]),
        ("get project detail", ["get_project_detail", "project_detail", "get_project_detail_history"]),
        # of the same words those spelt alike
        ("search lawsuits", ["lawsuits_search", "lawsuit_search"]),
        ("search lawsuit", ["lawsuit_search", "lawsuits_search"]),
    ],
)
def test_the_name_that_fits_an_entry_best_comes_first(entry: str, names_: list[str]) -> None:
    said = entry.split()
    fits = {name: name_index.Misfit.of(said, name) for name in names_}
    assert min(fits, key=lambda name: fits[name]) == names_[0]
    assert len(set(fits.values())) == len(fits)
