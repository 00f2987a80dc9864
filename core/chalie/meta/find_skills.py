"""`find_skills`: the same search over playbooks; whole playbooks come back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..ability import Ability
from ..calls import SideEffect
from ..result import ToolResult
from .find_tools import entries_parameter, meta, misses

if TYPE_CHECKING:
    from ..discovery.cascade import Found

__all__ = ["FindSkills", "body"]


class FindSkills(Ability):
    """Search the installed playbooks.

    Args:
        find: runs the cascade over the entries, seen from the turn's channel.
    """

    side_effect = SideEffect.READ
    aliases = {"queries": "query", "entries": "query", "skills": "query"}

    def __init__(self, find: Callable[[Sequence[str]], Found] | None = None) -> None:
        self._find = find

    def name(self) -> str:
        """Return `find_skills`."""
        return "find_skills"

    def summary(self) -> str:
        """Return what the model reads before it searches."""
        return (
            "Find skills: step-by-step playbooks for complex tasks, by title or by describing the task. "
            "Look here before starting work that takes several steps."
        )

    def examples(self) -> list[str]:
        """Return what asks for it."""
        return [
            "how should I go about this",
            "is there a playbook for planning a trip",
            "what are the steps to review a change",
            "find a guide for researching a question",
            "which skills are installed",
            "show me how to write release notes",
        ]

    def search_tooltip(self) -> str:
        """Return the words for a user interface."""
        return "Searching for skills"

    def parameters(self) -> dict[str, Any]:
        """Return the schema: a list of entries."""
        return entries_parameter("skill you look for")

    def run(self, params: Mapping[str, Any]) -> ToolResult:
        """Search every entry and return the playbooks whole."""
        if self._find is None:
            return ToolResult.error("search works only inside a turn", code="not-allowed")
        found = self._find(params["query"])
        return ToolResult.ok(body(found), **meta(found))


def body(found: Found) -> dict[str, Any]:
    """Return the one body of a skill search: whole playbooks, and the entries that found none."""
    from ..catalogue.descriptor import Playbook

    playbooks: list[dict[str, Any]] = []
    seen: set[tuple[str, str]] = set()
    for hit in found.hits:
        item = hit.item
        if not isinstance(item, Playbook) or item.key in seen:
            continue
        seen.add(item.key)
        row: dict[str, Any] = {"name": item.name, "description": item.description, "package": item.dist}
        if item.allowed_tools is not None:
            row["allowed_tools"] = list(item.allowed_tools)
        playbooks.append(row | {"playbook": item.body})
    return {"skills": playbooks, "rules": [], "not_found": misses(found)}
