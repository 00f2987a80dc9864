"""Reading the options of a command by a closed list: what is not listed is not understood."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from attrs import field, frozen

__all__ = ["ANY", "COUNT", "Form", "Parsed"]

ANY: Final = re.compile(r".*", re.DOTALL)
COUNT: Final = re.compile(r"[+-]?[0-9]{1,12}[bkKMG]?")


@frozen
class Parsed:
    """A command's options and operands.

    Attributes:
        options: every option met -> its values, the empty text for one that takes none.
        operands: the rest, in order.
    """

    options: Mapping[str, list[str]]
    operands: list[str]


@frozen
class Form:
    """What a command may look like to be understood.

    Attributes:
        flags: the letters that may follow a single dash and take no value.
        values: letter -> what its value must look like.
        long: long options without a value. Spelt in full: abbreviations are not understood.
        long_values: long option -> what its value, after `=`, must look like.
        counts: whether `-5` is an option of its own.
        operands: what the operands are: `paths`, `text`, `none`, or `pattern` (the first is a pattern unless
            one was given by option; the rest are paths).
        least, most: how many operands.
    """

    flags: str = ""
    values: Mapping[str, re.Pattern[str]] = field(factory=dict)
    long: frozenset[str] = frozenset()
    long_values: Mapping[str, re.Pattern[str]] = field(factory=dict)
    counts: bool = False
    operands: str = "paths"
    least: int = 0
    most: int = 1000

    def parse(self, words: Sequence[str]) -> Parsed | None:
        """Return the options and operands of a command, or None where anything is not in the list.

        Options count wherever they stand: one implementation of a command takes them after operands too,
        another takes them for operands there; what is accepted must be harmless to both.

        Args:
            words: what follows the command's name.
        """
        options: dict[str, list[str]] = {}
        operands: list[str] = []
        rest = iter(words)
        for word in rest:
            if word == "--":
                operands += rest
            elif word.startswith("--"):
                if not self._long(word, options):
                    return None
            elif word.startswith("-") and word != "-":
                if self.counts and word[1:].isdecimal():
                    options.setdefault("count", []).append(word[1:])
                    continue
                for at, letter in enumerate(word[1:], 2):
                    if letter in self.values:
                        value = word[at:] or next(rest, None)
                        if value is None or not self.values[letter].fullmatch(value):
                            return None
                        options.setdefault(letter, []).append(value)
                        break
                    if letter not in self.flags:
                        return None
                    options.setdefault(letter, []).append("")
            else:
                operands.append(word)
        if self.operands == "none" and operands:
            return None
        return Parsed(options, operands) if self.least <= len(operands) <= self.most else None

    def _long(self, word: str, options: dict[str, list[str]]) -> bool:
        name, given, value = word.partition("=")
        if not given:
            if name not in self.long:
                return False
        elif name not in self.long_values or not self.long_values[name].fullmatch(value):
            return False
        options.setdefault(name, []).append(value)
        return True
