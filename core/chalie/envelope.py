"""The one text form of a result that a model sees, and the way back.

    [weather(status=success)]
    {"location":"Valletta, MT","condition":"Clear","temperature_c":24.1}
    [end:weather]

    [memory(status=error, code=no-query-or-location, action=recall)]
    recall requires either a query or a location.
    hint: pass query= to search by topic, or location= to filter by place.
    valid: query | location
    [end:memory]

There is exactly one frame around any text. Whatever could be read as the beginning or end of a frame, in
whichever case and with whatever blanks, gets a `~` after its bracket: `[~end:weather]`. Text that holds such a
`~` already gets one more, so `parse` gives every text back as it was. (`~` and not a backslash: JSON stays JSON.)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Literal

from attrs import field, frozen

from .body import body_text, cut, encodable
from .result import Scalar, ToolResult

__all__ = ["Frame", "body_text", "cut", "parse", "render"]

# Blanks, and characters that are not drawn at all, which may stand anywhere in a look-alike marker.
_GAP = "[\\s\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufe00-\ufe0f\ufeff]*+"
_END = _GAP.join(["", "e", "n", "d", "[:\uff1a]"])
_BEGIN = r"[^\[\]\uff3b\uff3d\\~(\"\n]*\(" + _GAP.join(["", *"status", "="])
_MARKER = rf"(?={_GAP}(?:{_END}|{_BEGIN}))"
_TO_ESCAPE = re.compile(rf"([\[\uff3b]~*){_MARKER}", re.IGNORECASE)
_TO_RESTORE = re.compile(rf"([\[\uff3b]~*)~{_MARKER}", re.IGNORECASE)
_UNESCAPED = re.compile(rf"[\[\uff3b]{_MARKER}", re.IGNORECASE)
# The lines of an error that are not its message.
_LINE_START = "(?<![^\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029])"
_LABEL_TO_ESCAPE = re.compile(rf"{_LINE_START}(~*(?:hint|valid){_GAP}[:\uff1a])", re.IGNORECASE)
_LABEL_TO_RESTORE = re.compile(rf"{_LINE_START}~(~*(?:hint|valid){_GAP}[:\uff1a])", re.IGNORECASE)

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]*")
_PLAIN_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_UNPLAIN = r"\"|~\[\]\uff3b\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
_PLAIN_CHOICE = re.compile(rf"[^\s{_UNPLAIN}](?:[^{_UNPLAIN}]*[^\s{_UNPLAIN}])?")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORDS_WITH_A_TYPE: Mapping[str, Scalar] = {"true": True, "false": False, "null": None}
_DECODER = json.JSONDecoder()


@frozen
class Frame:
    """A parsed envelope.

    Attributes:
        name: the tool that answered.
        status: `success` or `error`.
        body: the body's text, or the error's message.
        meta: the facts of the first line, with their types, without status and code.
        code: the error's code.
        hint: the error's next step.
        valid: what the error says would have been accepted.
    """

    name: str
    status: Literal["success", "error"]
    body: str
    meta: Mapping[str, Scalar] = field(factory=dict)
    code: str | None = None
    hint: str | None = None
    valid: tuple[str, ...] = ()


def render(name: str, result: ToolResult, *, meta_extra: Iterable[tuple[str, Scalar]] = ()) -> str:
    """Return the envelope of `result` as the tool `name` answers it.

    Args:
        name: the tool's name as the model called it; any text, also one that no tool has.
        result: what the ability, or the host in its place, has to say.
        meta_extra: facts the host adds after the ability's own, and instead of one of the same name.
    """
    title = name if _PLAIN_NAME.fullmatch(name) else _quoted(name)
    head = [f"status={result.status}"]
    if result.code is not None:
        head.append(f"code={result.code}")
    meta = {**result.meta, **dict(meta_extra)} if meta_extra else result.meta
    head.extend(f"{key}={_meta_text(value)}" for key, value in meta.items())
    content = body_text(result.body) if result.status == "success" else _error_text(result)
    first = f"[{title}({', '.join(head)})]\n"
    return f"{first}{_escaped(content)}\n[end:{title}]" if content else f"{first}[end:{title}]"


def parse(text: str) -> Frame:
    """Return the parts of an envelope; `parse(render(name, result))` has every text as it was.

    Raises:
        ValueError: `text` is not exactly one frame.
    """
    name, position = _read_name(text)
    meta, position = _read_meta(text, position)
    title = text[1 : text.index("(status=", 0, position)] if "(status=" in text[:position] else ""
    end = f"[end:{title}]"
    rest = text[position:]
    if rest == end:
        content = ""
    elif rest.endswith(f"\n{end}"):
        content = rest[: -len(end) - 1]
    else:
        raise ValueError(f"the frame does not end with {end}")
    if _UNESCAPED.search(content):
        raise ValueError("the frame holds another frame's marker")
    content = _TO_RESTORE.sub(r"\1", content)
    status = meta.pop("status", None)
    if status == "success":
        return Frame(name, "success", content, meta)
    if status != "error":
        raise ValueError("the frame's status is neither success nor error")
    code = meta.pop("code", None)
    if not isinstance(code, str):
        raise ValueError("the error frame has no code")
    message, hint, valid = _read_error(content)
    return Frame(name, "error", message, meta, code, hint, valid)


def _quoted(text: str) -> str:
    """Return `text` as a JSON string in ASCII without brackets, which nothing can mistake for a marker."""
    return json.dumps(text).replace("[", "\\u005b").replace("]", "\\u005d")


def _meta_text(value: Scalar) -> str:
    if isinstance(value, str):
        plain = _PLAIN_WORD.fullmatch(value) and value not in _WORDS_WITH_A_TYPE
        return value if plain else _quoted(value)
    return json.dumps(value)


def _escaped(text: str) -> str:
    return _TO_ESCAPE.sub(r"\1~", text) if "[" in text or "\uff3b" in text else text


def _error_text(result: ToolResult) -> str:
    lines = [_LABEL_TO_ESCAPE.sub(r"~\1", encodable(result.message))]
    if result.hint is not None:
        lines.append("hint: " + _LABEL_TO_ESCAPE.sub(r"~\1", encodable(result.hint)))
    if result.valid:
        choices = (v if _PLAIN_CHOICE.fullmatch(v) else _quoted(v) for v in result.valid)
        lines.append("valid: " + " | ".join(choices))
    return "\n".join(lines)


def _read_name(text: str) -> tuple[str, int]:
    """Return the name a frame begins with, and the position after its opening parenthesis."""
    plain = _PLAIN_NAME.match(text, 1) if text.startswith("[") else None
    if plain:
        name, position = plain.group(), plain.end()
    elif text.startswith('["'):
        name, position = _DECODER.raw_decode(text, 1)
    else:
        raise ValueError("the text does not begin with a frame's [name(")
    if not text.startswith("(status=", position):
        raise ValueError("the frame's name is not followed by (status=")
    return name, position + 1


def _read_meta(text: str, position: int) -> tuple[dict[str, Scalar], int]:
    """Return the facts of a frame's first line, and the position after that line."""
    meta: dict[str, Scalar] = {}
    while True:
        equals = text.index("=", position)
        key = text[position:equals]
        position = equals + 1
        if text.startswith('"', position):
            meta[key], position = _DECODER.raw_decode(text, position)
        else:
            token = re.compile(r"[^,)\n]*").match(text, position)
            assert token is not None  # the pattern matches the empty text too
            meta[key], position = _typed(token.group()), token.end()
        if text.startswith(", ", position):
            position += 2
        elif text.startswith(")]\n", position):
            return meta, position + 3
        else:
            raise ValueError("the frame's first line does not end with )]")


