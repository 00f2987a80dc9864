from __future__ import annotations

import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from chalie.calls import Sight
from chalie.catalogue.snapshot import Snapshot
from chalie.discovery.cards import Cards
from chalie.discovery.cascade import Cascade, Item
from chalie.discovery.embedding import Embedder
from chalie.discovery.found import Miss
from chalie.errors import ConfigError
from hypothesis import given
from hypothesis import strategies as st

from .conftest import Publish, ability, everything, names_of, playbook

Make = Callable[..., Cascade]

WEATHER = ability(
    "weather",
    "Get current weather and tomorrow's forecast for a city.",
    examples=["what's the weather like today", "will it rain tomorrow", "do I need a jacket"],
    parameters=["location"],
)
EMAIL = ability("email", "Read, search, send and reply to mail.", examples=["did Tom write back"])
WEB_SEARCH = ability("web_search", "Research something online.", examples=["find reviews of a phone"])
REVIEW = ability("review_tool_calls", "Look over what tools were called and how it went.")
CALENDAR = ability("calendar_today", "Show the events of the day.", examples=["what's on my calendar"])
SOME = (WEATHER, EMAIL, WEB_SEARCH, REVIEW, CALENDAR)


def only_miss(cascade: Cascade, entry: str, sight: Callable[[Item], Sight] = everything) -> Miss:
    found = cascade.find([entry], "ability", sight)
    assert found.hits == ()
    (miss,) = found.misses
    assert miss.entry == entry
    return miss


@pytest.mark.parametrize(
    "entry", ["weather", "Weather", " WEATHER ", "web search", "webSearch", "Web-Search"]
)
def test_a_name_is_found_in_any_spelling_of_it(cascade: Make, entry: str) -> None:
    found = cascade(*SOME).find([entry], "ability", everything)
    (hit,) = found.hits
    assert hit.rung == "exact" and hit.distance is None and hit.entry == entry


def test_a_word_of_a_name_finds_it_and_a_part_of_a_word_does_not(cascade: Make) -> None:
    some = cascade(*SOME, ceiling=0.0)
    assert names_of(some, "search") == ["web_search"]
    assert names_of(some, "searching") == ["web_search"]
    assert "review_tool_calls" not in names_of(some, "all")


def test_a_misspelt_name_finds_it(cascade: Make) -> None:
    some = cascade(*SOME)
    assert names_of(some, "wether") == ["weather"]
    assert names_of(some, "web_saerch") == ["web_search"]


def test_a_described_action_is_found_by_meaning_with_its_distance(cascade: Make) -> None:
    found = cascade(*SOME).find(
        ["is there a way to check if it rains in another city"], "ability", everything
    )
    assert found.hits[0].item.name == "weather" and found.hits[0].rung == "prose"
    assert 0.0 < (found.hits[0].distance or 0.0) < 1.0


def test_a_sentence_that_merely_holds_a_tools_word_is_answered_by_meaning(cascade: Make) -> None:
    found = cascade(*SOME).find(["did anybody send me an email about the invoice"], "ability", everything)
    assert {hit.rung for hit in found.hits} == {"prose"}


def test_the_union_holds_each_item_once_in_the_order_asked(cascade: Make) -> None:
    found = cascade(*SOME).find(["email", "weather", "Weather", "the weather"], "ability", everything)
    assert [hit.item.name for hit in found.hits] == ["email", "weather"] and found.misses == ()


def test_a_bare_name_of_two_owners_is_refused_and_both_are_named(cascade: Make) -> None:
    twins = [
        ability("forecast", "One.", dist="chalie-ability-sun"),
        ability("forecast", "Two.", dist="rainy-tools"),
    ]
    some = cascade(*twins)
    miss = only_miss(some, "forecast")
    assert miss.reason == "ambiguous" and miss.owners == ("rainy_tools__forecast", "sun__forecast")
    (hit,) = some.find(["sun__forecast"], "ability", everything).hits
    assert hit.item.dist == "chalie-ability-sun"


