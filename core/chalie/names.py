"""Names of abilities: what one may be called, when two are the same, and how they are shown.

Three forms of a name matter. The *spelling* is what the model calls. The *normal form* is what comparisons
use, so that `webSearch`, `web-search` and `Web Search` are one name. The *shown* form is what people see, so
that two names that are different never look the same.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Final

from .errors import NameRefused

__all__ = [
    "OWN_DIST",
    "RESERVED",
    "SERVER",
    "alias",
    "check_name",
    "disguised",
    "is_server",
    "normal",
    "qualified",
    "segments",
    "server_tool",
    "short",
    "shown",
]

#: The distribution that owns the host and its own abilities.
OWN_DIST: Final = "chalie"
#: Names of the host's own abilities, which no package can claim.
RESERVED: Final[frozenset[str]] = frozenset({"find_tools", "find_skills", "read_result"})

#: What an MCP server is called where packages are: this and its slug. No distribution's name holds a colon.
SERVER: Final = "mcp:"

_NATIVE = re.compile(r"[a-z][a-z0-9_]{0,63}")
_MCP_PREFIX = "_mcp_"
_ABILITY_PREFIX = "chalie-ability-"

# What joins the words of a name: blanks, `-`, `_` and their Unicode kin, `.` and `/` of foreign names.
_ASCII_JOINS = str.maketrans("", "", " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f-_./")
_JOIN_CATEGORIES = frozenset({"Zs", "Zl", "Zp", "Pd", "Pc", "Cf"})
_WORDS = re.compile(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+")

_SAFE = re.compile(r"[A-Za-z0-9_-]+")
_UNSAFE_CHARACTER = re.compile(r"[^A-Za-z0-9_-]")
_ALIAS_END = re.compile(r"-[0-9a-f]{8}\Z")

# Scripts that one language writes together (Unicode Technical Standard 39, "highly restrictive").
_WRITTEN_TOGETHER = (
    frozenset({"LATIN", "CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"}),
    frozenset({"LATIN", "CJK", "BOPOMOFO"}),
    frozenset({"LATIN", "CJK", "HANGUL"}),
)
_HIDING = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"})
# Cyrillic and Greek letters that are drawn like Latin ones (from Unicode's confusables.txt).
_LATIN_LIKE = frozenset("аВеԁһіјкКМНоОрРсСТуУхХѕԍԛԝАЕЅІЈгпѵѡьαΑΒΕΖΗΙΚΜΝοΟΡΤΥΧνρικγυχω")


def normal(text: str) -> str:
    """Return the form in which names are compared: case, `-`, `_`, blanks and camelCase fold together.

    `webSearch`, `web_search`, `web-search`, `Web Search` and full-width letters all give `websearch`. Works
    for every script and for any text; two calls give what one gives.
    """
    if text.isascii():
        return text.lower().translate(_ASCII_JOINS)
    for _ in range(8):  # folding can bring new joins and compositions to light; two rounds nearly always do
        folded = unicodedata.normalize("NFKC", text).casefold().translate(_ASCII_JOINS)
        folded = "".join(c for c in folded if unicodedata.category(c) not in _JOIN_CATEGORIES)
        folded = unicodedata.normalize("NFKC", folded)
        if folded == text:
            break
        text = folded
    return text


def segments(text: str) -> tuple[str, ...]:
    """Return the words of a name in order, in lower case; digits stay with the word before them.

    `getHTTPResponse2`, `get_http_response2` and `get.HTTP-response2` give `("get", "http", "response2")`.
    A script without capitals or blanks gives one segment per unbroken run of letters.
    """
    if text.isascii():
        return tuple(word.lower() for word in _WORDS.findall(text))
    return tuple(unicodedata.normalize("NFKC", word.casefold()) for word in _words(text))


def _words(text: str) -> list[str]:
    """Split `text` at everything that is neither letter, mark nor digit, and where camelCase turns."""
    words: list[str] = []
    word = ""
    text = unicodedata.normalize("NFKC", text)
    for position, character in enumerate(text):
        if unicodedata.category(character)[0] not in "LMN":
            if word:
                words.append(word)
            word = ""
            continue
        follower = text[position + 1 : position + 2]
        turns = character.isupper() and (not word[-1:].isupper() or follower.islower())
        after_digits = word[-1:].isdecimal() and not character.isdecimal() and not word.isdecimal()
        if word and (turns or (after_digits and character.isalpha())):
            words.append(word)
            word = ""
        word += character
    return [*words, word] if word else words


def check_name(name: str) -> None:
    """Refuse a name that a native ability may not have.

    Raises:
        NameRefused: it does not match `[a-z][a-z0-9_]{0,63}`, holds `__`, or belongs to the host.
    """
    if not isinstance(name, str):
        raise NameRefused(f"an ability's name is text, not {type(name).__name__}")
    if name in RESERVED or name.startswith(_MCP_PREFIX):
        raise NameRefused(
            f"the name {shown(name)} belongs to the host",
            hint=f"{', '.join(sorted(RESERVED))} and whatever begins with {_MCP_PREFIX} are taken",
        )
    if not _NATIVE.fullmatch(name):
        raise NameRefused(
            f"{shown(name[:80]) or 'an empty text'} is no name for an ability",
            hint="use 1 to 64 of a-z, 0-9 and _, beginning with a letter, as in web_search",
        )
    if "__" in name:
        raise NameRefused(
            f"the name {name} holds __, which separates a package from a name in weather__forecast",
            hint="use a single _ between words",
        )


def short(dist: str) -> str:
    """Return what a distribution is called in a qualified name: `chalie-ability-weather` is `weather`.

    A distribution without that prefix keeps its whole name. Either way the result is an identifier's text:
    lower case, with `_` for every run of `-`, `_` and `.`, as in the normalised names of PEP 503.
    """
    whole = _dist(dist)
    return _identifier(whole.removeprefix(_ABILITY_PREFIX) or whole)


def qualified(dist: str, name: str, whole: bool = False) -> str:
    """Return the name by which an ability can be called where several packages own `name`.

    Args:
        dist: the owning distribution.
        name: the ability's name.
        whole: use the whole distribution name, for when the short ones tie as well.
    """
    if is_server(dist):
        return name  # it names the server already
    owner = _identifier(_dist(dist)) if whole else short(dist)
    return f"{owner}__{name}"


def is_server(dist: str) -> bool:
    """Tell whether what stands in a distribution's place is an MCP server."""
    return dist.startswith(SERVER)


