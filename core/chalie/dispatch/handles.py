"""Kept results that are handed on: `result:<id>` as an argument stands for the whole text.

There are three forms of a call's arguments. As the model wrote them, a handle is the whole text
`result:<id>`. *Bound*, it says what it stands for, `result:<id> sha256:<hash> <size> bytes`: that is what a
person approves and what is recorded. *Expanded*, the text itself is in its place: that is what is checked
against the schema, what `classify` is asked about, and what runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ..errors import ArgumentRefused, ChalieError

if TYPE_CHECKING:
    from ..ledger import Results as Kept

__all__ = ["MOST_EXPANDED", "Handles", "has_handle", "is_handle"]

#: bytes of UTF-8 that all handles of one call may stand for together, each counted as often as it stands.
MOST_EXPANDED: Final = 8 * 1024 * 1024

_HANDLE: Final = re.compile(r"result:([A-Za-z0-9_-]{1,64})")
_BOUND: Final = re.compile(
    r"result:([A-Za-z0-9_-]{1,64}) sha256:([0-9a-f]{64}) ([0-9]+) bytes((?: as text)*)"
)
#: what a text that only looks bound gets, so that it can be told from one that is.
_AS_TEXT: Final = " as text"


class Handles:
    """Binds and expands the handles in arguments.

    Args:
        kept: where whole results are.
    """

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def bind(self, principal: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return a copy of the arguments with each handle bound to what it stands for; reads no text.

        Args:
            principal: whose results they must be.
            arguments: JSON values of bounded depth.

        Raises:
            ChalieError: `result-unknown`, where one is unknown, expired or another principal's.
            ArgumentRefused: `arguments-too-large`, where they stand for too much.
            LedgerUnavailable: they cannot be looked up.
        """
        known: dict[str, tuple[str, int]] = {}
        total = 0

        def bound(text: str) -> str:
            nonlocal total
            match = _HANDLE.fullmatch(text)
            if match is None:
                return text + _AS_TEXT if _BOUND.fullmatch(text) else text
            found = known.get(text)
            if found is None:
                looked_up = self._kept.facts(principal, match.group(1))
                if looked_up is None:
                    raise _unknown(match.group(1))
                found = known[text] = looked_up
            sha256, size = found
            total += size
            if total > MOST_EXPANDED:
                raise _too_large()
            return f"{text} sha256:{sha256} {size} bytes"

        changed: dict[str, Any] = _replaced(arguments, bound)
        return changed

    def expand(self, principal: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return a copy of bound arguments with each handle replaced by its text, each read once.

        Raises:
            ChalieError: `result-unknown`, where one is gone or no longer what was bound.
            ArgumentRefused: `arguments-too-large`.
            LedgerUnavailable: it cannot be read.
        """
        read: dict[str, str] = {}
        total = 0

        def expanded(text: str) -> str:
            nonlocal total
            match = _BOUND.fullmatch(text)
            if match is None:
                return text
            if match.group(4):
                return text[: -len(_AS_TEXT)]
            total += int(match.group(3))
            if total > MOST_EXPANDED:
                raise _too_large()
            body = read.get(text)
            if body is None:
                found = self._kept.get(principal, match.group(1))
                if found is None or found.sha256 != match.group(2) or found.size != int(match.group(3)):
                    raise _unknown(match.group(1))
                body = read[text] = found.body
            return body

        changed: dict[str, Any] = _replaced(arguments, expanded)
        return changed


def is_handle(text: str) -> bool:
    """Return whether a text is a handle as a model writes it."""
    return text.startswith("result:") and _HANDLE.fullmatch(text) is not None


def has_handle(value: Any) -> bool:
    """Return whether JSON values hold a text that may be a handle, bound or not."""
    if isinstance(value, str):
        return value.startswith("result:")
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return False
    for item in value:  # noqa: SIM110  (every call comes through here: a loop costs half of any())
        if type(item) is not int and has_handle(item):
            return True
    return False


def _unknown(result_id: str) -> ChalieError:
    return ChalieError(
        f"no kept result has the id {result_id!r}",
        code="result-unknown",
        hint="results are kept for a few days and only for whose call made them; call the tool again.",
    )


def _too_large() -> ArgumentRefused:
    return ArgumentRefused(
        f"the results in the arguments are over {MOST_EXPANDED} bytes together",
        code="arguments-too-large",
        hint="pass fewer or smaller results in one call",
    )


def _replaced(value: Any, change: Callable[[str], str]) -> Any:
    """Return a copy of JSON values with every text changed. Keys are no values and stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _replaced(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, change) for item in value]
    return value