def test_a_name_that_only_one_visible_package_owns_is_not_ambiguous(cascade: Make) -> None:
    twins = [ability("forecast", "One.", dist="a"), ability("forecast", "Two.", dist="b")]
    found = cascade(*twins).find(["forecast"], "ability", lambda item: Sight(hidden=item.dist == "a"))
    assert [hit.item.dist for hit in found.hits] == ["b"]


def test_twins_in_normal_form_are_told_apart_by_their_spelling(cascade: Make) -> None:
    some = cascade(ability("get_user", "One."), ability("getUser", "Two."))
    assert names_of(some, "getUser") == ["getUser"] and names_of(some, "get_user") == ["get_user"]
    assert sorted(names_of(some, "Get-User")) == ["getUser", "get_user"]


def test_of_names_equally_misspelt_the_one_joined_and_cased_alike_comes_first(cascade: Make) -> None:
    some = cascade(*(ability(name) for name in ("get.parcel_state", "GET_PARCEL_STATE", "getParcelState")))
    assert names_of(some, "getParcelSttae")[0] == "getParcelState"
    assert names_of(some, "GET_PARCEL_STAT3")[0] == "GET_PARCEL_STATE"
    # cut in other places it is still made of the letters of all three
    assert names_of(some, "ge.tparcel_state") == ["get.parcel_state", "getParcelState", "GET_PARCEL_STATE"]


def test_a_long_name_with_a_typo_is_a_name_and_no_sentence(cascade: Make) -> None:
    meant, other = (
        ability(f"usage_api.UsageApi.get_hosts_per_{span}", f"Get the hosts of a {span}.")
        for span in ("day", "month")
    )
    assert names_of(cascade(meant, other), "usage_api.UsageApi.get_hosts_per_dya") == [meant.name]


def test_a_word_said_as_often_as_a_name_has_it_means_that_name(cascade: Make) -> None:
    some = cascade(ability("weather.get"), ability("Weather_1_GetWeather"), ability("weather_forecast"))
    assert names_of(some, "weather weather")[0] == "Weather_1_GetWeather"
    assert names_of(some, "weather get")[0] == "weather.get"


def test_the_name_that_was_said_whole_comes_before_longer_ones(cascade: Make) -> None:
    some = cascade(ability("team_score_get_latest"), ability("get_team_score"), ability("score_board"))
    assert names_of(some, "team score get") == ["get_team_score", "team_score_get_latest"]
    assert names_of(some, "please get me the team score")[0] == "get_team_score"


def test_near_duplicates_of_two_packages_both_appear(cascade: Make) -> None:
    twins = [ability("forecast", "Will it rain tomorrow.", dist=dist) for dist in ("a", "b")]
    found = cascade(*twins).find(["tell me whether rain is expected tomorrow"], "ability", everything)
    assert sorted(hit.item.dist for hit in found.hits) == ["a", "b"]


def test_nothing_found_says_no_match(cascade: Make) -> None:
    some = cascade(*SOME)
    for entry in ("", "   ", "?!", "a", "totally_made_up_thing", "the of and", "x" * 5000, "\x00"):
        assert only_miss(some, entry).reason == "no-match", entry


def test_small_talk_is_answered_by_nothing(cascade: Make) -> None:
    some = cascade(*SOME)
    for entry in ("thanks, that was nice", "how are you", "count to ten", "tell me a joke", "I love you"):
        assert only_miss(some, entry).reason == "no-match", entry


def test_a_short_question_finds_its_tool_where_few_are_installed(cascade: Make) -> None:
    memory = ability("memory", "Remember facts about the user and recall them.", parameters=["text", "topic"])
    some = cascade(WEATHER, memory)
    for entry in ("do I need an umbrella", "is it going to rain", "rain this weekend?", "is it cold outside"):
        assert names_of(some, entry) == ["weather"], entry
    for entry in ("thanks, that was nice", "how are you", "count to ten", "good night", "do it again"):
        assert only_miss(some, entry).reason == "no-match", entry