def _typed(token: str) -> Scalar:
    if token in _WORDS_WITH_A_TYPE:
        return _WORDS_WITH_A_TYPE[token]
    number = _NUMBER.fullmatch(token)
    if number is None:
        return token
    return float(token) if number.group(1) or number.group(2) else int(token)


def _read_error(content: str) -> tuple[str, str | None, tuple[str, ...]]:
    """Return message, hint and valid choices of an error's content."""
    valid: tuple[str, ...] = ()
    hint: str | None = None
    head, found, choices = ("\n" + content).rpartition("\nvalid: ")
    if found:
        content, valid = head[1:], _read_choices(choices)
    head, found, advice = ("\n" + content).rpartition("\nhint: ")
    if found:
        content, hint = head[1:], _LABEL_TO_RESTORE.sub(r"\1", advice)
    return _LABEL_TO_RESTORE.sub(r"\1", content), hint, valid


def _read_choices(text: str) -> tuple[str, ...]:
    choices: list[str] = []
    position = 0
    while position < len(text):
        if text.startswith('"', position):
            choice, position = _DECODER.raw_decode(text, position)
        else:
            end = text.find(" | ", position)
            end = len(text) if end < 0 else end
            choice, position = text[position:end], end
        choices.append(choice)
        position += len(" | ")
    return tuple(choices)
