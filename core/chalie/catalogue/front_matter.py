"""Front matter: the YAML between two `---` lines, read without constructing anything from it.

Real files break YAML's rules all the time (`description: a: b`), so what is not valid YAML is read line
by line. Keys that restrict tools are the exception: they are kept only where they are certain.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Sequence
from typing import Any, Final

from attrs import frozen

__all__ = [
    "FRONT_MATTER_LIMIT",
    "RESTRICTION",
    "Field",
    "Unreadable",
    "fields_of",
    "fold_key",
    "resembles_restriction",
    "split",
]

#: bytes of front matter; keeps the YAML scanner's work bounded.
FRONT_MATTER_LIMIT: Final = 16 * 1024
#: the key that restricts tools, as `fold_key` writes it.
RESTRICTION: Final = "allowedtools"

#: keys of other programs that restrict tools in a way this host does not read.
_OTHER_RESTRICTIONS = frozenset({"tools", "disallowedtools", "deniedtools", "restrictedtools"})
#: words that, beside `tool` or `tools`, make a key one that restricts, in any order and with more around them
_RESTRICTING = frozenset({"only", "deny", "denied", "denylist", "whitelist", "blacklist"})
_RESTRICTING_STEMS = ("allow", "permit", "restrict", "disallow", "forbid")
_WORD = re.compile(r"[^\W\d_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_KEY_LINE = re.compile(r"(?P<key>[^\W\d_][\w .-]*?) *:(?P<value>.*)$")


@frozen
class Field:
    """A value of the front matter, and the line of the file it stands on."""

    value: str | tuple[str, ...] | None
    line: int


class Unreadable(Exception):
    """A file cannot be used: why, the line it shows on (0 for the file as a whole), and what to do."""

    def __init__(self, reason: str, line: int = 0, fix: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.fix = fix


class _NotYaml(Exception):
    """The front matter is not valid YAML; it may still be readable line by line."""


def split(text: str) -> tuple[list[str], int, str]:
    """Return the front matter's lines, the number of the first of them, and the body."""
    lines = text.split("\n")
    start = next((index for index, line in enumerate(lines) if line.strip()), len(lines))
    if start == len(lines):
        raise Unreadable("is empty", 1, "begin it with `---`, `name:`, `description:`, `---`")
    if lines[start].rstrip() != "---":
        raise Unreadable(
            "has no front matter: the first line is not `---`",
            start + 1,
            "begin it with `---`, `name:`, `description:`, `---`",
        )
    for index in range(start + 1, len(lines)):
        if lines[index].rstrip() == "---":
            front = lines[start + 1 : index]
            if sum(len(line) + 1 for line in front) > FRONT_MATTER_LIMIT:
                raise Unreadable(
                    f"front matter is over {FRONT_MATTER_LIMIT // 1024} KiB",
                    start + 1,
                    "move what is not name, description or allowed-tools into the body",
                )
            return front, start + 2, "\n".join(lines[index + 1 :])
    raise Unreadable("the front matter is never closed", start + 1, "add a line `---` after the front matter")


def fields_of(front: Sequence[str], first_line: int) -> tuple[dict[str, Field], bool]:
    """Read the front matter as YAML, else with its tabs as blanks, else line by line.

    Returns:
        (the fields, whether they were read line by line).
    """
    text = "\n".join(front)
    for attempt in (text, text.expandtabs(2)):
        try:
            return _from_yaml(attempt, first_line), False
        except _NotYaml:
            continue
    return _from_lines([line.expandtabs(2) for line in front], first_line), True


def _from_yaml(text: str, first_line: int) -> dict[str, Field]:
    """Read the top level of a YAML mapping from its nodes: nothing is constructed, no alias expanded."""
    import yaml

    try:
        # The loader in Python: the one in C recurses on the machine stack and can end the process.
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise _NotYaml from error
    if root is None:
        return {}
    if not isinstance(root, yaml.MappingNode):
        raise _NotYaml
    fields: dict[str, Field] = {}
    for key, value in root.value:
        line = first_line + key.start_mark.line
        if key.tag == "tag:yaml.org,2002:merge":  # could carry a restriction in from elsewhere
            raise Unreadable("uses a YAML merge key (`<<`)", line, "write its fields out")
        _check_inside(key, first_line)
        _check_inside(value, first_line)
        if isinstance(key, yaml.ScalarNode):
            _keep(fields, key.value, Field(_plain(value), line))
    return fields


