"""The project's docstrings as Markdown: one line, prose, sections of named things, code."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["hook_parts", "markdown", "prose", "summary"]

_SECTION = re.compile(r"^(Args|Attributes|Raises|Returns|[A-Z][a-z ,]+):$")
_ENTRY = re.compile(r"^((?:\w+)(?:, \w+)*): (.*)$")
_HOOK_PART = re.compile(r"^(When|May return|Conflicts|Failure): (.*)$")
_TITLES = {"Args": "Arguments"}


def summary(doc: str) -> str:
    """Return a docstring's first paragraph, in one line."""
    return " ".join(doc.partition("\n\n")[0].split())


def markdown(doc: str) -> str:
    """Return a whole docstring, its sections as lists and its indented code as blocks."""
    return "\n\n".join(_blocks(doc.splitlines()))


def prose(text: str) -> str:
    """Return a paragraph as one line, fit for a cell or an item."""
    return " ".join(text.split())


def hook_parts(doc: str) -> tuple[str, dict[str, str]]:
    """Return a hook's first line and what its docstring says under When, May return, Conflicts, Failure."""
    parts: dict[str, str] = {}
    name = ""
    for line in doc.partition("\n\n")[2].splitlines():
        head = _HOOK_PART.match(line)
        if head:
            name = head[1]
        parts[name] = f"{parts.get(name, '')} {head[2] if head else line.strip()}".strip()
    return summary(doc), parts


def _blocks(lines: list[str]) -> Iterator[str]:
    at = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        end = at + 1
        section = _SECTION.match(lines[at])
        if section or lines[at].startswith("    "):
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            yield _section(section[1], lines[at + 1 : end]) if section else _code(lines[at:end])
        else:
            while end < len(lines) and lines[end].strip():
                end += 1
            yield prose(" ".join(lines[at:end]))
        at = end


def _section(title: str, lines: list[str]) -> str:
    items: list[str] = []
    for line in filter(str.strip, lines):
        entry = _ENTRY.match(line[4:]) if line.startswith("    ") and line[4:5] != " " else None
        if entry:
            names = ", ".join(f"`{name}`" for name in entry[1].split(", "))
            items.append(f"- {names}: {entry[2]}")
        elif items:
            items[-1] += f" {line.strip()}"
        else:
            items.append(line.strip())
    return "\n".join([f"**{_TITLES.get(title, title)}**\n", *items])


def _code(lines: list[str]) -> str:
    text = "\n".join(line[4:] for line in lines).strip("\n")
    return f"```python\n{text}\n```"
