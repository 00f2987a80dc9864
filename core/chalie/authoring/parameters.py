"""Rules for parameters: their spelling, words that are spelled out, and words with one meaning everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from attrs import frozen

from .. import names
from ..gate.display import escaped
from .finding import Finding, Rule, Subject, rule
from .vocabulary import Meaning, Vocabulary

__all__ = ["RULES", "Case", "check"]

Case = Literal["camelCase", "snake_case"]

CASE: Final = rule("parameter-case")
SHORT: Final = rule("parameter-short")
MEANING: Final = rule("parameter-meaning")
TYPE: Final = rule("parameter-type")
RULES: Final = (CASE, SHORT, MEANING, TYPE)

_CASES: Final[Mapping[Case, re.Pattern[str]]] = {
    "camelCase": re.compile(r"[a-z][a-zA-Z0-9]*"),
    "snake_case": re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*"),
}
_COORDINATES: Final = frozenset("xyz")
_EITHER: Final = re.compile(
    r"(?P<thing>[a-z]+(?:_[a-z]+)*?)_(?:name|title|id|identifier|key)_or_(?:name|title|id|identifier|key)"
)
_ACRONYMS: Final = re.compile(r"([A-Z]{2,})s(?![a-z])")
_DEEPEST: Final = 8


@frozen
class _Parameter:
    """A parameter: its name, where it stands (`edits[].oldText`), and its schema; None where not known."""

    name: str
    path: str
    schema: Mapping[str, Any] | None


def check(subject: Subject, vocabulary: Vocabulary, case: Case) -> Iterator[Finding]:
    """Yield what is wrong with the names and types of an ability's parameters."""
    if subject.foreign or subject.descriptor.dist == names.OWN_DIST:
        return  # others' names are theirs, and the host's are fixed
    found = list(_parameters(subject.descriptor.parameters, subject.typed))
    top = {_words(each.name) for each in found if each.path == each.name}
    for parameter in found:
        yield from _spelling(subject, parameter, case)
        meant = list(_meaning(subject, parameter, vocabulary, case, top))
        yield from meant
        if not meant:
            yield from _spelled_out(subject, parameter, vocabulary, case)
        if parameter.schema is not None:
            yield from _typed(subject, parameter, vocabulary)


def _parameters(schema: Any, typed: bool, path: str = "", depth: int = 0) -> Iterator[_Parameter]:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        for name, inner in properties.items():
            here = f"{path}{name}"
            yield _Parameter(str(name), here, inner if typed and isinstance(inner, Mapping) else None)
            yield from _parameters(inner, typed, f"{here}.", depth + 1)
    items = schema.get("items")
    if path and isinstance(items, Mapping):
        yield from _parameters(items, typed, f"{path[:-1]}[].", depth + 1)


def _spelling(subject: Subject, parameter: _Parameter, case: Case) -> Iterator[Finding]:
    if not _CASES[case].fullmatch(parameter.name):
        wanted = _in_case(_words(parameter.name), case)
        yield _of(CASE, subject, parameter, f"is not {case}", f"call it {wanted}")


def _meaning(
    subject: Subject, parameter: _Parameter, vocabulary: Vocabulary, case: Case, top: set[tuple[str, ...]]
) -> Iterator[Finding]:
    words = _words(parameter.name)
    verb = subject.descriptor.name.rpartition("_")[2]
    for meaning in vocabulary.parameters.values():
        wanted = names.segments(meaning.name)
        others = (*meaning.instead, *meaning.instead_of.get(verb, ()))
        if words not in [names.segments(other) for other in others]:
            continue
        known = _types(parameter.schema)
        format_ = (parameter.schema or {}).get("format")
        other = bool(known) and meaning.type not in known
        if other or wanted in top or (meaning.format and format_ not in (None, meaning.format)):
            continue  # another thing of that name, or one beside the parameter it would be
        said = f"means {meaning.says}, for which the name is {_in_case(wanted, case)}"
        yield _of(MEANING, subject, parameter, said, f"call it {_in_case(wanted, case)}")
        return
    either = _EITHER.fullmatch("_".join(words))
    if either:
        hint = _in_case((*either["thing"].split("_"), "hint"), case)
        yield _of(MEANING, subject, parameter, "takes one of two things, as a hint does", f"call it {hint}")