def _plain(node: Any) -> str | tuple[str, ...] | None:
    """Return a scalar's text or a flat sequence's texts; None for what is empty, tagged or deeper."""
    import yaml

    if isinstance(node, yaml.ScalarNode):
        if not node.tag.startswith("tag:yaml.org,2002:") or node.tag.startswith("tag:yaml.org,2002:python/"):
            return None
        return None if node.tag == "tag:yaml.org,2002:null" and not node.style else str(node.value)
    if isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
        texts = [_plain(child) if isinstance(child, yaml.ScalarNode) else None for child in node.value]
        if all(isinstance(text, str) for text in texts):
            return tuple(text for text in texts if isinstance(text, str))
    return None


def _keep(fields: dict[str, Field], key: str, found: Field) -> None:
    """Keep a field; of a key that stands twice the first is kept, except for a restriction."""
    folded = fold_key(key)
    if folded == RESTRICTION:
        if RESTRICTION in fields:
            raise Unreadable(
                "says `allowed-tools` twice, so which tools it may use is unclear",
                found.line,
                "keep one `allowed-tools` line",
            )
        fields[RESTRICTION] = found
    elif folded in _OTHER_RESTRICTIONS or resembles_restriction(key):
        raise _not_certain(key, found.line)
    else:
        fields.setdefault(folded, found)


def fold_key(key: str) -> str:
    """Return the letters and digits of a key, so that spellings of one key are equal."""
    return "".join(char for char in unicodedata.normalize("NFKC", key).casefold() if char.isalnum())


def resembles_restriction(key: str) -> bool:
    """Say whether a key is, or is a slip of the pen or another word for, the one that restricts tools."""
    folded = fold_key(key)
    if difflib.SequenceMatcher(None, folded, RESTRICTION).ratio() >= 0.85:
        return True
    if "tool" not in folded:
        return False
    words = {word.casefold() for word in _WORD.findall(_CAMEL.sub(" ", unicodedata.normalize("NFKC", key)))}
    return not words.isdisjoint(_RESTRICTING) or any(stem in folded for stem in _RESTRICTING_STEMS)


def _not_certain(key: str, line: int) -> Unreadable:
    return Unreadable(
        f"restricts its tools with `{key.strip()[:80]}`, which cannot be read for certain",
        line,
        "write the tools it may use as `allowed-tools: first second`, not indented",
    )


def _check_inside(value: Any, first_line: int) -> None:
    """Refuse a restriction that stands inside another field, where it restricts nothing."""
    import yaml

    pending, seen = [value], set()
    while pending:
        node = pending.pop()
        if id(node) in seen:  # an alias
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            pending += node.value
        elif isinstance(node, yaml.MappingNode):
            for key, below in node.value:
                pending += [key, below]
                if isinstance(key, yaml.ScalarNode) and resembles_restriction(key.value):
                    raise _not_certain(key.value, first_line + key.start_mark.line)


def _from_lines(front: Sequence[str], first_line: int) -> dict[str, Field]:
    """Read front matter that is no YAML: `key: value` at the margin, indented lines going on with it."""
    fields: dict[str, Field] = {}
    index = 0
    while index < len(front):
        start = index
        index += 1
        match = _KEY_LINE.match(front[start])
        if match is None:
            continue
        while index < len(front) and (not front[index].strip() or front[index][0] in " -"):
            index += 1
        block = front[start:index]
        if fold_key(match["key"]) == RESTRICTION:
            value = _alone("\n".join(block))
        else:
            value = _loose(match["value"] or "", block[1:])
        _keep(fields, match["key"], Field(value, first_line + start))
    return fields


def _alone(text: str) -> str | tuple[str, ...] | None:
    """Return a restriction's value where its own lines are valid YAML by themselves, else None."""
    try:
        fields = _from_yaml(text, 1)
    except (_NotYaml, Unreadable):
        return None
    return fields[RESTRICTION].value if set(fields) == {RESTRICTION} else None


def _loose(value: str, more: Sequence[str]) -> str | None:
    value = value.strip()
    if re.fullmatch(r"[|>][+-]?\d?", value):
        value = ""
    text = " ".join([value, *(line.strip() for line in more)]).strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1]
    return text or None
