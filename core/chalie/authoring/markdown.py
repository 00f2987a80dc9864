"""A catalogue as one Markdown file, in which no text of a package can be anything but text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, Final

from ..catalogue.identity import Document
from ..gate.display import escaped
from .fields import fields
from .phrases import approval, availability, effects, latency, owner

__all__ = ["markdown", "plain"]

#: what means something wherever it stands in a line, math and mail addresses of GitHub's among it.
_MARKUP: Final = re.compile(r"([\\`*_\[\]|~$@])")
#: what GitHub makes a link, or a picture, of: an address, and a word between colons.
_LINKED: Final = re.compile(r"(?i)\b(https?|ftp|mailto|xmpp):|\b(www)\.|:(?=[\w+-]+:)")
#: what makes something else of a line, or of a list's item, where it begins one.
_BEGINNING: Final = re.compile(r"^(\d{1,9})([.)])|^([#+\-=>:])")
_CODE: Final = re.compile(r"[A-Za-z0-9_.\[\]-]+")


def markdown(document: Document) -> str:
    """Return the catalogue as Markdown (GitHub's, for its tables)."""
    lines = [
        "# Catalogue",
        "",
        f"{len(document.abilities)} tools, protocol {plain(document.protocol)},",
        f"identity `{document.identity}`.",
        "",
    ]
    for namespace, rows in groupby(document.abilities, key=lambda row: row["namespace"]):
        lines += [f"## {plain(namespace)}", ""]
        for row in rows:
            lines += _tool(row)
    return "\n".join(lines)


def _tool(row: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"### {plain(row['called'])}", "", plain(row["summary"]), "")
    facts = {
        "Answered by": owner(row),
        "Side effect": "; ".join(
            f"{action}: {effect}" if action else effect for action, effect in effects(row)
        ),
        "Approval": approval(row),
        "Latency": latency(row),
        "Availability": availability(row),
        "Version": row["version"],
    }
    yield from (f"- {label}: {plain(str(value))}" for label, value in facts.items())
    yield ""
    found = list(fields(row["parameters"]))
    if found:
        yield from ("| parameter | type | required | meaning |", "| --- | --- | --- | --- |")
        for field in found:
            said = [field.description, *field.bounds]
            said += [f"default {field.default}"] if field.default is not None else []
            meaning = "; ".join(plain(each) for each in said if each)
            needed = "yes" if field.required else ""
            yield f"| {_code(field.path)} | {plain(field.kind)} | {needed} | {meaning} |"
        yield ""
    if row["examples"]:
        yield from ("Examples:", "")
        yield from (f"- {plain(example)}" for example in row["examples"])
        yield ""


def plain(text: str) -> str:
    """Return a text as Markdown that shows exactly that text, in one line."""
    line = " ".join(escaped(text.replace("\n", " ").replace("\t", " ")).split())
    # an ampersand first: the entities that are put in have one of their own
    line = _MARKUP.sub(r"\\\1", line.replace("&", "&amp;").replace("<", "&lt;"))
    line = _LINKED.sub(lambda found: f"{found[0][:-1]}\\{found[0][-1]}", line)
    line = _BEGINNING.sub(lambda found: f"{found[1] or ''}\\{found[2] or found[3]}", line)
    return f"{line[:-1]}\\#" if line.endswith("#") and not line.endswith("\\#") else line


def _code(text: str) -> str:
    return f"`{text}`" if _CODE.fullmatch(text) else plain(text)
