"""The ability `write`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chalie import SideEffect, ToolResult

from .guarded import protected
from .opening import WHOLE, replace
from .refusal import Refused
from .workspace import WorkspaceAbility, ask_always, openly

__all__ = ["Write"]


class Write(WorkspaceAbility):
    """A file of the workspace, put in place whole."""

    actions = {"write": SideEffect.WRITE}
    aliases = {
        "file": "path",
        "file_path": "path",
        "filename": "path",
        "text": "content",
        "contents": "content",
    }

    def name(self) -> str:
        """Return what the model calls it by."""
        return "write"

    def summary(self) -> str:
        """Say what it does, for the model and for search."""
        return (
            "Write a file of the workspace, making its folders. The whole content is replaced; to change a "
            "part of a file use edit."
        )

    def examples(self) -> list[str]:
        """Return what people say who need it."""
        return [
            "save this as notes.md",
            "create a new file for the parser",
            "write the report to out/report.txt",
            "create a new file called Dockerfile",
            "put this text into a file",
            "replace the whole file with this",
            "store the generated code on disk",
        ]

    def search_tooltip(self) -> str:
        """Return a few words for a user interface."""
        return "Write a file"

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
                "content": {"type": "string", "description": "The whole content."},
                "if_exists": {
                    "type": "string",
                    "enum": ["overwrite", "refuse"],
                    "default": "overwrite",
                    "description": "What to do where the file is there already.",
                },
            },
            "required": ["path", "content"],
            "additionalProperties": False,
        }

    def classify(self, params: Any) -> str:
        """Return `write`; a place that other programs run or obey is always asked about."""
        ask_always(params["path"], protected)
        return "write"

    def work(self, params: Mapping[str, Any]) -> ToolResult:
        """Write the file."""
        place = openly(params["path"], protected)
        data = str(params["content"]).encode("utf-8", "surrogatepass")
        if len(data) > WHOLE:
            raise Refused(f"the content has {len(data)} bytes, over {WHOLE}", code="too-large")
        new = replace(place, data, only_new=params.get("if_exists") == "refuse")
        return ToolResult.ok(None, path=place.shown, bytes=len(data), new=new)
