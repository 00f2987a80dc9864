"""Rules for an ability's name: its form, its namespace, its verb, and that its words stand in the summary."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .. import names
from ..discovery.words import foreign_share, stem
from ..gate.display import escaped
from .finding import Finding, Rule, Subject, rule
from .vocabulary import Vocabulary, folded

__all__ = ["RULES", "check"]

FORM: Final = rule("name-form")
NAMESPACE: Final = rule("name-namespace")
SUBJECT: Final = rule("name-subject")
REPLACED: Final = rule("verb-replaced")
UNLISTED: Final = rule("verb-unlisted")
WHOLE: Final = rule("set-whole")
WORD: Final = rule("summary-word")
VERB: Final = rule("summary-verb")
RULES: Final = (FORM, NAMESPACE, SUBJECT, REPLACED, UNLISTED, WHOLE, WORD, VERB)

_FORM: Final = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_LONGEST: Final = 64
_LETTERS: Final = 4
_FOREIGN: Final = 0.5


def check(subject: Subject, vocabulary: Vocabulary) -> Iterator[Finding]:
    """Yield what is wrong with the name of an ability and with its summary's words for it."""
    item = subject.descriptor
    name = item.name
    if subject.foreign or name in vocabulary.kernel:
        return
    if not _FORM.fullmatch(name) or len(name) > _LONGEST:
        yield _of(FORM, subject, f"{escaped(name)} is {_fault(name)}", f"call it {_formed(name)}")
        return
    if "_" not in name:
        return
    yield from _structure(subject, vocabulary)
    yield from _said(subject, vocabulary)


def _structure(subject: Subject, vocabulary: Vocabulary) -> Iterator[Finding]:
    item = subject.descriptor
    words = item.name.split("_")
    namespace = names.segments(item.namespace)
    if namespace and tuple(words[: len(namespace)]) != namespace:
        wanted = _without_overlap(namespace, words)
        yield _of(
            NAMESPACE,
            subject,
            f"{item.name} does not begin with its namespace, {escaped(item.namespace)}",
            f"call it {wanted}, or give the class namespace = {words[0]!r}",
        )
        namespace = ()
    rest = words[len(namespace) :]
    repeated = [word for word in rest[:-1] if any(stem(word) == stem(each) for each in namespace)]
    if repeated:
        shorter = "_".join([*namespace, *(word for word in rest if word not in repeated)])
        yield _of(
            SUBJECT,
            subject,
            f"{item.name} says {repeated[0]} after its namespace said so",
            f"call it {shorter}",
        )
    yield from _verb(subject, vocabulary, words)


def _without_overlap(namespace: tuple[str, ...], words: list[str]) -> str:
    named = {stem(word) for word in namespace}
    return "_".join([*namespace, *(word for word in words if stem(word) not in named)])


def _verb(subject: Subject, vocabulary: Vocabulary, words: list[str]) -> Iterator[Finding]:
    item, verb = subject.descriptor, words[-1]
    instead = vocabulary.replacing(verb)
    if instead:
        wanted = " or ".join("_".join([*words[:-1], each]) for each in instead)
        said = " or ".join(instead)
        yield _of(
            REPLACED, subject, f"{item.name} says {verb}, for which the word is {said}", f"call it {wanted}"
        )
    elif verb not in vocabulary.verbs and verb not in vocabulary.allowed:
        listed = ", ".join(vocabulary.verbs)
        yield _of(
            UNLISTED,
            subject,
            f"{item.name} ends in {verb!r}, which is none of {listed}",
            f'end it in one of those, or add an exception with the reason: {item.name} = "…"',
        )
    elif verb == "set":
        yield from _set(subject, vocabulary)
    elif verb == "update" and _sets_whole(item.summary, vocabulary):
        yield _of(
            WHOLE,
            subject,
            f"{item.name} is said to set the whole at once, and update is for a part",
            f"call it {'_'.join([*words[:-1], 'set'])}, or say in the summary which part changes",
        )


def _sets_whole(summary: str, vocabulary: Vocabulary) -> bool:
    """Whether a summary begins with Set, perhaps after a heading, and says that the whole is written."""
    sets = re.match(r"(?:[^.:]{0,40}:\s*)?set\b", summary.strip(), re.IGNORECASE) is not None
    return sets and _mentions(summary, vocabulary.whole) and not _mentions(summary, vocabulary.partial)


def _set(subject: Subject, vocabulary: Vocabulary) -> Iterator[Finding]:
    item = subject.descriptor
    updated = f"{item.name[: -len('set')]}update"
    if _mentions(item.summary, vocabulary.partial):
        yield _of(
            WHOLE,
            subject,
            f"{item.name} writes a part, and set is for a block written whole",
            f"call it {updated}",
        )
    elif not _mentions(item.summary, vocabulary.whole):
        yield _of(
            WHOLE,
            subject,
            f"the summary of {item.name} does not say that set writes the whole block",
            f'say so ("the whole … is written at once"), or call it {updated}',
        )


def _mentions(text: str, phrases: tuple[str, ...]) -> bool:
    plain = " ".join(text.casefold().split())
    return any(re.search(rf"\b{re.escape(phrase)}\b", plain) for phrase in phrases)


def _said(subject: Subject, vocabulary: Vocabulary) -> Iterator[Finding]:
    item = subject.descriptor
    if foreign_share(item.summary) > _FOREIGN:
        return
    text = folded(re.sub(rf"\b{re.escape(item.name)}\b", " ", item.summary))
    words = item.name.split("_")
    verb = vocabulary.verbs.get(words[-1])
    missing = [
        word
        for word in dict.fromkeys(words[:-1] if verb or vocabulary.replacing(words[-1]) else words)
        if sum(map(str.isalpha, word)) >= _LETTERS and not vocabulary.stands(word, text)
    ]
    if missing:
        yield _of(
            WORD,
            subject,
            f"the summary of {item.name} does not say {' nor '.join(missing)}",
            "say it in the summary, or leave it out of the name",
            where="summary",
        )
    if verb and len(verb.name) >= _LETTERS:
        ways = (verb.name, *verb.replaces, *verb.said_by)
        if not any(vocabulary.stands(word, text) for word in ways):
            yield _of(
                VERB,
                subject,
                f"the summary of {item.name} does not say {verb.name}, nor a word for it",
                f"begin it with {verb.name.capitalize()}",
                where="summary",
            )


def _fault(name: str) -> str:
    if len(name) > _LONGEST:
        return f"{len(name)} characters long, over {_LONGEST}"
    return "not lower-case words joined by _"


def _formed(name: str) -> str:
    words = [re.sub(r"[^a-z0-9]", "", word) for word in names.segments(name)]
    joined = "_".join(filter(None, words))[:_LONGEST].strip("_")
    return joined if _FORM.fullmatch(joined) else "by words of a-z and 0-9, joined by _"


def _of(rule: Rule, subject: Subject, message: str, fix: str, *, where: str = "name") -> Finding:
    return Finding.of(rule, subject, where, message, fix, key=subject.descriptor.name)