def test_a_request_no_tool_fits_gets_no_least_bad_tool(cascade: Make) -> None:
    some = cascade(EMAIL, REVIEW)
    assert only_miss(some, "what's the weather").reason == "no-match"
    assert only_miss(some, "play a song by the beatles").reason == "no-match"


SYNTAX = [
    "foo(",
    "name:weather",
    "AND",
    "weather AND NOT",
    '"open',
    "-x",
    "https://a.b",
    "*",
    "web_search*",
    "[a TO z]",
    "weather^9",
    "~",
    "a:b:c",
    "+weather -email",
    "(((",
    "\\",
    "what's C++ e-mail a AND",
    "/.*/",
    "{}",
    "id:1",
]


@pytest.mark.parametrize("entry", SYNTAX)
def test_no_entry_is_read_as_query_syntax(cascade: Make, entry: str) -> None:
    found = cascade(*SOME).find([entry], "ability", everything)
    assert found.degraded == ()
    assert len(found.hits) < len(SOME), "an entry never finds everything"


@pytest.mark.parametrize(
    "entry",
    [
        "x" * 100_000,
        "word " * 20_000,
        "_" * 100_000,
        "\ud800weather\udfff",
        "we\x00ather",
        "\u202eweather",
        "\u0645\u0631\u062d\u0628\u0627",
        "e" + "\u0301" * 50_000,
        "\u200b" * 1000,
        "天" * 50_000,
    ],
)
def test_hostile_text_is_an_ordinary_entry(cascade: Make, entry: str) -> None:
    found = cascade(*SOME).find([entry], "ability", everything)
    assert found.degraded == () and len(found.hits) + len(found.misses) >= 1


@given(st.lists(st.text(), max_size=3))
def test_any_entries_are_answered_or_missed(fuzzed: Cascade, entries: list[str]) -> None:
    found = fuzzed.find(entries, "ability", everything)
    assert found.degraded == ()
    assert {miss.entry for miss in found.misses} <= set(entries)
    assert {hit.entry for hit in found.hits} | {miss.entry for miss in found.misses} <= set(entries)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory, model: Path, embedder: Embedder) -> Cascade:
    make = conftest_publish(tmp_path_factory.mktemp("fuzzed"), model)
    return Cascade(make, lambda: embedder)


def conftest_publish(folder: Path, model: Path):  # type: ignore[no-untyped-def]
    from chalie.catalogue.generations import Generations
    from chalie.catalogue.publishing import publish
    from chalie.catalogue.tables import Contents, DistributionRow
    from chalie.discovery import builders

    rows = (DistributionRow("tools", "1", "", "", "", False, "ready"),)
    return publish(Generations(folder), Contents(distributions=rows, abilities=SOME), builders(model))


def test_an_entry_in_another_script_finds_a_name_that_carries_it(cascade: Make) -> None:
    some = cascade(
        ability("погода_сегодня", "Weather."), ability("天气查询", "Weather."), ability("notes", "Notes.")
    )
    assert names_of(some, "погода") == ["погода_сегодня"]
    assert names_of(some, "天气") == ["天气查询"]


@pytest.mark.parametrize(
    ("summary", "entry"),
    [
        ("Показывает прогноз погоды в любом городе", "какой прогноз погоды"),
        ("查询城市的天气预报", "天气预报"),
        ("도시의 날씨를 알려줍니다", "날씨를 알려줘"),
    ],
)
def test_an_entry_in_another_script_finds_a_description_in_it(
    cascade: Make, summary: str, entry: str
) -> None:
    assert names_of(cascade(ability("forecast", summary), EMAIL), entry) == ["forecast"]


@pytest.mark.parametrize(
    "entry", ["какая завтра погода", "明天天气怎么样", "내일 날씨 어때", "wie wird das wetter morgen"]
)
def test_a_language_the_model_does_not_know_is_said(cascade: Make, entry: str) -> None:
    assert only_miss(cascade(*SOME), entry).reason == "unsupported-language"


