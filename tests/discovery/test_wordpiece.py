"""The own tokenizer against the library it stands in for."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from chalie.discovery.wordpiece import WordPiece
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

SCRIPTS = (
    "Ünïcödé naïve Straße İstanbul ﬁne Ⅷ ½ x² 日本語のテキスト 中文分词测试 한국어 문장 "
    "Привет мир العربية שלום ไทย हिन्दी Ελληνικά ΣΊΣΥΦΟΣ "
    "e\u0301 \u200b \u00a0 \u2028 \ufeff \x00 \x7f \x85 \ufffd “quotes” – — … © "
    "€5 #tag "
    "don't U.S.A. a_b-c/d C++ 😀👍🏽 𝔘𝔫𝔦 𠀀 supercalifragilisticexpialidocious " + "x" * 120
)


@pytest.fixture(scope="module")
def pair(model: Path) -> tuple[WordPiece, Tokenizer]:
    specification = json.loads((model / "tokenizer.json").read_text("utf-8"))
    assert WordPiece.reads(specification)
    return WordPiece(specification), Tokenizer.from_file(str(model / "tokenizer.json"))


def library_ids(tokenizer: Tokenizer, text: str) -> list[int]:
    unknown = tokenizer.token_to_id("[UNK]")
    return [token for token in tokenizer.encode(text, add_special_tokens=False).ids if token != unknown]


def test_tokens_are_the_librarys_over_all_text_of_the_standard_library(
    pair: tuple[WordPiece, Tokenizer],
) -> None:
    own, library = pair
    lines = 0
    for path in sorted(Path(json.__file__).parents[1].glob("*.py"))[:120]:
        for line in path.read_text("utf-8", "replace").splitlines():
            assert own.ids(line) == library_ids(library, line), line
            lines += 1
    assert lines > 20_000


def test_tokens_are_the_librarys_in_every_script(pair: tuple[WordPiece, Tokenizer]) -> None:
    own, library = pair
    for word in SCRIPTS.split(" "):
        assert own.ids(word) == library_ids(library, word), word
    assert own.ids(SCRIPTS) == library_ids(library, SCRIPTS)


# What Unicode assigned after the library's tables were made is a control character to it, a letter to Python.
ASSIGNED_LONG_AGO = st.characters(max_codepoint=0x2FFF, exclude_categories=("Cs", "Cn", "Co", "Mn", "So"))


@settings(max_examples=300)
@given(text=st.text(ASSIGNED_LONG_AGO, max_size=60))
def test_tokens_are_the_librarys_for_any_text(pair: tuple[WordPiece, Tokenizer], text: str) -> None:
    own, library = pair
    assert own.ids(text) == library_ids(library, text)


def test_another_kind_of_tokenizer_is_left_to_the_library() -> None:
    assert not WordPiece.reads({"model": {"type": "Unigram"}, "normalizer": None, "pre_tokenizer": None})
    kinds = {"normalizer": {"type": "BertNormalizer"}, "pre_tokenizer": {"type": "BertPreTokenizer"}}
    assert WordPiece.reads({"model": {"type": "WordPiece"}, **kinds})
    own_token = {"content": "[X]", "special": False}
    assert not WordPiece.reads({"model": {"type": "WordPiece"}, **kinds, "added_tokens": [own_token]})


def test_tokenising_does_not_need_the_library(pair: tuple[WordPiece, Tokenizer]) -> None:
    import subprocess

    script = (
        "import sys; from chalie.discovery import embedding, wordpiece, cascade\n"
        "heavy = {'tokenizers', 'model2vec', 'numpy', 'tantivy', 'usearch'}\n"
        "print(sorted(heavy.intersection(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