def _spelled_out(
    subject: Subject, parameter: _Parameter, vocabulary: Vocabulary, case: Case
) -> Iterator[Finding]:
    words = _words(parameter.name)
    for at, word in enumerate(words):
        whole = vocabulary.abbreviations.get(word)
        if whole:
            wanted = _in_case((*words[:at], *whole.split(), *words[at + 1 :]), case)
            yield _of(SHORT, subject, parameter, f"has {word!r} for {whole}", f"call it {wanted}")
        elif word == "no" and at and at == len(words) - 1:
            wanted = _in_case((*words[:at], "number"), case)
            yield _of(SHORT, subject, parameter, "has 'no' for number", f"call it {wanted}")
        elif len(word) == 1 and word.isalpha() and word not in _COORDINATES:
            yield _of(SHORT, subject, parameter, f"has the letter {word!r} for a word", "write the word")


def _typed(subject: Subject, parameter: _Parameter, vocabulary: Vocabulary) -> Iterator[Finding]:
    assert parameter.schema is not None
    words = _words(parameter.name)
    meaning = _fixed(words, vocabulary)
    known = _types(parameter.schema)
    if meaning is None or not known:
        return
    if known != {meaning.type}:
        said = f"is {' or '.join(sorted(known))}, and {meaning.says} is {meaning.type}"
        yield _of(TYPE, subject, parameter, said, f'give it "type": "{meaning.type}"')
    elif meaning.type == "array":
        inner = _types(parameter.schema.get("items"))
        if inner and inner != {"string"}:
            yield _of(
                TYPE,
                subject,
                parameter,
                "is a list of hints, which are texts",
                'make its items {"type": "string"}',
            )
    elif meaning.format and parameter.schema.get("format") != meaning.format:
        said = f"is {meaning.says}, and its schema does not say so"
        yield _of(TYPE, subject, parameter, said, f'give it "format": "{meaning.format}"')


def _fixed(words: tuple[str, ...], vocabulary: Vocabulary) -> Meaning | None:
    if words[1:] and words[-1] == "hint":
        return Meaning("hint", "a hint", "string", "")
    if words[1:] and words[-1] == "hints":
        return Meaning("hints", "a list of hints", "array", "")
    for meaning in vocabulary.parameters.values():
        if words == names.segments(meaning.name):
            return meaning
    return None


def _types(schema: object) -> frozenset[str]:
    """Return the types a value may have, without null; empty where the schema does not tell simply."""
    if not isinstance(schema, Mapping):
        return frozenset()
    given = schema.get("type")
    if isinstance(given, str):
        found = {given}
    elif isinstance(given, list | tuple):
        found = {each for each in given if isinstance(each, str)}
    else:
        branches = schema.get("anyOf") or schema.get("oneOf")
        if not isinstance(branches, list | tuple) or not branches:
            return frozenset()
        kinds = [_types(branch) or ({"null"} if branch == {"type": "null"} else set()) for branch in branches]
        if not all(kinds):
            return frozenset()
        found = {kind for some in kinds for kind in some}
    return frozenset(found - {"null"})


def _words(name: str) -> tuple[str, ...]:
    """Return the words of a name in lower case; the plural of an acronym (`messageIDs`) is one."""
    return names.segments(_ACRONYMS.sub(lambda found: f"{found[1].capitalize()}s", name))


def _in_case(words: tuple[str, ...], case: Case) -> str:
    if case == "snake_case":
        return "_".join(words)
    return words[0] + "".join(word[:1].upper() + word[1:] for word in words[1:]) if words else ""


def _of(rule: Rule, subject: Subject, parameter: _Parameter, said: str, fix: str) -> Finding:
    path = escaped(parameter.path)
    return Finding.of(
        rule,
        subject,
        f"parameter {path}",
        f"the parameter {path} of {subject.descriptor.name} {said}",
        fix,
        key=f"{subject.descriptor.name}.{path}",
    )
