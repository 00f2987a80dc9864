"""Long results: cut to what a model can read, and kept whole (`handles` hands them on)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from attrs import evolve

from ..envelope import body_text, cut
from ..errors import LedgerUnavailable
from ..result import Scalar, ToolResult

if TYPE_CHECKING:
    from ..ledger import Results as Kept

__all__ = ["Results"]

#: characters of an error's hint, of each of its valid choices, and of all of them, that are shown.
_HINT_LENGTH: Final = 4096
_CHOICE_LENGTH: Final = 512
_CHOICES_LENGTH: Final = 4096
#: characters of all meta names and values together that are shown.
_META_LENGTH: Final = 8192


class Results:
    """What the host does with results that are too long.

    Args:
        kept: where whole bodies are kept.
        cap: bytes of UTF-8 of a body that a model is shown.
    """

    def __init__(self, kept: Kept, cap: int) -> None:
        self._kept = kept
        self._cap = cap

    def shown(self, principal: str, result: ToolResult) -> tuple[ToolResult, dict[str, Scalar]]:
        """Return a result no longer than the cap, and the host's own facts about what was cut.

        What is cut is kept whole for the principal: `truncated=true result=<id> size=<bytes>`.
        """
        facts: dict[str, Scalar] = {}
        if result.status == "success":
            if result.body is not None:
                text = body_text(result.body)
                shown = self._cut(principal, text, facts)
                if shown is not result.body:
                    result = ToolResult("success", shown, result.rich, result.meta)
        else:
            result = self._shown_error(principal, result, facts)
        if result.meta and sum(map(_length, result.meta.items())) > _META_LENGTH:
            result = evolve(result, meta=_some(result.meta))
            facts["meta_cut"] = True
        return result, facts

    def _cut(self, principal: str, text: str, facts: dict[str, Scalar]) -> str:
        if len(text) * 4 <= self._cap:  # no text of that length can be over
            return text
        shown, was_cut = cut(text, self._cap)
        if was_cut:
            facts["truncated"] = True
            facts["size"] = len(text.encode("utf-8", "surrogatepass"))
            try:
                facts["result"] = self._kept.put(principal, text)
            except LedgerUnavailable:
                facts["kept"] = False  # the beginning is better than nothing, and the reader is told
        return shown

    def _shown_error(self, principal: str, result: ToolResult, facts: dict[str, Scalar]) -> ToolResult:
        message = self._cut(principal, result.message, facts)
        if message is not result.message:
            result = evolve(result, message=message)
        if result.hint is not None and len(result.hint) > _HINT_LENGTH:
            result = evolve(result, hint=result.hint[: _HINT_LENGTH - 1] + "…")
        if result.valid and (
            sum(map(len, result.valid)) + 3 * len(result.valid) > _CHOICES_LENGTH
            or max(map(len, result.valid)) > _CHOICE_LENGTH
        ):
            facts["valid_total"] = len(result.valid)
            result = evolve(result, valid=_first(result.valid))
        return result


def _length(fact: tuple[str, Scalar]) -> int:
    key, value = fact
    return len(key) + (len(value) if isinstance(value, str) else 8)


def _some(meta: Mapping[str, Scalar]) -> dict[str, Scalar]:
    kept: dict[str, Scalar] = {}
    left = _META_LENGTH
    for fact in meta.items():
        left -= _length(fact)
        if left < 0:
            break
        kept[fact[0]] = fact[1]
    return kept


def _first(choices: tuple[str, ...]) -> tuple[str, ...]:
    """Return the first choices that there is room for; one that is too long to be shown is left out."""
    kept: list[str] = []
    left = _CHOICES_LENGTH
    for choice in choices:
        if len(choice) > _CHOICE_LENGTH:
            continue
        left -= len(choice) + 3
        if left < 0:
            break
        kept.append(choice)
    return tuple(kept)
