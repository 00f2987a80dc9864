"""The rule that a description tells what a tool does, and does not steer the model that reads it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..gate.display import escaped
from .finding import Finding, Subject, rule
from .letters import described, without_invisible
from .vocabulary import Vocabulary

__all__ = ["RULES", "check"]

INSTRUCTION: Final = rule("instruction")
RULES: Final = (INSTRUCTION,)

_AROUND: Final = 12


def check(subject: Subject, vocabulary: Vocabulary) -> Iterator[Finding]:
    """Yield what in an ability's descriptions is aimed at the model."""
    item = subject.descriptor
    for where, text in (
        ("summary", item.summary),
        ("search tooltip", item.search_tooltip),
        *(
            (where, text)
            for where, text in described(item.parameters, "parameter ")
            if "description of" in where
        ),
    ):
        plain = " ".join(without_invisible(text).split())
        said: set[str] = set()
        for instruction in vocabulary.instructions:
            match = instruction.pattern.search(plain)
            if match is None or instruction.why in said:
                continue
            said.add(instruction.why)
            begin = max(0, match.start() - _AROUND)
            quote = escaped(plain[begin : match.end() + _AROUND].strip())
            yield Finding.of(
                INSTRUCTION,
                subject,
                where,
                f'the {where} of {escaped(item.name)} is aimed at the model: {instruction.why} ("…{quote}…")',
                "say what the tool does; leave the conduct of the model to the program that runs it",
            )
