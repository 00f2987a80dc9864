"""The words that names are made of, read from the data files beside this module."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

from attrs import frozen

from ..calls import SideEffect
from ..discovery.words import stem, words

__all__ = ["Instruction", "Meaning", "Text", "Verb", "Vocabulary", "folded", "load"]

#: letters above which a word that begins with `un` may undo what follows: unserve, and not unit.
_UNDONE: Final = 5
_BEGINNING: Final = 4
_DOERS: Final = ("er", "or", "ers", "ors", "ing")


@frozen
class Verb:
    """A verb of the vocabulary: what it replaces, and by what other words a summary may say it."""

    name: str
    replaces: tuple[str, ...]
    said_by: tuple[str, ...]


@frozen
class Meaning:
    """A parameter with one meaning everywhere.

    Attributes:
        name: in camelCase.
        says: the meaning, in words.
        type, format: as its JSON Schema has them; an empty format is any.
        instead: other spellings of that meaning, in camelCase.
        instead_of: verb -> what else has that meaning in a tool of that verb.
    """

    name: str
    says: str
    type: str
    format: str
    instead: tuple[str, ...] = ()
    instead_of: Mapping[str, tuple[str, ...]] = MappingProxyType({})


@frozen
class Instruction:
    """A way to steer the model by a description: why it is one, and how it is recognised."""

    why: str
    pattern: re.Pattern[str]


@frozen
class Vocabulary:
    """Everything that the data files say.

    Attributes:
        kernel: names that need no namespace.
        verbs: verb -> what it replaces.
        allowed: verb beside those -> the reason any package may use it.
        whole, partial: how a summary says that `set` writes a whole block, or a part.
        parameters: name -> meaning.
        abbreviations: short word -> spelled out.
        irregular: word -> forms that no rule of endings gives.
        classes: word -> the mildest class it can have.
        instructions: ways to steer the model.
    """

    kernel: frozenset[str]
    verbs: Mapping[str, Verb]
    allowed: Mapping[str, str]
    whole: tuple[str, ...]
    partial: tuple[str, ...]
    parameters: Mapping[str, Meaning]
    abbreviations: Mapping[str, str]
    irregular: Mapping[str, tuple[str, ...]]
    classes: Mapping[str, SideEffect]
    instructions: tuple[Instruction, ...]

    def replacing(self, word: str) -> tuple[str, ...]:
        """Return the verbs that are used instead of a word; none where it may be any other."""
        return tuple(verb.name for verb in self.verbs.values() if word in verb.replaces)

    def stands(self, word: str, text: Text) -> bool:
        """Tell whether a word, an inflection of it or a word it begins is in a text."""
        forms = [word, *self.irregular.get(word, ())]
        forms += [base for base, known in self.irregular.items() if word in known]
        if word.startswith("un") and len(word) > _UNDONE:
            forms.append(word[2:])  # what is undone is named by what was done: unmute, muted
        if any(stem(form) in text.stems for form in forms):
            return True
        return any(other.startswith(word) or _doer(word, other) for other in text.words)


def _doer(word: str, other: str) -> bool:
    """Whether a word names who or what does the other: counter, count."""
    return len(other) >= _BEGINNING and word.startswith(other) and word[len(other) :] in _DOERS


@frozen
class Text:
    """The words of a text, and the stems of these and of each two of them written as one."""

    words: frozenset[str]
    stems: frozenset[str]


def folded(text: str) -> Text:
    """Return the words of a text; each two of them also count written as one (`data room`)."""
    found = words(text)
    pairs = (one + other for one, other in pairwise(found))
    return Text(frozenset(found), frozenset(stem(word) for word in (*found, *pairs)))


@cache
def load() -> Vocabulary:
    """Return the vocabulary."""
    data = _read("vocabulary.toml")
    verbs = data["verbs"].items()
    return Vocabulary(
        kernel=frozenset(data["kernel"]),
        verbs={name: Verb(name, tuple(v["replaces"]), tuple(v["said_by"])) for name, v in verbs},
        allowed=_read("exceptions.toml")["verbs"],
        whole=tuple(data["set"]["whole"]),
        partial=tuple(data["set"]["partial"]),
        parameters={name: _meaning(name, given) for name, given in data["parameters"].items()},
        abbreviations=data["abbreviations"],
        irregular={word: tuple(forms) for word, forms in data["irregular"].items()},
        classes={word: SideEffect(effect) for effect, some in data["classes"].items() for word in some},
        instructions=tuple(
            Instruction(each["why"], re.compile(each["pattern"], re.IGNORECASE))
            for each in _read("instructions.toml")["patterns"]
        ),
    )


def _meaning(name: str, given: Mapping[str, Any]) -> Meaning:
    verbs = {verb: tuple(some) for verb, some in given.get("instead_of", {}).items()}
    return Meaning(
        name, given["says"], given["type"], given.get("format", ""), tuple(given["instead"]), verbs
    )


def _read(file: str) -> dict[str, Any]:
    return tomllib.loads((files(__package__) / file).read_text("utf-8"))
