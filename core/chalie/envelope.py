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
whichever case or letters and with whatever blanks, gets a `~` after its bracket: `[~end:weather]` (see
`chalie.markers`). `parse` gives every text back as it was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from attrs import field, frozen

from . import markers
from .compact import compact
from .result import Scalar, ToolResult

__all__ = ["Frame", "body_text", "cut", "parse", "render"]

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]*")
_PLAIN_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_UNPLAIN = r"\"|~\[\]\uff3b\ufe47\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
_PLAIN_CHOICE = re.compile(rf"[^\s{_UNPLAIN}](?:[^{_UNPLAIN}]*[^\s{_UNPLAIN}])?")
_TOKEN_OF_META = re.compile(r"[^,)\n]*")
_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORDS_WITH_A_TYPE: Mapping[str, Scalar] = {"true": True, "false": False, "null": None}
_DECODER = json.JSONDecoder()

_DEEPEST = 100
_SURROGATE = re.compile("[\ud800-\udfff]")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{},:]|[^\s\[\]{},:"]+')
_WHOLE_CHARACTERS = re.compile(
    r"(?:[^\\]|\\[^u]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u(?![dD][89abAB])[0-9a-fA-F]{4})*"
)


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
    return f"{first}{markers.escaped(content)}\n[end:{title}]" if content else f"{first}[end:{title}]"


def parse(text: str) -> Frame:
    """Return the parts of an envelope; `parse(render(name, result))` has every text as it was.

    Raises:
        ValueError: `text` is not exactly one frame.
    """
    try:
        name, position = _read_name(text)
        end = f"[end:{text[1 : position - 1]}]"
        meta, position = _read_meta(text, position)
    except ValueError as error:
        raise ValueError(f"the text does not begin with a frame's first line: {error}") from error
    rest = text[position:]
    if rest == end:
        content = ""
    elif rest.endswith(f"\n{end}"):
        content = rest[: -len(end) - 1]
    else:
        raise ValueError(f"the frame does not end with {end}")
    if markers.has_marker(content):
        raise ValueError("the frame holds another frame's marker")
    content = markers.restored(content)
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


def _error_text(result: ToolResult) -> str:
    lines = [markers.labels_escaped(_encodable(result.message))]
    if result.hint is not None:
        lines.append("hint: " + markers.labels_escaped(_encodable(result.hint)))
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
        raise ValueError("no [name(")
    if not text.startswith("(status=", position):
        raise ValueError("its name is not followed by (status=")
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
            token = _TOKEN_OF_META.match(text, position)
            assert token is not None  # the pattern matches the empty text too
            meta[key], position = _typed(token.group()), token.end()
        if text.startswith(", ", position):
            position += 2
        elif text.startswith(")]\n", position):
            return meta, position + 3
        else:
            raise ValueError("it does not end with )]")


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
        content, hint = head[1:], markers.labels_restored(advice)
    return markers.labels_restored(content), hint, valid


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


_COMPACT: Final = compact(allow_nan=False)


def body_text(body: Any) -> str:
    """Return a body as text: text as it is, None as nothing, anything else as compact JSON.

    Never raises. What JSON does not know is put as near as it goes: NaN and infinities are null, bytes are
    their text or a note of their length, sets are arrays, a cycle and what lies too deep to be written is a
    note, any other object is its text, or `<Class>` where that would show its address. A lone surrogate,
    which no encoding can carry, becomes U+FFFD.
    """
    if isinstance(body, str):
        return _encodable(body)
    if body is None:
        return ""
    if isinstance(body, (bytes, bytearray, memoryview)):
        return _bytes_text(bytes(body))
    try:
        text = _COMPACT(body)
    except Exception:  # whatever an author's object raises while it is looked at
        text = json.dumps(_plain(body, ()), ensure_ascii=False, separators=(",", ":"))
    return _encodable(text)


def _plain(value: Any, above: tuple[int, ...]) -> Any:
    """Return the JSON value nearest to `value`; `above` holds the ids of the containers around it."""
    try:
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, int):
            return int(value) if value.bit_length() < 10_000 else "(a number too long to show)"
        if isinstance(value, float):
            return float(value) if value - value == 0 else None
        if isinstance(value, (bytes, bytearray, memoryview)):
            return _bytes_text(bytes(value))
        if id(value) in above:
            return "(a cycle)"
        if len(above) >= _DEEPEST:
            return "(too deep to show)"
        inside = (*above, id(value))
        if isinstance(value, Mapping):
            return {_key_text(key): _plain(item, inside) for key, item in value.items()}
        if isinstance(value, (set, frozenset)):
            return sorted((_plain(item, inside) for item in value), key=repr)
        if isinstance(value, Iterable) and isinstance(value, (list, tuple)):
            return [_plain(item, inside) for item in value]
        text = str(value)
        # where an object lies in memory tells a model nothing, and differs with every call
        return f"<{type(value).__name__}>" if _ADDRESS.search(text) else text
    except Exception:  # an author's object that cannot even be looked at
        return f"(a {type(value).__name__} that cannot be shown)"


def _key_text(key: Any) -> str:
    return key if isinstance(key, str) else str(_plain(key, ()))


def _bytes_text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"({len(data)} bytes that are not text)"


def _encodable(text: str) -> str:
    """Return `text` with each lone surrogate, which no encoding can carry, as U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


def cut(text: str, limit_bytes: int) -> tuple[str, bool]:
    """Return `text` cut to `limit_bytes` of UTF-8, and whether anything was cut.

    JSON is cut after an element and closed again, so it stays valid; where that would lose more than half of
    what there is room for, the long string at the cut is shortened instead. Other text is cut between
    characters.
    """
    text = _encodable(text)
    if len(text) <= limit_bytes and _size(text) <= limit_bytes:
        return text, False
    if text.lstrip()[:1] in ("{", "[") and _is_json(text):
        return _cut_json(text, limit_bytes), True
    return text.encode()[:limit_bytes].decode("utf-8", "ignore"), True


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _cut_json(text: str, limit_bytes: int) -> str:
    """Return the valid JSON `text`, of an array or object, cut to `limit_bytes` and closed again."""
    closers = ""  # what closes the containers open at this point, innermost first
    best_end, best_closers = 0, ""  # the longest cut so far that fits
    used = position = 0  # bytes and characters read
    is_value = True  # whether the next string is a value and not a key
    for match in _TOKEN.finditer(text):
        token = match.group()
        before = used + _size(text[position : match.start()])
        used, position = before + _size(token), match.end()
        if token in "{[":
            closers = ("}" if token == "{" else "]") + closers
            is_value = token == "["
        elif token in "}]":
            closers = closers[1:]
            is_value = True
        elif token in ",:":
            is_value = token == ":" or closers[0] == "]"
            continue
        elif not is_value:
            continue
        if used + len(closers) <= limit_bytes:
            best_end, best_closers = position, closers
        elif token[0] == '"' and best_end * 2 < limit_bytes:
            shorter = _cut_string(token, limit_bytes - before - len(closers))
            return text[: match.start()] + shorter + closers if shorter else text[:best_end] + best_closers
        elif used > limit_bytes:
            break
    return text[:best_end] + best_closers


def _cut_string(token: str, limit_bytes: int) -> str:
    """Return the JSON string `token` with as many of its characters as fit, or nothing where none does."""
    inside = token[1:-1].encode()[: max(limit_bytes - 2, 0)].decode("utf-8", "ignore")
    whole = _WHOLE_CHARACTERS.match(inside)  # not half of an escape, nor of an escaped surrogate pair
    return f'"{whole.group()}"' if whole and whole.group() else ""


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
