"""Which of its conversations a client's request belongs to, in each era's own way."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from .doors import Caller

    Context = ServerRequestContext[Any, Any]

__all__ = ["Conversation", "conversation_of", "invalid", "is_modern"]

#: where a client of the era without sessions says which of its conversations a request belongs to.
NAMED: Final = "chalie/conversation"
HEADER: Final = "chalie-conversation"
_LONGEST: Final = 128


@frozen
class Conversation:
    """A conversation of one client.

    Attributes:
        key: tells it from every other, those of other callers included.
        id: what its turns have, for the inbox, the record, and what was declined.
    """

    key: tuple[str, ...]
    id: str


def is_modern(context: Context) -> bool:
    """Tell whether a request is of the era without sessions, and without requests to the client."""
    return context.protocol_version.startswith("2026")


def conversation_of(context: Context, caller: Caller, process: str) -> Conversation | None:
    """Return a request's conversation; None where it does not say.

    Args:
        context: of the request.
        caller: who makes it.
        process: tells this process from every other.

    Raises:
        MCPError: what it says cannot be one.
    """
    request = context.request
    if request is None:
        return Conversation(("pipe",), f"mcp-{process}")
    if not is_modern(context):
        session = request.headers.get("mcp-session-id")
        if session is None:
            return None
        # the id is as good as a password to the session, and is kept out of the ledger
        return Conversation(("session", caller.id, session), f"mcp-{_short(process, session)}")
    given = (context.meta or {}).get(NAMED) or request.headers.get(HEADER)
    if given is None:
        return None
    if not isinstance(given, str) or len(given) > _LONGEST or not given.isprintable():
        raise invalid(f"{NAMED} is a text of 1 to {_LONGEST} printable characters")
    # of one token's own: no other client of the same principal, and no other program, shares it
    return Conversation(("conversation", caller.id, given), f"mcp-{caller.id}-{given}")


def _short(process: str, session: str) -> str:
    return hashlib.sha256(f"{process}:{session}".encode()).hexdigest()[:16]


def invalid(message: str) -> Exception:
    """Return what a request with unusable parameters is answered with."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import INVALID_PARAMS

    return MCPError(INVALID_PARAMS, message)
