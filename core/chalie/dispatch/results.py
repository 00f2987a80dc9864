"""Long results: cut to what a model can read, kept whole, and handed on by their handle."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve

from ..envelope import body_text, cut
from ..errors import ChalieError, LedgerUnavailable
from ..result import Scalar, ToolResult

if TYPE_CHECKING:
    from ..ledger import Results as Kept

__all__ = ["Results"]

#: a whole argument text that stands for a kept result.
_HANDLE: Final = re.compile(r"result:([A-Za-z0-9_-]{1,64})")
#: the same once it is bound: what a person approves and the trail shows.
_BOUND: Final = re.compile(r"result:([A-Za-z0-9_-]{1,64}) sha256:([0-9a-f]{64}) ([0-9]+) bytes")
#: characters of an error's hint, and of all its valid choices, that are shown.
_HINT_LENGTH: Final = 4096
_CHOICES_LENGTH: Final = 4096
#: characters of all meta values together that are shown.
_META_LENGTH: Final = 8192


class Results:
    """What the host does with results that are too long, and with the handles it gave for them.

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
        if result.meta and sum(map(_length, result.meta.values())) > _META_LENGTH:
            result = evolve(result, meta=_some(result.meta))
            facts["meta_cut"] = True
        return result, facts

    def decode(self, principal: str, schema: Mapping[str, Any], arguments: Any) -> Any:
        """Return the arguments with kept JSON in the place of handles where no text may stand.

        A parameter that takes an array, an object or a number could not take a handle otherwise. What is
        put there passes the same checks as if the model had written it, and is what a person is shown.

        Args:
            principal: whose results they must be.
            schema: of the parameters.
            arguments: not yet validated; returned as they are where there is nothing to do.

        Raises:
            ChalieError: `result-unknown`.
            LedgerUnavailable: they cannot be looked up.
        """
        if type(arguments) is not dict:
            return arguments
        decoded: dict[str, Any] = {}
        for key, value in arguments.items():
            match = _HANDLE.fullmatch(value) if isinstance(value, str) else None
            if match is None or _takes_text(schema.get("properties", {}).get(key)):
                continue
            try:
                decoded[key] = json.loads(self._known(principal, match.group(1)).body)
            except (ValueError, RecursionError):
                pass  # it is no JSON: validation says what the parameter takes
        return {**arguments, **decoded} if decoded else arguments

    def bind(self, principal: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments with each handle bound to the id, hash and size of what it stands for.

        Args:
            principal: whose results they must be.
            arguments: JSON values; returned as they are where they hold no handle.

        Raises:
            ChalieError: `result-unknown`, where one is unknown, expired or another principal's.
            LedgerUnavailable: they cannot be looked up.
        """
        if not _any_handle(arguments):
            return arguments

        def bound(text: str) -> str:
            match = _HANDLE.fullmatch(text)
            if match is None:
                return text
            body = self._known(principal, match.group(1))
            return f"{text} sha256:{body.sha256} {body.size} bytes"

        changed: dict[str, Any] = _replaced(arguments, bound)
        return changed

    def expand(self, principal: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return bound arguments with each handle replaced by the whole text it stands for.

        Raises:
            ChalieError: `result-unknown`, where it is gone or no longer what was bound.
            LedgerUnavailable: it cannot be read.
        """
        if not _any_handle(arguments):
            return arguments

        def expanded(text: str) -> str:
            match = _BOUND.fullmatch(text)
            if match is None:
                return text
            body = self._known(principal, match.group(1))
            if body.sha256 != match.group(2):
                raise _unknown(match.group(1))
            whole: str = body.body
            return whole

        changed: dict[str, Any] = _replaced(arguments, expanded)
        return changed

    def _known(self, principal: str, result_id: str) -> Any:
        found = self._kept.get(principal, result_id)
        if found is None:
            raise _unknown(result_id)
        return found

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
        if len(result.valid) > 8 and sum(map(len, result.valid)) > _CHOICES_LENGTH:
            facts["valid_total"] = len(result.valid)
            result = evolve(result, valid=_first(result.valid))
        return result


def _unknown(result_id: str) -> ChalieError:
    return ChalieError(
        f"no kept result has the id {result_id!r}",
        code="result-unknown",
        hint="results are kept for a few days and only for whose call made them; call the tool again.",
    )


def _takes_text(schema: Any) -> bool:
    kinds = schema.get("type") if isinstance(schema, Mapping) else None
    return kinds is None or "string" in (kinds if isinstance(kinds, list | tuple) else (kinds,))


def _any_handle(value: Any) -> bool:
    if isinstance(value, str):
        return value.startswith("result:")
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return False
    for item in value:  # noqa: SIM110  (every call comes through here: a loop costs half of any())
        if type(item) is not int and _any_handle(item):
            return True
    return False


def _replaced(value: Any, change: Any) -> Any:
    """Return a copy of JSON values with every text changed. Keys are no values and stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _replaced(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, change) for item in value]
    return value


def _length(value: Scalar) -> int:
    return len(value) if isinstance(value, str) else 8


def _some(meta: Mapping[str, Scalar]) -> dict[str, Scalar]:
    kept: dict[str, Scalar] = {}
    left = _META_LENGTH
    for key, value in meta.items():
        left -= _length(value)
        if left < 0:
            break
        kept[key] = value
    return kept


def _first(choices: tuple[str, ...]) -> tuple[str, ...]:
    kept: list[str] = []
    left = _CHOICES_LENGTH
    for choice in choices:
        left -= len(choice)
        if left < 0:
            break
        kept.append(choice)
    return tuple(kept)
