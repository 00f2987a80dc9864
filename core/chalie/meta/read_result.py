"""`read_result`: page through a result that was too long to show whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..ability import Ability
from ..calls import SideEffect
from ..result import ToolResult

__all__ = ["ReadResult"]

#: characters of one page when nothing is asked: well under the default cap of a result.
PAGE = 16_000
#: characters of the longest page that can be asked for.
LONGEST_PAGE = 48_000


class ReadResult(Ability):
    """Return a page of a kept result.

    Args:
        read: gives the whole text of a kept result of this principal, or None where there is none.
    """

    side_effect = SideEffect.READ
    aliases = {"result": "id", "handle": "id"}

    def __init__(self, read: Callable[[str], str | None] | None = None) -> None:
        self._read = read

    def name(self) -> str:
        """Return `read_result`."""
        return "read_result"

    def summary(self) -> str:
        """Return what the model reads before it pages."""
        return "Read further in a tool result that was cut: give the id from its result= mark and an offset."

    def examples(self) -> list[str]:
        """Return what asks for it."""
        return [
            "show the rest of that result",
            "read the next page of the output",
            "the result was truncated, continue",
            "get more of the last tool result",
            "read from character 20000 of the result",
            "what did the cut part say",
        ]

    def search_tooltip(self) -> str:
        """Return the words for a user interface."""
        return "Reading a long result"

    def parameters(self) -> dict[str, Any]:
        """Return the schema: the id, an offset and a limit in characters."""
        return {
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": "The id after result=, with or without 'result:'."},
                "offset": {
                    "type": "integer",
                    "minimum": 0,
                    "default": 0,
                    "description": "Where to start, in characters.",
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": LONGEST_PAGE,
                    "default": PAGE,
                    "description": "How many characters to return.",
                },
            },
            "required": ["id"],
            "additionalProperties": False,
        }

    def run(self, params: Mapping[str, Any]) -> ToolResult:
        """Return the page, with where the next one starts."""
        if self._read is None:
            return ToolResult.error("results are kept only inside a turn", code="not-allowed")
        handle = str(params["id"]).removeprefix("result:")
        text = self._read(handle)
        if text is None:
            return ToolResult.error(
                f"no kept result has the id {handle!r}",
                code="result-unknown",
                hint="results are kept for a few days; call the tool again if you still need it.",
            )
        offset, limit = int(params.get("offset", 0)), int(params.get("limit", PAGE))
        page = text[offset : offset + limit]
        end = offset + len(page)
        facts: dict[str, Any] = {"id": handle, "offset": offset, "total": len(text)}
        if end < len(text):
            facts["next"] = end
        return ToolResult.ok(page, **facts)
