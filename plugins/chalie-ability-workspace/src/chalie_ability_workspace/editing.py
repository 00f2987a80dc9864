"""The ability `edit`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chalie import SideEffect, ToolResult

from .guarded import protected, secret
from .opening import read_whole, replace
from .refusal import Refused
from .workspace import WorkspaceAbility, ask_always, openly

__all__ = ["Edit"]


class Edit(WorkspaceAbility):
    """Parts of a file, exchanged for others: all of them or none."""

    actions = {"edit": SideEffect.WRITE}
    aliases = {"file": "path", "file_path": "path", "filename": "path"}

    def name(self) -> str:
        """Return what the model calls it by."""
        return "edit"

    def summary(self) -> str:
        """Say what it does, for the model and for search."""
        return (
            "Change parts of a file of the workspace: each old text must occur exactly once and becomes the "
            "new one. Several edits are made together or not at all."
        )

    def examples(self) -> list[str]:
        """Return what people say who need it."""
        return [
            "change the port in the config file",
            "rename this function in main.py",
            "fix the typo in the second paragraph",
            "replace this line with another",
            "remove that import from the file",
            "add a parameter to the constructor",
            "patch the source file",
        ]

    def search_tooltip(self) -> str:
        """Return a few words for a user interface."""
        return "Change parts of a file"

    def parameters(self) -> dict[str, Any]:
        """Return the JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": {
                "path": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 4096,
                    "description": "The file: relative to the workspace's folder, or absolute inside it.",
                },
                "edits": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 200,
                    "description": "Made one after the other.",
                    "items": {
                        "type": "object",
                        "properties": {
                            "old": {
                                "type": "string",
                                "minLength": 1,
                                "description": "Text that occurs exactly once, with enough around it.",
                            },
                            "new": {"type": "string", "description": "What stands there afterwards."},
                        },
                        "required": ["old", "new"],
                        "additionalProperties": False,
                    },
                },
            },
            "required": ["path", "edits"],
            "additionalProperties": False,
        }

    def classify(self, params: Any) -> str:
        """Return `edit`; protected places and secrets are always asked about: an edit tells what it finds."""
        ask_always(params["path"], protected, secret)
        return "edit"

    def work(self, params: Mapping[str, Any]) -> ToolResult:
        """Make the edits."""
        place = openly(params["path"], protected, secret)
        data, facts = read_whole(place)
        for at, change in enumerate(params["edits"], 1):
            old = change["old"].encode("utf-8", "surrogatepass")
            first = data.find(old)
            if first < 0:
                raise Refused(
                    f"edit {at}: its old text does not occur in {place.asked}; nothing was changed",
                    code="text-not-found",
                    hint="read the file and copy the text exactly, line ends and blanks included",
                )
            if data.find(old, first + 1) >= 0:
                raise Refused(
                    f"edit {at}: its old text occurs more than once in {place.asked}; nothing was changed",
                    code="text-not-unique",
                    hint="pass more of the text around it",
                )
            data = data[:first] + change["new"].encode("utf-8", "surrogatepass") + data[first + len(old) :]
        replace(place, data, unchanged=facts)
        return ToolResult.ok(None, path=place.shown, edits=len(params["edits"]), bytes=len(data))
