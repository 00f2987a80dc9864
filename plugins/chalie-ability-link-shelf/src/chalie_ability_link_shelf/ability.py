"""The ability `link_shelf`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chalie import Ability, SideEffect, ToolResult

__all__ = ["LinkShelf"]

#: links that one person can keep.
_MOST = 1000


class LinkShelf(Ability):
    """Keeps links, each person's apart, in a file in the package's own folder."""

    actions = {"add": SideEffect.WRITE, "list": SideEffect.READ}
    action_required = {"add": ["url"]}
    aliases = {"link": "url", "address": "url"}

    def name(self) -> str:
        """Return what the model calls it by."""
        return "link_shelf"

    def summary(self) -> str:
        """Say what it does, for the model and for search."""
        return (
            "The link shelf of the user: "
            "add a web address with a note to come back to, or list the links kept so far."
        )

    def examples(self) -> list[str]:
        """Return what people say who need it, each in other words."""
        return [
            "save this page for later",
            "keep this link for me",
            "put that article away to read tomorrow",
            "which links did I save",
            "show me the pages I wanted to read",
            "what was the address of that article I kept",
        ]

    def search_tooltip(self) -> str:
        """Return a few words for a user interface."""
        return "Links kept for later"

    def parameters(self) -> dict[str, Any]:
        """Return the JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": {
                "action": {
                    "type": "string",
                    "enum": ["add", "list"],
                    "description": "add: keep a link. list: show the links kept, newest first.",
                },
                "url": {
                    "type": "string",
                    "maxLength": 2000,
                    "description": "For add: the web address, as in https://example.org/page.",
                },
                "note": {
                    "type": "string",
                    "maxLength": 500,
                    "description": "For add: what the link is about.",
                },
            },
            "required": ["action"],
            "additionalProperties": False,
        }

    def run(self, params: Mapping[str, Any]) -> ToolResult:
        """Keep a link, or list the links kept."""
        shelf = self.context.data_folder / f"{self.context.principal.encode().hex()}.json"
        links = _read(shelf)
        if params["action"] == "list":
            return ToolResult.ok(links[::-1], count=len(links))
        url = str(params["url"]).strip()
        if not url.startswith(("https://", "http://")):
            return ToolResult.error(
                "that is no web address",
                code="bad-url",
                hint="pass the whole address, as in https://example.org/page",
            )
        if len(links) >= _MOST:
            return ToolResult.error(
                f"{_MOST} links are kept already",
                code="full",
                hint="tell the user, who decides what can go",
            )
        links.append({"url": url, "note": str(params.get("note", ""))})
        shelf.write_text(json.dumps(links), encoding="utf-8")
        return ToolResult.ok("kept", count=len(links))


def _read(shelf: Path) -> list[dict[str, str]]:
    """Return the links in a file, oldest first; none where there is no file yet."""
    if not shelf.exists():
        return []
    links: list[dict[str, str]] = json.loads(shelf.read_text(encoding="utf-8"))
    return links
