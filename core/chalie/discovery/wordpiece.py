"""Cut text into the tokens of a BERT vocabulary, as the `tokenizers` library does, without loading it.

Parsing a tokenizer file with that library costs several times what a whole search does; the rules of BERT's
normaliser, pre-tokeniser and WordPiece are few (Devlin et al. 2018; tokenizers' `normalizers/bert.rs`,
`pre_tokenizers/bert.rs`, `models/wordpiece`). Tests hold the two equal over a large sample of text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

__all__ = ["WordPiece"]

_CACHED_WORDS = 32_768
_ASCII_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


class WordPiece:
    """A BERT tokenizer: ids of a text, without the unknown token and without special tokens.

    Args:
        specification: the parsed `tokenizer.json`.
    """

    def __init__(self, specification: Mapping[str, Any]) -> None:
        model, normalizer = specification["model"], specification["normalizer"]
        self._vocabulary: dict[str, int] = model["vocab"]
        self._prefix: str = model.get("continuing_subword_prefix", "##")
        self._longest: int = model.get("max_input_chars_per_word", 100)
        self._lowercase: bool = normalizer.get("lowercase", True)
        strip = normalizer.get("strip_accents")
        self._strip_accents: bool = self._lowercase if strip is None else strip
        self._clean: bool = normalizer.get("clean_text", True)
        self._han: bool = normalizer.get("handle_chinese_chars", True)
        self._unknown: int | None = self._vocabulary.get(model.get("unk_token", "[UNK]"))
        self._pieces = lru_cache(maxsize=_CACHED_WORDS)(self._cut)

    @staticmethod
    def reads(specification: Mapping[str, Any]) -> bool:
        """Whether a parsed `tokenizer.json` is of the kind this class reproduces."""

        def kind(part: str) -> Any:
            return (specification.get(part) or {}).get("type")

        return (
            kind("model") == "WordPiece"
            and kind("normalizer") == "BertNormalizer"
            and kind("pre_tokenizer") == "BertPreTokenizer"
            and not any(not token.get("special") for token in specification.get("added_tokens") or ())
        )

    @property
    def vocabulary(self) -> Mapping[str, int]:
        """The id of each token: whole words, and pieces that go on with the prefix."""
        return self._vocabulary

    def ids(self, text: str) -> list[int]:
        """Return the token ids of `text`; words outside the vocabulary contribute nothing."""
        result: list[int] = []
        for word in self._words(text):
            result.extend(self._pieces(word))
        return result

    def _words(self, text: str) -> list[str]:
        if text.isascii():
            return (text.lower() if self._lowercase else text).translate(_ASCII_TABLE).split()
        return self._normal(text).split()

    def _normal(self, text: str) -> str:
        if self._clean:
            text = "".join(filter(None, map(_cleaned, text)))
        if self._han:
            text = "".join(f" {char} " if _is_han(char) else char for char in text)
        if self._strip_accents:
            text = "".join(
                char for char in unicodedata.normalize("NFD", text) if unicodedata.category(char) != "Mn"
            )
        if self._lowercase:
            # character by character: a whole-string lower() would turn a final sigma into another letter
            text = "".join(char.lower() for char in text)
        return "".join(f" {char} " if _is_punctuation(char) else char for char in text)

    def _cut(self, word: str) -> tuple[int, ...]:
        if len(word) > self._longest:
            return ()
        vocabulary, result, start, size = self._vocabulary, [], 0, len(word)
        while start < size:
            for end in range(size, start, -1):
                piece = vocabulary.get(word[start:end] if start == 0 else self._prefix + word[start:end])
                if piece is not None:
                    break
            else:
                return ()
            result.append(piece)
            start = end
        return tuple(piece for piece in result if piece != self._unknown)


def _ascii(code: int) -> str:
    char = chr(code)
    if code < 32 or code == 127:
        return " " if char in "\t\n\r" else ""
    return f" {char} " if char in _ASCII_PUNCTUATION else char


_ASCII_TABLE = {code: _ascii(code) for code in range(128)}


def _cleaned(char: str) -> str:
    code = ord(char)
    if code in (0, 0xFFFD):
        return ""
    if char in "\t\n\r":
        return " "
    if unicodedata.category(char).startswith("C"):
        return ""
    return " " if char.isspace() else char


def _is_punctuation(char: str) -> bool:
    return char in _ASCII_PUNCTUATION or unicodedata.category(char).startswith("P")


def _is_han(char: str) -> bool:
    code = ord(char)
    return (
        0x4E00 <= code <= 0x9FFF
        or 0x3400 <= code <= 0x4DBF
        or 0x20000 <= code <= 0x2A6DF
        or 0x2A700 <= code <= 0x2B81F
        or 0x2B920 <= code <= 0x2CEAF
        or 0xF900 <= code <= 0xFAFF
        or 0x2F800 <= code <= 0x2FA1F
    )
