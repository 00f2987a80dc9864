from __future__ import annotations

import pytest
from chalie.discovery import words
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("word", "stem"),
    [  # from the examples in Porter's paper
        ("caresses", "caress"),
        ("ponies", "poni"),
        ("cats", "cat"),
        ("agreed", "agre"),
        ("plastered", "plaster"),
        ("motoring", "motor"),
        ("conflated", "conflat"),
        ("hopping", "hop"),
        ("falling", "fall"),
        ("happy", "happi"),
        ("relational", "relat"),
        ("digitizer", "digit"),
        ("vietnamization", "vietnam"),
        ("hopefulness", "hope"),
        ("triplicate", "triplic"),
        ("electrical", "electr"),
        ("adjustment", "adjust"),
        ("adoption", "adopt"),
        ("controlling", "control"),
        ("probate", "probat"),
        ("cease", "ceas"),
        ("sky", "sky"),
    ],
)
def test_a_word_has_the_stem_of_porters_paper(word: str, stem: str) -> None:
    assert words.stem(word) == stem


def test_words_are_cut_at_case_underscores_and_punctuation() -> None:
    assert words.words("getWeather web_search HTTPServer what's C++ e-mail") == [
        "get",
        "weather",
        "web",
        "search",
        "http",
        "server",
        "whats",
        "c",
        "e",
        "mail",
    ]


def test_unspaced_scripts_give_pairs_of_letters() -> None:
    assert words.terms("天气查询") == ("天气", "气查", "查询")
    assert words.terms("날씨를 알려줘")[0] == "날씨"
    assert words.terms("雨") == ("雨",)


def test_only_letters_count_towards_a_foreign_script() -> None:
    assert words.foreign_share("погода 2024") == 1.0
    assert words.foreign_share("naïve café größe") == 0.0
    assert words.foreign_share("12:30 …") == 0.0


def test_stop_words_are_folded_words_of_one_file() -> None:
    stops = words.stop_words()
    assert {"the", "all", "please", "whats"} <= stops
    assert all(words.words(word) == [word] for word in stops)


@given(st.text())
def test_any_text_has_words_and_stems(text: str) -> None:
    for word in words.words(text + "\ud800"):
        assert word and words.stem(word)
    assert all(words.terms(text))
    assert 0.0 <= words.foreign_share(text) <= 1.0


def test_text_beyond_the_limit_is_not_read() -> None:
    assert len(words.words("word " * 100_000)) < 2_000
