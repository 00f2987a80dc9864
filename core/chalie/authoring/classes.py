"""The rule that a class of side effect is not milder than the words a tool goes by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .. import names
from ..calls import SideEffect
from ..discovery.words import words
from ..gate.display import escaped
from .finding import Finding, Subject, rule
from .vocabulary import Vocabulary

__all__ = ["RULES", "check"]

MILD: Final = rule("class-mild")
RULES: Final = (MILD,)


def check(subject: Subject, vocabulary: Vocabulary) -> Iterator[Finding]:
    """Yield each class of an ability that looks too mild."""
    item = subject.descriptor
    if not subject.classed:
        return
    if item.actions:
        for action, effect in item.actions.items():
            word = next(iter(names.segments(action)), "")
            yield from _judged(subject, vocabulary, f"action {action}", word, effect, f"{item.name}.{action}")
        return
    verb = names.segments(item.name)[-1:] or ("",)
    word = verb[0] if verb[0] in vocabulary.classes or verb[0] in vocabulary.verbs else ""
    first = word or next(iter(words(item.summary)), "")
    yield from _judged(subject, vocabulary, "class", first, item.side_effect, item.name)


def _judged(
    subject: Subject, vocabulary: Vocabulary, where: str, word: str, effect: SideEffect, whose: str
) -> Iterator[Finding]:
    expected = vocabulary.classes.get(word)
    if expected is None or effect.severity >= expected.severity:
        return
    if expected is SideEffect.WRITE and effect is not SideEffect.READ:
        return  # what is made may be made in memory
    yield Finding.of(
        MILD,
        subject,
        where,
        f"{escaped(whose)} says {word} and is of the class {effect.value}",
        f"make it {expected.value}, or add an exception with the reason",
    )
