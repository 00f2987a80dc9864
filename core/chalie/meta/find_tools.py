"""`find_tools`: one name or one described action per entry; what is found becomes active."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..ability import Ability
from ..calls import SideEffect
from ..result import ToolResult

if TYPE_CHECKING:
    from ..catalogue.descriptor import Descriptor, Playbook
    from ..discovery.cascade import Found, Hit

__all__ = ["FindTools", "body", "entries_parameter", "misses"]

#: entries of one search; a turn that needs more searches twice.
MOST_ENTRIES = 32
#: characters of a summary in an answer: what a package's own may have. Servers write longer ones.
_SUMMARY = 2000


def entries_parameter(of: str) -> dict[str, Any]:
    """Return the schema of `query`, the one parameter both searches take."""
    return {
        "type": "object",
        "properties": {
            "query": {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "maxItems": MOST_ENTRIES,
                "description": f"One entry per {of}: a name if you know it, else one described action.",
            }
        },
        "required": ["query"],
        "additionalProperties": False,
    }


class FindTools(Ability):
    """Search the installed tools and activate what is found.

    Args:
        find: runs the cascade over the entries, seen from the turn's channel.
        activate: makes a found tool callable for the rest of the turn; returns the name to call it by.
        reach: says of a server's tool that it cannot be reached, and why; empty where it can.
    """

    side_effect = SideEffect.READ
    aliases = {"queries": "query", "entries": "query", "tools": "query"}

    def __init__(
        self,
        find: Callable[[Sequence[str]], Found] | None = None,
        activate: Callable[[Descriptor], str] | None = None,
        reach: Callable[[Descriptor], Mapping[str, str]] | None = None,
    ) -> None:
        self._find = find
        self._activate = activate
        self._reach = reach

    def name(self) -> str:
        """Return `find_tools`."""
        return "find_tools"

    def summary(self) -> str:
        """Return what the model reads before it searches."""
        return (
            "Find tools by exact name or by describing one action per entry. "
            "Tools found become available to call in this turn."
        )

    def examples(self) -> list[str]:
        """Return what asks for it."""
        return [
            "what can you do",
            "is there a tool for this",
            "find a tool that sends mail",
            "which tools are installed",
            "look for something that can check the weather",
            "activate the calendar tool",
        ]

    def search_tooltip(self) -> str:
        """Return the words for a user interface."""
        return "Searching for tools"

    def parameters(self) -> dict[str, Any]:
        """Return the schema: a list of entries."""
        return entries_parameter("tool you look for")

    def run(self, params: Mapping[str, Any]) -> ToolResult:
        """Search every entry, activate the hits, and say what was not found and why."""
        if self._find is None or self._activate is None:
            return ToolResult.error("search works only inside a turn", code="not-allowed")
        found = self._find(params["query"])
        answer = body(found, self._activate, self._reach)
        return ToolResult.ok(answer, **meta(found))


def body(
    found: Found,
    exposed: Callable[[Descriptor], str],
    reach: Callable[[Descriptor], Mapping[str, str]] | None = None,
) -> dict[str, Any]:
    """Return the one body of a tool search.

    Args:
        found: the cascade's answer.
        exposed: gives the name each found tool is called by (and, in a turn, activates it).
        reach: says of a server's tool that it cannot be reached now, as `availability` and `reason`.
    """
    injected: list[dict[str, Any]] = []
    seen: set[tuple[str, str]] = set()
    for hit in found.hits:
        if hit.item.key in seen:
            continue
        seen.add(hit.item.key)
        injected.append(_row(hit, exposed, reach))
    return {"injected": injected, "not_found": misses(found)}


def _row(
    hit: Hit,
    exposed: Callable[[Descriptor], str],
    reach: Callable[[Descriptor], Mapping[str, str]] | None,
) -> dict[str, Any]:
    from ..catalogue.descriptor import Descriptor

    item: Descriptor | Playbook = hit.item
    if not isinstance(item, Descriptor):
        raise TypeError(f"a tool search found {item.name!r}, which is no tool")
    # the whole of it is in the list of tools that a found one joins
    summary = item.summary if len(item.summary) <= _SUMMARY else f"{item.summary[: _SUMMARY - 1]}…"
    row: dict[str, Any] = {"name": exposed(item), "summary": summary}
    if hit.not_allowed is not None:
        row["not_allowed"] = hit.not_allowed
    if reach is not None and item.bare:
        row |= reach(item)
    return row


def misses(found: Found) -> list[dict[str, Any]]:
    """Return the entries that found nothing, each with its reason and, where ambiguous, the owners."""
    rows: list[dict[str, Any]] = []
    for miss in found.misses:
        row: dict[str, Any] = {"entry": miss.entry, "reason": miss.reason}
        if miss.owners:
            row["owners"] = list(miss.owners)
        rows.append(row)
    return rows


def meta(found: Found) -> dict[str, Any]:
    """Return the counts of a search and what it ran without."""
    facts: dict[str, Any] = {
        "found": len({hit.item.key for hit in found.hits}),
        "not_found": len(found.misses),
    }
    if found.degraded:
        facts["degraded"] = ",".join(found.degraded)
    return facts