def server_tool(slug: str, tool: str) -> str:
    """Return what a server's tool is called by: `_mcp_<slug>_<alias of its own name>`, at most 64 long.

    A slug holds no `_`, so no server can make a name that is another one's.

    Raises:
        NameRefused: the tool has no name.
    """
    prefix = f"{_MCP_PREFIX}{slug}_"
    return prefix + alias(tool, 64 - len(prefix))


def _dist(dist: str) -> str:
    return re.sub(r"[-_.]+", "-", dist).strip("-").lower()


def _identifier(dist: str) -> str:
    return dist.replace("-", "_")


def alias(name: str, limit: int = 64) -> str:
    """Return a spelling of `name` that every model API accepts: `[A-Za-z0-9_-]`, at most `limit` long.

    A name that is accepted as it stands is its own alias. Any other has its illegal characters replaced,
    is cut where it is too long, and ends in `-` and 8 hex digits of its SHA-256, so that different names
    have different aliases and a table of them can be read backwards. A name that merely looks like such an
    alias gets one of its own, so nobody can choose a name that is another one's alias.

    Raises:
        NameRefused: `name` is empty.
    """
    if not name:
        raise NameRefused("a tool without a name cannot be offered", hint="give the tool a name")
    if len(name) <= limit and _SAFE.fullmatch(name) and not _ALIAS_END.search(name):
        return name
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_UNSAFE_CHARACTER.sub('_', name)[: limit - 9]}-{mark}"


def disguised(name: str) -> str | None:
    """Return why a foreign name may not be trusted to be what it looks like, or None when it may.

    Refused are hidden and unprintable characters, direction marks, compatibility forms (full-width letters),
    scripts that no language writes together (`r` + Cyrillic `е` + `ad`) and mixed kinds of digits.
    """
    if not name:
        return "it is empty"
    if name.isascii() and name.isprintable() and " " not in name:
        return None
    for character in name:
        if unicodedata.category(character) in _HIDING:
            return f"it holds the hidden or blank character U+{ord(character):04X}"
    if unicodedata.normalize("NFKC", name) != unicodedata.normalize("NFC", name):
        return "it holds full-width or other compatibility forms of plain characters"
    scripts = {_script(c) for c in name if c.isalpha()}
    if len(scripts) > 1 and not any(scripts <= together for together in _WRITTEN_TOGETHER):
        return f"it mixes the scripts {', '.join(sorted(script.title() for script in scripts))}"
    if len({ord(c) - unicodedata.decimal(c) for c in name if c.isdecimal()}) > 1:
        return "it mixes several kinds of digits"
    return None


def _script(letter: str) -> str:
    """Return the first word of the letter's Unicode name, which is its script."""
    return unicodedata.name(letter, "UNNAMED").split()[0]


def shown(name: str) -> str:
    """Return `name` as people see it; two different names are never shown alike.

    A plain name in any script is shown as it is. Where it is `disguised`, is not in its composed form, or is
    drawn wholly with Latin look-alikes, everything outside ASCII is written as `\\uXXXX`.
    """
    escape_all = not name.isascii() and (
        disguised(name) is not None or unicodedata.normalize("NFC", name) != name or _looks_latin(name)
    )
    return "".join(_shown(character, escape_all) for character in name)


def _looks_latin(name: str) -> bool:
    letters = [c for c in name if c.isalpha()]
    return bool(letters) and all(c in _LATIN_LIKE for c in letters)


def _shown(character: str, escape_all: bool) -> str:
    if character == "\\":
        return "\\\\"
    if character == " " or (character.isprintable() and (character.isascii() or not escape_all)):
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
