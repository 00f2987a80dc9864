"""Reading the whole listing of a server, page by page, whatever the server makes of that."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ..catalogue.servers import Listing
from ..errors import ChalieError
from ..names import shown
from .wire import set_aside

if TYPE_CHECKING:
    from mcp import ClientSession

__all__ = ["read_listing"]

MOST_PAGES: Final = 1_000
MOST_TOOLS: Final = 20_000
#: bytes of one definition that are kept to be looked at.
_MOST_BYTES: Final = 512 * 1024


async def read_listing(session: ClientSession) -> Listing:
    """Return everything that a server lists, with what is to be said of it.

    Raises:
        ChalieError: `server-error`: it does not answer with a listing.
        MCPError: it answers with an error.
    """
    tools: list[Any] = []
    problems: list[tuple[str, str, str]] = []
    modern = session.discover_result is not None
    cursor: str | None = None
    seen: set[str] = set()
    for number in range(1, MOST_PAGES + 1):
        page = await _page(session, cursor)
        found = page.get("tools")
        if not isinstance(found, list):
            raise ChalieError("its answer to tools/list holds no list of tools", code="server-error")
        for tool in found[: MOST_TOOLS - len(tools)]:
            wrong = _unstorable(tool, modern)
            if wrong is None:
                tools.append(tool)
            else:
                problems.append((_name(tool), wrong, "tell the server's author"))
        cursor = page.get("nextCursor")
        if len(tools) >= MOST_TOOLS and (cursor is not None or len(found) > MOST_TOOLS):
            problems.append(("", f"it lists over {MOST_TOOLS} tools; the rest is not read", ""))
            break
        if cursor is None:
            break
        stop = _stuck(cursor, seen, number, len(tools))
        if stop:
            problems.append(("", f"its listing was read up to page {number} only: {stop}", ""))
            break
        seen.add(cursor)
    else:
        problems.append(("", f"its listing goes on after {MOST_PAGES} pages; the rest is not read", ""))
    info = session.server_info
    server = {"name": info.name, "version": info.version} if info is not None else {"name": "", "version": ""}
    return Listing(server, session.protocol_version or "", time.time(), tuple(tools), tuple(problems))


async def _page(session: ClientSession, cursor: str | None) -> Mapping[str, Any]:
    from mcp_types import PaginatedRequestParams

    with set_aside() as answers:
        # no cursor for the first page; an empty text is a cursor like any other
        await session.list_tools(params=None if cursor is None else PaginatedRequestParams(cursor=cursor))
    return answers[0]


def _stuck(cursor: Any, seen: set[str], pages: int, tools: int) -> str:
    if not isinstance(cursor, str):
        return f"the cursor to the next page is {type(cursor).__name__}, not text"
    if cursor in seen:
        return "the cursor to the next page does not advance"
    return f"it has over {MOST_TOOLS} tools" if tools > MOST_TOOLS else ""


def _unstorable(tool: Any, modern: bool) -> str | None:
    """Return why a definition is not even kept; whether it is a good one is judged by the catalogue."""
    try:
        size = len(json.dumps(tool, allow_nan=False))
    except (ValueError, RecursionError):
        return "left out: its definition is nested too deep, or holds a number that JSON does not know"
    if size > _MOST_BYTES:
        return f"left out: its definition has {size} bytes, over {_MOST_BYTES}"
    if modern and isinstance(tool, Mapping):
        from mcp.shared.inbound import find_invalid_x_mcp_header

        wrong = find_invalid_x_mcp_header(tool.get("inputSchema"))
        if wrong is not None:
            return f"left out: a header it asks for is not allowed: {wrong[:200]}"
    return None


def _name(tool: Any) -> str:
    name = tool.get("name") if isinstance(tool, Mapping) else None
    return shown(name[:80]) if isinstance(name, str) else "without a name"
