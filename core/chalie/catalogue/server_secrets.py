"""What of a server's entry may be secret, so that it stands in no list, no error and on no record."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

from .server_file import Server

__all__ = ["masked", "reached_by"]

_MASK: Final = "•••"
#: characters of a value below which it is a word like any other, and masking it would garble what is said.
_SHORTEST: Final = 4
#: what a secret is called, before `=` or as the option before it.
_NAMED: Final = re.compile(r"(?i)(token|secret|passw|pwd|api-?_?key|credential|auth|bearer)")
#: a part of an address's path that is a key more likely than a word: some services' addresses are secrets.
_KEY: Final = re.compile(r"(?<=/)(?=[^/?#]*\d)(?=[^/?#]*[A-Za-z])[A-Za-z0-9_=-]{20,}(?=[/?#]|$)")
#: what is a secret whatever it is called: after `Bearer`, between an address's `//user:` and `@`, as a value
#: of its query, and in the forms that services give theirs.
_FORMED: Final = re.compile(
    r"(?i)\b(?:bearer|basic|token)\s+(?P<bearer>\S+)"
    r"|://(?P<user>[^/\s?#]+)@"
    r"|[?&][^=&\s#]+=(?P<query>[^&\s#]+)"
    r"|\b(?P<known>(?:gh[oprsu]|github_pat|glpat|xox[abp]|sk|pk|rk)[-_][A-Za-z0-9_-]{8,})"
)


def masked(server: Server, text: str) -> str:
    """Return what is said of a server, or by it, without its entry's secrets.

    Args:
        server: its entry, with variables put in.
        text: any.
    """
    for value in sorted(set(_secrets(server)), key=len, reverse=True):
        text = text.replace(value, _MASK)
    return text


def reached_by(server: Server) -> str:
    """Return a server's command line or address, without what may be secret in it."""
    if server.url:
        address = re.sub(r"[?#].*", "", server.url, flags=re.DOTALL)
        return _KEY.sub(_MASK, re.sub(r"://[^/]*@", "://", address))
    words = [server.command]
    last = ""
    for word in server.args:
        shown = word
        for value in sorted(set(_of_word(word, last)), key=len, reverse=True):
            shown = shown.replace(value, _MASK)
        words.append(shown)
        last = word
    return " ".join(words)


def _secrets(server: Server) -> Iterator[str]:
    last = ""
    for word in server.args:
        yield from _long(_of_word(word, last))
        last = word
    yield from _long((*_formed(server.url), *_KEY.findall(server.url)))
    for value in (*server.env.values(), *server.headers.values()):
        yield from _long((value, value.strip(), *_formed(value)))


def _of_word(word: str, last: str) -> Iterator[str]:
    """Yield what is secret in one argument, given the one before it."""
    name, equals, value = word.partition("=")
    if equals and _NAMED.search(name) and value:
        yield value
    if last.startswith("-") and "=" not in last and _NAMED.search(last) and word:
        yield word
    header, colon, value = word.partition(":")
    if colon and value.strip() and not value.startswith("//") and _NAMED.search(header):
        yield value.strip()
    yield from _formed(word)


def _formed(text: str) -> Iterator[str]:
    for found in _FORMED.finditer(text):
        value = next(each for each in found.groups() if each is not None)
        yield value
        if found["user"]:
            yield from (each for each in value.split(":")[1:] if each)
        if unquote(value) != value:
            yield unquote(value)


def _long(values: Iterator[str] | tuple[str, ...]) -> Iterator[str]:
    return (value for value in values if len(value) >= _SHORTEST)
