"""Keeping secret arguments out of what the trail is told of a call.

A tool that fails quotes its arguments in whatever form it had them: as they are, as `repr` or JSON writes
them, percent-encoded, in base64 inside of a header, line by line. The known forms are masked. What is left
is then searched for pieces of a secret; where there are any, only the kind and length of the text are kept.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final
from urllib.parse import quote, quote_plus

from ..schema import MASK

__all__ = ["hidden", "leaves"]

#: shorter secrets are in any text: one with such a secret is not kept.
_SHORTEST: Final = 3
#: characters of a secret that may be seen in a row; of an encoded one.
_PIECE: Final = 6
#: lines of a secret that are shorter are only searched for as pieces.
_SHORTEST_LINE: Final = 6
#: characters of secrets that are looked through; a text about longer ones is not kept.
_MOST_SEARCHED: Final = 256 * 1024

_KIND: Final = re.compile(r"([^\W\d][\w.]{0,80})(?::|$)")
_PLACE: Final = re.compile(r" \([^()\n]+:[0-9]+ in [^()\n]+\)\Z")
_NO_WORD: Final = re.compile(r"[\W_]+")


def leaves(plain: Any, masked: Any) -> Iterator[str]:
    """Yield as texts what arguments hold and their masked copy hides."""
    if isinstance(plain, dict) and isinstance(masked, dict):
        for key, value in plain.items():
            yield from leaves(value, masked.get(key))
    elif isinstance(plain, list) and isinstance(masked, list):
        for one, other in zip(plain, masked, strict=False):
            yield from leaves(one, other)
    elif plain is not masked and masked == MASK:
        yield from _texts(plain)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif value is not None and not isinstance(value, bool) and (text := str(value)).strip():
        yield text


def hidden(text: str, secrets: Iterable[str]) -> str:
    """Return a text without the secrets, or only what kind of a text it is where that is not sure.

    Args:
        text: an error's type and message, or a message.
        secrets: as `leaves` gives them.
    """
    secrets = tuple(secrets)
    if not secrets or not text:
        return text
    if sum(map(len, secrets)) > _MOST_SEARCHED or any(len(each.strip()) < _SHORTEST for each in secrets):
        return _withheld(text, secrets)
    forms = {form for secret in secrets for form in _forms(secret) if len(form) <= len(text)}
    shown = text
    if forms:
        longest_first = sorted(forms, key=len, reverse=True)
        shown = re.sub("|".join(map(re.escape, longest_first)), MASK, text, flags=re.IGNORECASE)
    return _withheld(text, secrets) if _has_piece(shown, secrets) else shown


def _withheld(text: str, secrets: tuple[str, ...]) -> str:
    """Return of a text only its length and, where they show nothing, an error's type and place."""
    kind, place = _KIND.match(text), _PLACE.search(text)
    name, where = kind.group(1) if kind else "", place.group() if place else ""
    if sum(map(len, secrets)) > _MOST_SEARCHED or _has_piece(f"{name} {where}", secrets):
        name, where = name if name.endswith(("Error", "Exception")) else "", ""
    note = f"({len(text)} characters that may show a secret argument were not kept){where}"
    return f"{name}: {note}" if name else note


def _forms(secret: str) -> Iterator[str]:
    """Yield each way in which a secret, or a line of it, may be written."""
    lines = [line.strip() for line in secret.splitlines()]
    parts = {secret, secret.strip(), *(line for line in lines if len(line) >= _SHORTEST_LINE)}
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        yield part
        for quoted in (repr(part), json.dumps(part), json.dumps(part, ensure_ascii=False)):
            yield quoted[1:-1]
        yield repr(data)[2:-1]
        yield html.escape(part)
        yield quote(data, safe="")
        yield quote(data)
        yield quote_plus(data)
        yield from _encoded(data)


def _encoded(data: bytes) -> Iterator[str]:
    """Yield data in hex and in base64, the latter as it may stand inside of something longer."""
    yield data.hex()
    for offset in range(3):
        # Only the characters that come from this data alone: its neighbours decide about the outer ones.
        first = -(-offset * 8 // 6)
        last = (offset + len(data)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            core = encode(bytes(offset) + data).decode()[first:last]
            if len(core) >= _SHORTEST:
                yield core


def _has_piece(text: str, secrets: tuple[str, ...]) -> bool:
    """Return whether a piece of a secret can be seen in a text, however it is spaced or in which case."""
    bare = _NO_WORD.sub("", text).casefold()
    pieces = {bare[at : at + _PIECE] for at in range(len(bare) - _PIECE + 1)}
    for secret in secrets:
        whole = _NO_WORD.sub("", secret).casefold()
        if len(whole) < _PIECE:
            if len(whole) >= _SHORTEST and whole in bare:
                return True
            continue
        codes = [
            _NO_WORD.sub("", code).casefold() for code in _encoded(secret.encode("utf-8", "surrogatepass"))
        ]
        for code in (whole, *codes):
            if any(code[at : at + _PIECE] in pieces for at in range(len(code) - _PIECE + 1)):
                return True
    return False
