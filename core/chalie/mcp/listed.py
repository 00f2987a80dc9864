"""What a server lists now, to tell whether a tool still is the one that a call was admitted with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..catalogue.server_tools import described
from ..catalogue.servers import Listing
from ..errors import NotReady

__all__ = ["Listed"]


class Listed:
    """The tools of the newest listing; a tool's descriptor is made when it is first called.

    Args:
        slug: the server's.
    """

    def __init__(self, slug: str) -> None:
        self._slug = slug
        self._version = ""
        self._tools: dict[str, Any] = {}
        self._digests: dict[str, str] = {}

    def take(self, known: Listing) -> None:
        """Take a newer listing in the place of the last."""
        tools: dict[str, Any] = {}
        for tool in known.tools:
            if isinstance(tool, Mapping) and isinstance(tool.get("name"), str):
                tools.setdefault(tool["name"], tool)
        same = {name for name, tool in tools.items() if self._tools.get(name) == tool}
        self._digests = {name: digest for name, digest in self._digests.items() if name in same}
        self._tools, self._version = tools, known.version

    def expect(self, tool: str, digest: str) -> None:
        """Refuse a call of a tool that is not, or not any more, the one it was admitted with.

        Raises:
            NotReady: the server lists another tool of that name, or none.
        """
        now = self._digests.get(tool)
        if now is None and tool in self._tools:
            found, _ = described(self._slug, self._version, [self._tools[tool]])
            now = self._digests[tool] = found[0].hash if found else ""
        if now != digest:
            what = "lists another tool of that name now" if now else "does not list that tool any more"
            raise NotReady(
                f"the server {self._slug} {what}, so it was not called",
                hint="find it again with find_tools in the next turn; a person may be asked about it anew.",
            )
