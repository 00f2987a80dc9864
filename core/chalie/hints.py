"""Find the record that a hint means: for abilities whose parameters name shared records in words.

A parameter `<thing>Hint` takes what a person calls a record: its identifier, its title, or a part of its
title. `resolve` answers with the record, or with an error the model can act on. It never guesses.

    from chalie.hints import resolve

    def run(self, params):
        task = resolve(params["taskHint"], self.tasks(), thing="task", listed_by="task_list")
        if isinstance(task, ToolResult):
            return task  # the model is told what it can pass
        …
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

from .result import ToolResult

__all__ = ["MOST", "normal", "resolve"]

_Candidate = TypeVar("_Candidate")

#: candidates that an `ambiguous-hint` names; more would be read by nobody.
MOST: Final = 8
#: characters of a hint or a title that a message shows.
_SHOWN: Final = 80
_BLANKS: Final = re.compile(r"\s+")
#: characters drawn as nothing: soft hyphens, joiners, direction marks
_UNSEEN: Final = "Cf"


def resolve(
    hint: str,
    candidates: Iterable[_Candidate],
    *,
    identifier: Callable[[_Candidate], str] | None = None,
    title: Callable[[_Candidate], str] | None = None,
    thing: str = "record",
    listed_by: str | None = None,
) -> _Candidate | ToolResult:
    """Return the one candidate that a hint names, or the error to answer with.

    The first of these that fits anything decides, and it must fit exactly one candidate: the identifier as
    it is written; the title as it is written; the title in its normal form (see `normal`); a title that
    contains the hint, in normal form.

    Args:
        hint: what was given, as in `"quarterly report"`.
        candidates: the records that the caller may see, in the order to name them in.
        identifier: the record's identifier; default: its `id`, as an attribute or a key.
        title: what people call it; default: its `title`, else its `name`.
        thing: what such a record is called in the error's message, as in `task`.
        listed_by: the tool that lists them, named in the error's hint.

    Returns:
        The candidate, or an error: `ambiguous-hint`, whose `valid` holds at most eight texts that each
        resolve to one of the candidates, or `hint-not-found`.
    """
    if not isinstance(hint, str):
        raise TypeError(f"a hint is text, not {type(hint).__name__}")
    named = [_Named(each, (identifier or _identifier)(each), (title or _title)(each)) for each in candidates]
    fitting = _fitting(hint, named)
    if len(fitting) == 1:
        return fitting[0].candidate
    return _ambiguous(hint, fitting, named, thing) if fitting else _absent(hint, thing, listed_by)


def normal(text: str) -> str:
    """Return the form in which titles are compared.

    Unicode's compatibility form with case folded: composed and decomposed accents, full-width letters and
    other capitals are the same; characters drawn as nothing are left out, and any run of blanks is one.
    """
    for _ in range(8):  # folding can bring new compositions to light; two rounds nearly always do
        folded = unicodedata.normalize("NFKC", text).casefold()
        folded = "".join(c for c in folded if unicodedata.category(c) != _UNSEEN)
        folded = _BLANKS.sub(" ", unicodedata.normalize("NFKC", folded)).strip()
        if folded == text:
            break
        text = folded
    return text


class _Named(Generic[_Candidate]):
    """A candidate with what it is called by."""

    def __init__(self, candidate: _Candidate, identifier: object, title: object) -> None:
        self.candidate = candidate
        self.identifier = str(identifier)
        self.title = str(title)
        self.normal = normal(self.title)


def _fitting(hint: str, named: Sequence[_Named[_Candidate]]) -> list[_Named[_Candidate]]:
    """Return what the first rule that fits anything fits."""
    written, folded = hint.strip(), normal(hint)
    if not folded:
        return []  # it would be contained in every title
    return (
        [each for each in named if written and each.identifier.strip() == written]
        or [each for each in named if each.title.strip() == written]
        or [each for each in named if each.normal == folded]
        or [each for each in named if folded in each.normal]
    )


def _ambiguous(
    hint: str, fitting: Sequence[_Named[Any]], named: Sequence[_Named[Any]], thing: str
) -> ToolResult:
    valid = [_sure(each, named) for each in fitting]
    passable = list(dict.fromkeys(text for text in valid if text))[:MOST]
    said = ", ".join(_described(each) for each in fitting[:MOST])
    more = f" and {len(fitting) - MOST} more" if len(fitting) > MOST else ""
    step = "pass one of the valid values, as it is written" if passable else "ask which one is meant"
    return ToolResult.error(
        f"{_short(hint)!r} fits {len(fitting)} {_plural(thing)}: {said}{more}",
        code="ambiguous-hint",
        hint=f"{step}; where it is not clear which, ask the person",
        valid=passable,
    )


def _absent(hint: str, thing: str, listed_by: str | None) -> ToolResult:
    known = f"see what there is with {listed_by}" if listed_by else f"list the {_plural(thing)} first"
    if not normal(hint):
        message = f"the hint is empty, so it names no {thing}"
    else:
        message = f"no {thing} has the identifier or a title with {_short(hint)!r}"
    return ToolResult.error(
        message, code="hint-not-found", hint=f"{known}, and pass an identifier or a title of those"
    )


def _sure(one: _Named[Any], named: Sequence[_Named[Any]]) -> str | None:
    """Return a text that resolves to this candidate alone: its title where it can, else its identifier."""
    for text in (one.title.strip(), one.identifier.strip()):
        if text and _fitting(text, named) == [one]:
            return text
    return None


def _described(one: _Named[Any]) -> str:
    return f"{_short(one.title)} ({_short(one.identifier)})" if one.title.strip() else _short(one.identifier)


def _short(text: str) -> str:
    text = _BLANKS.sub(" ", text).strip()
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _plural(thing: str) -> str:
    if thing.endswith("y") and thing[-2:-1] not in "aeiou":
        return f"{thing[:-1]}ies"
    return f"{thing}es" if thing.endswith(("s", "x", "ch", "sh")) else f"{thing}s"


def _identifier(candidate: Any) -> str:
    return str(_fact(candidate, "id"))


def _title(candidate: Any) -> str:
    return str(_fact(candidate, "title", "name"))


def _fact(candidate: Any, *names: str) -> Any:
    for name in names:
        if isinstance(candidate, Mapping):
            if name in candidate:
                return candidate[name]
        elif hasattr(candidate, name):
            return getattr(candidate, name)
    missing = " or ".join(names)
    raise TypeError(
        f"a {type(candidate).__name__} has no {missing}: pass {'title' if names[1:] else 'identifier'}="
    )