def test_what_is_hidden_here_is_not_shown_and_others_take_its_place(cascade: Make) -> None:
    mail = [
        ability(f"mail_{word}", f"Send {word} mail to somebody.") for word in ("red", "blue", "green", "grey")
    ]
    some = cascade(*mail, EMAIL, ceiling=math.inf, nearest=2)
    shown = names_of(some, "I have to send a letter to somebody in the red house")
    asked: list[str] = []

    def sight(item: Item) -> Sight:
        asked.append(item.name)
        return Sight(hidden=item.name in shown)

    found = some.find(["I have to send a letter to somebody in the red house"], "ability", sight)
    assert len(found.hits) == 2 and not {hit.item.name for hit in found.hits} & set(shown)


def test_no_more_is_read_than_a_page_that_answers_and_nothing_of_the_catalogue(
    cascade: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = cascade(*(ability(f"tool_{number}", f"Send mail {number} to a friend.") for number in range(50)))
    read: list[int] = []
    texts = Cards.texts

    def counted(self: Cards, rows: np.ndarray) -> list[str]:
        read.extend(rows)
        return texts(self, rows)

    def refused(*_: object) -> Any:
        raise AssertionError("what the index holds is asked of the catalogue")

    monkeypatch.setattr(Cards, "texts", counted)
    monkeypatch.setattr(Snapshot, "few", refused)
    assert len(names_of(some, "send some mail to my dear friend")) == 5
    assert len(read) == 5


def test_only_hidden_answers_are_said_to_be_hidden(cascade: Make) -> None:
    some = cascade(WEATHER)
    for entry in ("weather", "the weather", "wether", "is it going to rain tomorrow in the city"):
        assert only_miss(some, entry, lambda _: Sight(hidden=True)).reason == "hidden"


def test_hiding_most_of_a_large_catalogue_never_empties_the_answer(cascade: Make) -> None:
    some = [ability(f"tool_{number}", f"Send mail number {number} to a friend.") for number in range(300)]
    seen = cascade(*some, ceiling=math.inf).find(
        ["send some mail to my dear friend"], "ability", lambda item: Sight(hidden=item.name != "tool_77")
    )
    assert [hit.item.name for hit in seen.hits] == ["tool_77"]


def test_what_would_allow_a_tool_rides_on_its_hit(cascade: Make) -> None:
    found = cascade(WEATHER).find(
        ["weather"], "ability", lambda _: Sight(not_allowed="chalie permissions set …")
    )
    assert found.hits[0].not_allowed == "chalie permissions set …"


def test_a_tool_that_is_not_discoverable_is_no_match(cascade: Make) -> None:
    some = cascade(ability("secret_weather", "Weather for staff.", discoverable=False), EMAIL)
    for entry in ("secret_weather", "secret weather", "weather for the staff of the company"):
        assert only_miss(some, entry).reason == "no-match"


def test_playbooks_are_found_by_title_word_and_meaning(cascade: Make) -> None:
    books = [playbook(f"guide-{number}", f"How to repair bicycle part {number}.") for number in range(300)]
    trip = playbook("plan-a-trip", "Steps to plan travel: dates, budget, transport, places to stay.")
    some = cascade(*SOME, playbooks=[*books, trip])
    assert names_of(some, "Plan a trip", "playbook") == ["plan-a-trip"]
    assert names_of(some, "trip", "playbook") == ["plan-a-trip"]
    assert names_of(some, "I want to travel to Japan on a small budget", "playbook")[0] == "plan-a-trip"
    assert len(names_of(some, "guide", "playbook")) == 300
    assert names_of(some, "weather", "playbook") == []


def test_a_damaged_prose_index_costs_its_rung_only(published: Publish, embedder: Embedder) -> None:
    generation = published(SOME)
    (generation.path / "prose" / "ability.vectors").write_bytes(b"broken")
    some = Cascade(generation, lambda: embedder)
    found = some.find(["weather", "is rain expected in the mountains", "search"], "ability", everything)
    assert [hit.item.name for hit in found.hits] == ["weather", "web_search"]
    assert found.degraded == ("prose",) and "checksum" in found.causes[0]
    assert [(miss.entry, miss.reason) for miss in found.misses] == [
        ("is rain expected in the mountains", "index-unreadable")
    ]


def test_a_damaged_name_index_costs_its_rung_only(published: Publish, embedder: Embedder) -> None:
    generation = published(SOME)
    for path in (generation.path / "names").iterdir():
        path.write_bytes(b"broken")
    found = Cascade(generation, lambda: embedder).find(
        ["weather", "will it rain tomorrow in the city"], "ability", everything
    )
    assert [hit.item.name for hit in found.hits][:1] == ["weather"]
    assert found.degraded == ("name",)


@pytest.mark.parametrize("entry", ["what's on my calendar", "show me my calendar please", "calendar today"])
def test_losing_a_rung_never_empties_an_answer_another_gives(
    published: Publish, embedder: Embedder, entry: str
) -> None:
    generation = published([CALENDAR, EMAIL])
    assert names_of(Cascade(generation, lambda: embedder), entry)[0] == "calendar_today"
    (generation.path / "prose" / "prose.json").unlink()
    assert names_of(Cascade(generation, lambda: embedder), entry) == ["calendar_today"]


def test_without_a_model_names_are_found_and_the_loss_is_said(published: Publish) -> None:
    generation = published(SOME, with_model=None)

    def no_model() -> Embedder:
        raise ConfigError("no embedding model is installed", hint="pip install chalie-model-static")

    found = Cascade(generation, no_model).find(["weather", "is it going to rain"], "ability", everything)
    assert [hit.item.name for hit in found.hits] == ["weather"]
    assert found.degraded == ("prose",) and found.misses[0].reason == "unavailable"
    assert found.causes == ("no embedding model is installed",)
    # a rebuild would not help, so none is asked for
    assert not generation.damaged


def test_a_model_that_vanished_after_the_build_is_said(published: Publish) -> None:
    def gone() -> Embedder:
        raise ConfigError("the model folder /gone has no file model.safetensors")

    found = Cascade(published(SOME), gone).find(["is rain expected in the mountains"], "ability", everything)
    assert found.degraded == ("prose",) and found.causes == (
        "the model folder /gone has no file model.safetensors",
    )


def test_a_tool_of_a_package_set_aside_is_unavailable_not_unknown(
    published: Publish, embedder: Embedder
) -> None:
    broken = ability("translate", "Translate text.", dist="broken")
    generation = published([EMAIL, broken], unready=["broken"])
    some = Cascade(generation, lambda: embedder)
    assert only_miss(some, "translate").reason == "unavailable"
    assert only_miss(some, "transmogrify").reason == "no-match"


def test_the_very_name_of_a_tool_out_of_order_is_not_answered_by_what_is_near(
    published: Publish, embedder: Embedder
) -> None:
    broken = ability("weather_report", "Weather forecast.", dist="broken")
    some = Cascade(published([WEATHER, broken], unready=["broken"]), lambda: embedder, ceiling=math.inf)
    for entry in ("weather_report", "Weather Report", "weatherReport", "broken__weather_report"):
        assert only_miss(some, entry).reason == "unavailable"
    assert names_of(some, "a report on the weather in town, please") == ["weather"]
    ready = ability("weather_report_archive", "Weather of past years.")
    some = Cascade(published([ready, broken], unready=["broken"]), lambda: embedder, ceiling=math.inf)
    assert names_of(some, "weather_report") == ["weather_report_archive"]


def test_a_phrase_that_says_a_name_in_part_has_to_be_near_it(published: Publish, embedder: Embedder) -> None:
    generation = published([ability("set_point", "Set the coordinates of a survey point."), WEATHER])
    strict = Cascade(generation, lambda: embedder, ceiling=0.3)
    assert names_of(strict, "what's the point of it all") == []
    # a name said whole, or nothing but its words, is meant
    for entry, name in {
        "the weather": "weather",
        "please set point": "set_point",
        "point": "set_point",
    }.items():
        assert names_of(strict, entry) == [name]
    wide = Cascade(generation, lambda: embedder, ceiling=1.5)
    (hit,) = wide.find(["what is the point"], "ability", everything).hits
    assert (hit.item.name, hit.rung) == ("set_point", "name")

    def no_model() -> Embedder:
        raise ConfigError("no embedding model is installed")

    assert names_of(Cascade(generation, no_model), "what's the point of it all") == ["set_point"]


def test_without_refusing_what_was_not_near_enough_is_returned_with_its_ceiling(cascade: Make) -> None:
    entry = "is there a way to check if it rains in another city"
    assert names_of(cascade(*SOME, ceiling=0.01), entry) == []
    hits = cascade(*SOME, ceiling=0.01, refuse=False).find([entry], "ability", everything).hits
    assert len(hits) == 5
    for hit in hits:
        assert hit.distance is not None and hit.ceiling is not None and hit.distance > hit.ceiling


def test_a_ceiling_of_the_caller_replaces_the_models(cascade: Make) -> None:
    entry = "is there a way to check if it rains in another city"
    assert names_of(cascade(*SOME, ceiling=0.0), entry) == []
    assert len(names_of(cascade(*SOME, ceiling=math.inf, nearest=3), entry)) == 3


def test_many_threads_may_ask_one_cascade(cascade: Make) -> None:
    some = cascade(*SOME)
    answers: list[list[str]] = []

    def ask() -> None:
        answers.append(names_of(some, "will it rain tomorrow in the city") + names_of(some, "search"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8 and all(answer == answers[0] for answer in answers)


def test_what_lies_too_far_is_no_answer_whatever_else_is_granted(
    cascade: Make, embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = "is it going to rain tomorrow in the city"
    some = cascade(*SOME)
    assert names_of(some, entry)[0] == "weather"
    monkeypatch.setattr(embedder, "refusal", attrs.evolve(embedder.refusal, farthest=0.1))
    assert only_miss(some, entry).reason == "no-match"


def test_the_more_tools_there_are_the_nearer_an_answer_has_to_lie(
    published: Publish, embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = "is it going to rain tomorrow in the city"
    few = Cascade(published(SOME), lambda: embedder)
    more = [ability(f"file_{number}", f"Rename file number {number}.") for number in range(300)]
    many = Cascade(published([*SOME, *more]), lambda: embedder)
    monkeypatch.setattr(embedder, "refusal", attrs.evolve(embedder.refusal, crowd=0.8))
    assert names_of(few, entry)[0] == "weather"
    assert only_miss(many, entry).reason == "no-match"


def test_in_words_the_model_does_not_know_one_has_to_be_there(cascade: Make) -> None:
    some = cascade(WEATHER, ability("wetter_heute", "Das Wetter in einer Stadt."))
    assert names_of(some, "wie wird das wetter morgen frueh") == ["wetter_heute"]


def test_only_an_entry_as_short_as_a_name_is_looked_up_as_one(
    published: Publish, embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    generation = published(
        [
            ability("quote", "Price of a share.", dist="chalie-ability-stock-exchange"),
            ability("rain", "Rain."),
        ],
        [playbook("plan-trip", "Steps for a trip.")],
    )
    some = Cascade(generation, lambda: embedder)
    looked_up: list[str] = []
    named = type(generation.snapshot).named
    monkeypatch.setattr(
        type(generation.snapshot), "named", lambda self, text: looked_up.append(text) or named(self, text)
    )
    spelt = ("Stock-Exchange__quote", "stock_exchange  QUOTE")
    for entry in spelt:
        (hit,) = some.find([entry], "ability", everything).hits
        assert (hit.item.name, hit.rung) == ("quote", "exact")
    assert some.find(["plan trip"], "playbook", everything).hits[0].rung == "exact"
    some.find(["how is the stock exchange doing on this day"], "ability", everything)
    assert looked_up == [*spelt]
