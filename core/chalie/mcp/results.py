"""What a server answers a call with, as the result that a model reads. It comes from outside, and says so."""

from __future__ import annotations

import base64
import binascii
import functools
import json
from collections.abc import Mapping
from typing import Any, Final

from .. import schema
from ..catalogue.descriptor import Descriptor
from ..errors import SchemaRefused
from ..result import ToolResult

__all__ = ["result_of"]

_ABSENT: Final = object()
#: characters of a reason that a validator gives.
_REASON: Final = 300


def result_of(descriptor: Descriptor, raw: Mapping[str, Any]) -> ToolResult:
    """Return the result of a call.

    Text stays text. Pictures and sound are described in the body and handed on in `rich`. Where there is
    structured content it is the body, with the text beside it if that says anything else.

    Args:
        descriptor: the tool, as the call was admitted with.
        raw: the server's answer, as it came.
    """
    source = descriptor.dist
    if raw.get("resultType") == "input_required":
        return ToolResult.error(
            f"{descriptor.own_name} asks for input during the call, which cannot be given here",
            code="needs-input",
            hint="do not retry with the same arguments; pass what it needs as arguments, if it takes them.",
            source=source,
        )
    text, rich = _read(raw.get("content"))
    structured = raw.get("structuredContent", _ABSENT)
    if raw.get("isError") is True:
        if not text and structured is not _ABSENT:
            text = json.dumps(structured, ensure_ascii=False)
        return ToolResult.error(
            text or f"{descriptor.own_name} failed and did not say why", code="server-error", source=source
        )
    why = _misfit(descriptor, structured)
    if why:
        said = text or ("" if structured is _ABSENT else json.dumps(structured, ensure_ascii=False))
        return ToolResult.error(
            f"the result is not what {descriptor.own_name} declares: {why}" + (f"\n{said}" if said else ""),
            code="result-mismatch",
            hint="what it said stands above; it ran, so do not retry to get another form.",
            source=source,
        )
    body: Any = text
    if structured is not _ABSENT and structured is not None:
        wrapped = isinstance(structured, Mapping) and len(structured) == 1 and "result" in structured
        if wrapped and _says(text, structured["result"]):
            body = structured["result"]  # FastMCP and the SDK wrap what is no object like that
        else:
            body = structured if _says(text, structured) else {"text": text, "structured": structured}
    return ToolResult.ok(body, {"blocks": rich} if rich else None, source=source)


def _read(content: Any) -> tuple[str, list[dict[str, Any]]]:
    """Return the text of all blocks, and those that are more than text."""
    if not isinstance(content, list):
        return "", []
    lines: list[str] = []
    rich: list[dict[str, Any]] = []
    for block in content:
        if not isinstance(block, Mapping):
            lines.append("(a part of the answer that is no block)")
            continue
        lines.append(_line(block))
        if block.get("type") in ("image", "audio", "resource", "resource_link"):
            rich.append(dict(block))
    return "\n\n".join(lines), rich


def _line(block: Mapping[str, Any]) -> str:
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return str(block["text"])
    if kind in ("image", "audio"):
        return f"({kind}, {_mime(block)}, {_size(block.get('data'))})"
    if kind == "resource" and isinstance(block.get("resource"), Mapping):
        resource = block["resource"]
        where = str(resource.get("uri", "without an address"))
        if isinstance(resource.get("text"), str):
            return f"(resource {where}, {_mime(resource)})\n{resource['text']}"
        return f"(resource {where}, {_mime(resource)}, {_size(resource.get('blob'))})"
    if kind == "resource_link":
        more = [str(block[key]) for key in ("title", "name", "description") if block.get(key)]
        return f"(link to {block.get('uri', 'nowhere')}, {_mime(block)}: {'; '.join(more)})"
    return f"(a part of the answer of an unknown kind: {str(kind)[:40]!r})"


def _mime(block: Mapping[str, Any]) -> str:
    return str(block.get("mimeType") or "of no stated type")[:80]


def _size(data: Any) -> str:
    if not isinstance(data, str):
        return "empty"
    try:
        return f"{len(base64.b64decode(data, validate=True))} bytes"
    except (binascii.Error, ValueError):
        return "not in base64"


def _says(text: str, value: Any) -> bool:
    """Whether the text is only the value once more, as servers send it for older clients."""
    if not text or text == value:
        return True
    try:
        return bool(json.loads(text) == value)
    except (ValueError, RecursionError):
        return False


def _misfit(descriptor: Descriptor, structured: Any) -> str:
    """Return why structured content is not what the tool declares; empty where it is, or nothing can tell."""
    declared = descriptor.declared.get("outputSchema")
    if declared is None:
        return ""
    validator = _validator(json.dumps(declared, sort_keys=True))
    if validator is None:
        return ""
    if structured is _ABSENT:
        return "it declares structured content and gives none"
    error = next(iter(validator.iter_errors(structured)), None)
    if error is None:
        return ""
    where = "/".join(str(step) for step in error.instance_path)
    return f"{str(error.message)[:_REASON]}{f' at {where}' if where else ''}"


@functools.lru_cache(maxsize=256)
def _validator(declared: str) -> Any:
    try:
        return schema.bounded(json.loads(declared))
    except SchemaRefused:  # the catalogue has said so
        return None
