from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from chalie.discovery.cascade import Cascade
from chalie.discovery.embedding import Embedder
from chalie.discovery.spelling import Spelling
from chalie.discovery.words import stem
from hypothesis import example, given
from hypothesis import strategies as st

from .conftest import Publish, ability, everything


@pytest.fixture(scope="module")
def spelling(embedder: Embedder) -> Spelling:
    assert embedder.spelling is not None
    return embedder.spelling


def corrected(spelling: Spelling, text: str, *written: str) -> str:
    return spelling.corrected(text, written.__contains__)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("reserch cheap ways to insulate an attic", "research cheap ways to insulate an attic"),
        ("set a tmier for the eggs", "set a timer for the eggs"),
        ("what is it going to be like tomorro", "what is it going to be like tomorrow"),
        (
            "add the milk to the grocry, and the tea to the shoping.",
            "add the milk to the grocery, and the tea to the shopping.",
        ),
        ("show me some luxary hotels by the sea, pleese", "show me some luxury hotels by the sea, please"),
        # a letter left out is likelier than another one written
        ("book a flght to the north of italy", "book a flight to the north of italy"),
        # words that are no single token of the model
        ("send the invocie to my customer", "send the invoice to my customer"),
        ("open the spreadhseet with the numbers", "open the spreadsheet with the numbers"),
    ],
)
def test_a_misspelt_word_of_a_sentence_is_put_right(spelling: Spelling, typed: str, meant: str) -> None:
    assert corrected(spelling, typed) == meant


@pytest.mark.parametrize(
    "text",
    [
        "what is the weather like tomorrow",
        # names are nobody's misprints
        "show me flats in Tampera for next month",
        "open the ticket XKZJQW-1138 and its_tmier file",
        "send the report on tuesday to tmier@example.com",
        "open the file src/tmier.py in the editor and https://tmier.org/reserch too",
        "run the build with --tmier and key=tmier today",
        # short words are one letter away from many
        "is the qad in the box",
        # a language or a jargon, and no misprints
        "wie wird das wettr morgn in der stadt",
        "tmier",
        "\u0434\u0430 tmier",
        "",
    ],
)
def test_what_may_be_meant_as_it_stands_is_left_alone(spelling: Spelling, text: str) -> None:
    assert corrected(spelling, text) == text


def test_a_word_that_an_author_writes_is_no_misprint(spelling: Spelling) -> None:
    typed = "please restart the kubernetez cluster tonight"
    assert corrected(spelling, typed.replace("kubernetez", "reserch")) != typed
    assert corrected(spelling, typed.replace("kubernetez", "reserch"), "reserch") == typed.replace(
        "kubernetez", "reserch"
    )


def test_of_two_words_that_may_be_meant_an_item_tells_which(spelling: Spelling) -> None:
    typed = "what is the wheather like in the city"
    assert corrected(spelling, typed, stem("weather")) == "what is the weather like in the city"
    assert corrected(spelling, typed, stem("whether")) == "what is the whether like in the city"
    # also where another correction would be likelier
    typed = "please delte the last of the rows"
    assert stem(corrected(spelling, typed, stem("delete")).split()[1]) == stem("delete")


@given(text=st.text(st.sampled_from("abcdefgh 'XY-\n1\u00e4"), max_size=200))
@example("reserch " * 1_000 + "the house and the garden " * 2_000)
def test_correcting_keeps_the_words_in_number_and_is_done_with_after_a_few(
    embedder: Embedder, text: str
) -> None:
    assert embedder.spelling is not None
    after = corrected(embedder.spelling, text)
    assert len(after.split()) == len(text.split())
    assert sum(a != b for a, b in zip(after.split(), text.split(), strict=True)) <= 8


def test_a_misspelt_request_finds_what_the_request_finds(published: Publish, embedder: Embedder) -> None:
    cascade = Cascade(
        published(
            [
                ability("web_search", "Research a question on the web.", examples=["research cheap flights"]),
                ability("weather", "Forecast for a city."),
                ability("email", "Read and send mail."),
            ]
        ),
        lambda: embedder,
    )
    right, wrong = (
        cascade.find([entry], "ability", everything).hits
        for entry in ("research ways to insulate an attic", "reserch ways to insulate an attic")
    )
    assert [hit.item.name for hit in wrong] == [hit.item.name for hit in right] != []
    # the entry stays what was asked
    assert {hit.entry for hit in wrong} == {"reserch ways to insulate an attic"}


def test_a_model_whose_words_are_unknown_corrects_nothing(model: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(model, tmp_path / "other"))
    settings = json.loads((other / "chalie.json").read_text())
    (other / "chalie.json").write_text(json.dumps({**settings, "scripts": []}))
    assert Embedder.open(other).spelling is None
