"""The ability `read`."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Mapping
from typing import IO, Any, Final

from chalie import SideEffect, ToolResult

from .guarded import secret
from .opening import open_file
from .refusal import Refused
from .roots import Place
from .workspace import WorkspaceAbility, ask_always, openly

__all__ = ["Read"]

#: bytes of text in one result, so that a huge file is read in pieces.
MOST_BYTES: Final = 128 * 1024
#: characters of one line; minified files have lines of megabytes.
LONGEST_LINE: Final = 4000
USUAL_LINES: Final = 2000
_CHUNK: Final = 1 << 20


class Read(WorkspaceAbility):
    """A file of the workspace: text by lines, anything by bytes."""

    actions = {"read": SideEffect.READ}
    aliases = {
        "file": "path",
        "file_path": "path",
        "filename": "path",
        "offset": "start_line",
        "limit": "lines",
    }

    def name(self) -> str:
        """Return what the model calls it by."""
        return "read"

    def summary(self) -> str:
        """Say what it does, for the model and for search."""
        return (
            "Read a file of the workspace: text by lines, or a range of bytes. Long files come in pieces; "
            "the result says where the next one starts."
        )

    def examples(self) -> list[str]:
        """Return what people say who need it."""
        return [
            "read the README",
            "show me what is in config.toml",
            "open src/main.py and look at lines 40 to 80",
            "what does this file say",
            "print the first hundred lines of the log",
            "look into the source of the parser",
            "get the bytes at offset 512 of the image",
        ]

    def search_tooltip(self) -> str:
        """Return a few words for a user interface."""
        return "Read a file"

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
                "start_line": {"type": "integer", "minimum": 1, "description": "First line, from 1."},
                "lines": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 100_000,
                    "description": f"How many lines; {USUAL_LINES} unless given.",
                },
                "start_byte": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "First byte, from 0: reads bytes instead of lines. Bytes that are no text "
                    "come as base64.",
                },
                "bytes": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MOST_BYTES,
                    "description": "How many bytes, with start_byte.",
                },
            },
            "required": ["path"],
            "additionalProperties": False,
        }

    def classify(self, params: Any) -> str:
        """Return `read`; a file that holds secrets by its name is always asked about."""
        ask_always(params["path"], secret)
        return "read"

    def work(self, params: Mapping[str, Any]) -> ToolResult:
        """Read lines or bytes."""
        place = openly(params["path"], secret)
        opened, facts = open_file(place)
        with os.fdopen(opened, "rb") as file:
            if params.get("start_byte") is not None or params.get("bytes") is not None:
                return _bytes(place, file, facts.st_size, params)
            if b"\0" in file.read(8192):
                raise Refused(
                    f"{place.asked} is binary, {facts.st_size} bytes",
                    code="binary-file",
                    hint="pass start_byte= and bytes= to get a part of it as base64",
                )
            file.seek(0)
            start = int(params.get("start_line") or 1)
            count = int(params.get("lines") or USUAL_LINES)
            return _lines(place, file, facts.st_size, start, count, lambda: self.context.cancelled)


def _bytes(place: Place, file: IO[bytes], size: int, params: Mapping[str, Any]) -> ToolResult:
    start = int(params.get("start_byte") or 0)
    file.seek(start)
    data = file.read(min(int(params.get("bytes") or MOST_BYTES), MOST_BYTES))
    meta: dict[str, Any] = {"path": place.shown, "size": size, "start_byte": start, "bytes": len(data)}
    if start + len(data) < size:
        meta["next_byte"] = start + len(data)
    try:
        text = data.decode()
        if "\0" not in text:
            return ToolResult.ok(text, **meta)
    except UnicodeDecodeError:
        pass
    return ToolResult.ok(base64.b64encode(data).decode("ascii"), encoding="base64", **meta)


def _lines(
    place: Place, file: IO[bytes], size: int, start: int, count: int, cancelled: Callable[[], bool]
) -> ToolResult:
    """Return lines from `start` on, up to the bounds; a line too long is cut and said to be."""
    kept: list[bytes] = []
    cut = room = 0
    at = 1  # the number of the line that comes next
    more = False
    while True:
        # never more than a bounded piece of a line at a time: a file may be one line of gigabytes
        line = file.readline(LONGEST_LINE * 4 + 1)
        if not line:
            break
        if at >= start + count or (kept and room + len(line) > MOST_BYTES):
            more = True
            break
        whole = line.endswith(b"\n")
        shown, long = _shortened(line)
        while not whole:
            rest = file.readline(_CHUNK)
            whole = not rest or rest.endswith(b"\n")
            long = long or bool(rest)
            if cancelled():
                break
        if at >= start:
            kept.append(shown)
            room += len(shown)
            cut += long
        at += 1
        if at % 4096 == 0 and cancelled():
            more = True
            break
    meta: dict[str, Any] = {"path": place.shown, "size": size, "start_line": start, "lines": len(kept)}
    if more:
        meta["next_line"] = at
    if cut:
        meta["lines_cut"] = cut
    text = b"".join(kept)
    try:
        return ToolResult.ok(text.decode(), **meta)
    except UnicodeDecodeError:
        return ToolResult.ok(text.decode("utf-8", "replace"), encoding="not UTF-8", **meta)


def _shortened(line: bytes) -> tuple[bytes, bool]:
    text = line.decode("utf-8", "surrogateescape")
    if len(text) <= LONGEST_LINE:
        return line, False
    return text[:LONGEST_LINE].encode("utf-8", "surrogateescape") + "…\n".encode(), True
