from __future__ import annotations

import re
import unicodedata

import pytest
from chalie.errors import NameRefused
from chalie.names import RESERVED, alias, check_name, disguised, normal, qualified, segments, short, shown
from hypothesis import given
from hypothesis import strategies as st

TEXT = st.text(st.characters(), max_size=40)  # surrogates included


@pytest.mark.parametrize(
    "spelling",
    ["webSearch", "WebSearch", "web_search", "web-search", "Web Search", "WEB.SEARCH", "ｗｅｂ＿search"],
)
def test_spellings_of_one_name_have_one_normal_form(spelling: str) -> None:
    assert normal(spelling) == "websearch"


def test_a_hidden_character_makes_no_other_name() -> None:
    assert normal("web\u200bsearch\u202e") == "websearch"


@given(TEXT)
def test_the_normal_form_of_a_normal_form_is_itself(text: str) -> None:
    assert normal(normal(text)) == normal(text)


@given(TEXT)
def test_case_and_separators_never_change_the_normal_form(text: str) -> None:
    assert normal(f"-{text.casefold()} _") == normal(text.casefold())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("getHTTPResponse2", ("get", "http", "response2")),
        ("get_http-response2", ("get", "http", "response2")),
        ("admin.tools/list", ("admin", "tools", "list")),
        ("s3_upload", ("s3", "upload")),
        ("2fa", ("2", "fa")),
        ("HTML", ("html",)),
        ("ABTest", ("ab", "test")),
        ("погодаСейчас", ("погода", "сейчас")),
        ("天气_查询", ("天气", "查询")),
        ("हिन्दी खोज", ("हिन्दी", "खोज")),
        ("größeMessen", ("grösse", "messen")),
        ("", ()),
        ("--__ ", ()),
    ],
)
def test_a_name_falls_into_its_words(name: str, words: tuple[str, ...]) -> None:
    assert segments(name) == words


@given(TEXT)
def test_segments_take_any_text_and_are_never_empty(text: str) -> None:
    assert all(segments(text)) or segments(text) == ()


@given(st.lists(st.from_regex(r"[a-z]{1,6}", fullmatch=True), min_size=1, max_size=5))
def test_words_come_back_from_every_way_to_join_them(words: list[str]) -> None:
    expected = tuple(words)
    assert segments("_".join(words)) == segments("-".join(words)) == segments(" ".join(words)) == expected


@pytest.mark.parametrize("name", ["a", "weather", "web_search2", "a" * 64])
def test_a_plain_name_is_accepted(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "an empty text is no name"),
        ("Weather", "Weather is no name"),
        ("2fa", "2fa is no name"),
        ("user/update", "user/update is no name"),
        ("admin.tools.list", "is no name"),
        ("a" * 65, "is no name"),
        ("weather\n", r"weather\\u000a is no name"),
        ("get__it", "holds __"),
        ("find_tools", "belongs to the host"),
        ("_mcp_files_read", "belongs to the host"),
    ],
)
def test_an_illegal_name_is_refused_and_the_refusal_says_why(name: str, said: str) -> None:
    with pytest.raises(NameRefused, match=said) as caught:
        check_name(name)
    assert caught.value.hint


def test_every_reserved_name_is_refused() -> None:
    assert {"find_tools", "find_skills", "read_result"} == RESERVED
    for name in RESERVED:
        with pytest.raises(NameRefused):
            check_name(name)


def test_a_name_that_is_no_text_is_refused() -> None:
    with pytest.raises(NameRefused, match="not int"):
        check_name(7)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("dist", "called"),
    [
        ("chalie-ability-weather", "weather"),
        ("Chalie_Ability.Web-Search", "web_search"),
        ("acme-tools", "acme_tools"),
        ("chalie-ability-", "chalie_ability"),
    ],
)
def test_a_distribution_has_a_short_name(dist: str, called: str) -> None:
    assert short(dist) == called


def test_two_owners_of_a_name_are_told_apart_by_package() -> None:
    assert qualified("chalie-ability-weather", "forecast") == "weather__forecast"
    assert qualified("weather", "forecast") == "weather__forecast"
    assert qualified("chalie-ability-weather", "forecast", whole=True) == "chalie_ability_weather__forecast"


@given(st.text(min_size=1, max_size=120))
def test_every_name_has_an_alias_that_model_apis_accept(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", alias(name))


@given(st.lists(st.text(st.sampled_from("ab./_-0é"), min_size=1, max_size=80), unique=True, max_size=20))
def test_different_names_have_different_aliases(names: list[str]) -> None:
    assert len({alias(name) for name in names}) == len(names)


def test_an_accepted_name_is_its_own_alias_and_others_are_cut_and_marked() -> None:
    assert alias("weather__forecast") == "weather__forecast"
    assert re.fullmatch(r"admin_tools_list-[0-9a-f]{8}", alias("admin.tools.list"))
    assert alias("user/update") != alias("user.update")
    assert len(alias("x" * 200)) == 64
    assert alias("x" * 200) != alias("x" * 201)


def test_nobody_can_take_the_alias_of_another_name() -> None:
    taken = alias("admin.tools.list")
    assert alias(taken) != taken


def test_an_empty_name_has_no_alias() -> None:
    with pytest.raises(NameRefused):
        alias("")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("r\u0435ad_file", "mixes the scripts Cyrillic, Latin"),
        ("ｒｅａｄ", "full-width"),
        ("read\u202efile", r"U\+202E"),
        ("read\u200bfile", r"U\+200B"),
        ("read file", r"U\+0020"),
        ("read\x00", r"U\+0000"),
        ("\ud800", r"U\+D800"),
        ("α_beta", "Greek, Latin"),
        ("v1٢", "several kinds of digits"),
        ("", "empty"),
    ],
)
def test_a_name_that_hides_what_it_is_is_flagged(name: str, why: str) -> None:
    reason = disguised(name)
    assert reason is not None and re.search(why, reason)


@pytest.mark.parametrize(
    "name", ["read_file", "admin.tools/list", "погода", "天気予報_tool", "날씨", "größe"]
)
def test_a_plain_name_in_any_script_is_not_flagged(name: str) -> None:
    assert disguised(name) is None
    assert shown(name) == name


def test_whole_names_of_look_alike_letters_are_shown_escaped() -> None:
    cyrillic = "сору"
    assert disguised(cyrillic) is None
    assert shown(cyrillic) == "\\u0441\\u043e\\u0440\\u0443"
    assert shown("copy") == "copy"


def test_a_name_that_spells_out_an_escape_is_not_shown_as_what_it_spells() -> None:
    assert shown("\u0435") == "\\u0435"
    assert shown("\\u0435") == "\\\\u0435"


def test_names_that_differ_only_in_case_are_one_name_and_are_shown_apart() -> None:
    assert normal("ReadFile") == normal("readfile")
    assert shown("ReadFile") != shown("readfile")


@given(TEXT, TEXT)
def test_different_names_are_never_shown_alike(one: str, other: str) -> None:
    assert (shown(one) == shown(other)) == (one == other)


@given(st.text(min_size=1, max_size=10))
def test_the_composed_and_decomposed_form_are_shown_apart(text: str) -> None:
    decomposed = unicodedata.normalize("NFD", text)
    assert (shown(text) == shown(decomposed)) == (text == decomposed)


@given(TEXT)
def test_what_is_shown_can_be_printed_anywhere(text: str) -> None:
    assert all(character.isprintable() for character in shown(text))
    shown(text).encode()
