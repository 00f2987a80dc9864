"""The ability `file_deliver`."""

from __future__ import annotations

import base64
import hashlib
import mimetypes
from collections.abc import Mapping
from typing import Any, Final

from chalie import SideEffect, ToolResult

from .guarded import secret
from .opening import read_whole
from .workspace import WorkspaceAbility, ask_always, openly

__all__ = ["FileDeliver"]

_MOST: Final = 16 * 1024 * 1024


class FileDeliver(WorkspaceAbility):
    """A file handed to the person in the conversation the call is made in, and to nobody else.

    It sends, and where that lands is said by the call's own context: a policy may let it go there unasked, as
    what it shows could be read and written into the answer just as well.
    """

    actions = {"deliver": SideEffect.EXTERNAL_SEND}
    aliases = {"file": "path", "file_path": "path", "filename": "path"}

    def name(self) -> str:
        """Return what the model calls it by."""
        return "file_deliver"

    def summary(self) -> str:
        """Say what it does, for the model and for search."""
        return "Hand a file of the workspace to the person in this conversation, as an attachment."

    def examples(self) -> list[str]:
        """Return what people say who need it."""
        return [
            "send me the report as a file",
            "give me the finished PDF",
            "attach the spreadsheet to your answer",
            "let me download the image you made",
            "hand over the generated archive",
            "send me the file with the chart",
        ]

    def search_tooltip(self) -> str:
        """Return a few words for a user interface."""
        return "Hand over a file"

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
                "caption": {"type": "string", "maxLength": 500, "description": "A line to go with it."},
            },
            "required": ["path"],
            "additionalProperties": False,
        }

    def classify(self, params: Any) -> str:
        """Return `deliver`; a file that holds secrets by its name is always asked about."""
        ask_always(params["path"], secret)
        return "deliver"

    def destination(self, params: Any) -> str | None:
        """Return the call's own conversation: there is no other way out of here."""
        return self.context.conversation

    def work(self, params: Mapping[str, Any]) -> ToolResult:
        """Hand the file to the user interface, with the bytes that were checked."""
        place = openly(params["path"], secret)
        data, _ = read_whole(place, _MOST)
        name = place.parts[-1]
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        facts = {
            "name": name,
            "media_type": kind,
            "size": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
        }
        rich = {
            "kind": "file",
            **facts,
            "caption": params.get("caption") or "",
            "base64": base64.b64encode(data).decode("ascii"),
        }
        return ToolResult.ok(facts, rich, path=place.shown)
