"""What a client gets back: the envelope as text, what it gates by as metadata, and progress on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from .offer import definitions, hints

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp_types import CallToolResult, ContentBlock

    from ..catalogue.descriptor import Descriptor
    from .doors import Exchange

__all__ = ["Progressing", "answered", "refused", "seen_blocks"]

#: characters of Base64 of the pictures and sound in one answer.
_LARGEST_SEEN: Final = 2 * 1024 * 1024


def answered(
    turn: Exchange, text: str, found: Sequence[Descriptor], late: Iterable[str] = ()
) -> CallToolResult:
    """Return the answer to a call.

    Args:
        turn: it was made in.
        text: its envelope.
        found: the tools it found, whose definitions go along.
        late: envelopes of earlier calls that have come to an end since.
    """
    from mcp_types import CallToolResult, TextContent

    record = turn.records[-1] if turn.records else None
    texts = [text]
    meta: dict[str, Any] = {}
    if record is not None:
        meta["chalie/call"] = record.call_id
        meta["chalie/permission"] = record.permission
        if record.code is not None:
            meta["chalie/code"] = record.code
        called = turn.state.snapshot.get(record.dist, record.name)
        if called is not None:
            meta["chalie/tool"] = {"name": record.name, **next(iter(hints(turn.state, (called,)).values()))}
    if found:
        added = definitions(turn.state, found)
        texts += [added] if added else []
        meta["chalie/tools"] = hints(turn.state, found)
    texts += late
    content: list[ContentBlock] = [TextContent(text=each) for each in texts]
    if record is not None:
        content += seen_blocks(turn.rich.get(record.ordinal))
    return CallToolResult(
        content=content,
        is_error=record is not None and record.status == "error",
        _meta=meta,
    )


def seen_blocks(rich: Any) -> list[ContentBlock]:
    """Return the pictures and sound of a result, marked as being for the person: the model reads the text.

    Args:
        rich: what the result carried for a user interface, of whatever form.
    """
    from mcp_types import Annotations, AudioContent, ImageContent

    kinds: dict[str, type[ImageContent | AudioContent]] = {"image": ImageContent, "audio": AudioContent}
    blocks = rich.get("blocks") if isinstance(rich, Mapping) else None
    found: list[ContentBlock] = []
    room = _LARGEST_SEEN
    for block in blocks if isinstance(blocks, list) else ():
        if not isinstance(block, Mapping):
            continue
        kind = kinds.get(str(block.get("type")))
        data, mime = block.get("data"), block.get("mimeType")
        if kind is None or not isinstance(data, str) or not isinstance(mime, str) or len(data) > room:
            continue
        room -= len(data)
        found.append(kind(data=data, mime_type=mime, annotations=Annotations(audience=["user"])))
    return found


def refused(text: str, late: Iterable[str] = ()) -> CallToolResult:
    """Return the answer to what was no call of any tool."""
    from mcp_types import CallToolResult, TextContent

    return CallToolResult(content=[TextContent(text=each) for each in (text, *late)], is_error=True)


class Progressing:
    """Tells a client how far its call is, from whichever thread that is said on, and never after its end.

    Args:
        context: of the request.
        loop: the one that serves the connection.
    """

    def __init__(self, context: ServerRequestContext[Any, Any], loop: asyncio.AbstractEventLoop) -> None:
        self._context = context
        self._loop = loop
        self._last = 0.0
        self._over = False
        self._sending: set[asyncio.Task[None]] = set()

    def __call__(self, call_id: str, fraction: float | None, message: str) -> None:
        """Tell how far a call is: from 0 to 1, or None where that is not known."""
        self._loop.call_soon_threadsafe(self._say, fraction, message)

    async def told(self) -> None:
        """Wait until all that was said is told, and say nothing more: the answer follows."""
        self._over = True
        if self._sending:
            await asyncio.wait(self._sending)

    def give_up(self) -> None:
        """Say nothing more: there is no answer."""
        self._over = True
        for task in self._sending:
            task.cancel()

    def _say(self, fraction: float | None, message: str) -> None:
        if self._over:
            return
        # what is told must grow; where nothing is known of the whole, it grows towards it
        self._last = max(self._last, fraction) if fraction is not None else self._last + (1 - self._last) / 8
        task = self._loop.create_task(self._send(self._last, 1.0 if fraction is not None else None, message))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send(self, fraction: float, total: float | None, message: str) -> None:
        # the SDK knows whether the client asked to be told
        await self._context.session.report_progress(fraction, total, message or None)
