"""A catalogue as a site of static pages: no server, no network, and no text of a package that acts."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from itertools import groupby
from typing import Any, Final

from attrs import frozen

from ..catalogue.identity import Document
from ..gate.display import escaped
from .fields import Field, fields
from .phrases import EFFECTS, approval, availability, effects, latency, owner

__all__ = ["MARK", "pages"]

#: how a page of ours is told from a stranger's file.
MARK: Final = '<meta name="generator" content="chalie catalogue">'
_TONES: Final = {
    "read": "mild",
    "computation": "mild",
    "write": "mid",
    "connect": "mid",
    "destructive": "hard",
}
#: tools of a namespace that need no list of them at the top of its page.
_FEW: Final = 3
#: namespaces that every page lists; of more, the first page alone has the list, or pages would outgrow tools.
_LISTED: Final = 300
_PLAIN: Final = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*")


@frozen
class _Group:
    """A namespace: its name, the file of its page, and its tools."""

    name: str
    file: str
    rows: tuple[Mapping[str, Any], ...]


def pages(document: Document) -> Mapping[str, str]:
    """Return file name -> text of the site's pages; `index.html` is the first."""
    groups = [
        _Group(name, f"{_safe(name)}.html", tuple(rows))
        for name, rows in groupby(document.abilities, key=lambda row: str(row["namespace"]))
    ]
    found = {"index.html": _page(document, groups, None, _index(document, groups))}
    for group in groups:
        found[f"namespaces/{group.file}"] = _page(document, groups, group, _namespace(group))
    return found


def _page(document: Document, groups: Sequence[_Group], here: _Group | None, body: str) -> str:
    up = "../" if here else ""
    title = f"{_text(here.name)} · Catalogue" if here else "Catalogue"
    current = ' aria-current="page"'
    listed = groups if len(groups) <= _LISTED or here is None else [here]
    links = "".join(
        f'<li><a href="{up}namespaces/{group.file}"{current if group is here else ""}>'
        f'<span>{_text(group.name)}</span> <span class="count">{len(group.rows)}</span></a></li>'
        for group in listed
    )
    if len(listed) < len(groups):
        links = f'<li><a href="{up}index.html">All {len(groups):,}</a></li>{links}'
    style, script = _asset("site.css"), _asset("site.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
{MARK}
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the tools</a>
<header class="bar"><div>
<a class="title" href="{up}index.html">Catalogue</a>
<p class="facts">{_counted(len(document.abilities), "tool")} · protocol {_text(document.protocol)} ·
<span title="{_text(document.identity)}">identity <code>{_text(document.identity[:19])}…</code></span></p>
</div></header>
<div class="frame">
<nav aria-label="Namespaces"><h2>Namespaces</h2><ul>{links}</ul></nav>
<main id="main" tabindex="-1">
{body}
</main>
</div>
<script>{script}</script>
</body>
</html>
"""


def _index(document: Document, groups: Sequence[_Group]) -> str:
    known = {effect for row in document.abilities for _, effect in effects(row)}
    chips = "".join(
        f'<label><input type="checkbox" value="{effect}">{_badge(effect)}</label>'
        for effect in EFFECTS
        if effect in known
    )
    packages = {row["package"] for row in document.abilities}
    lists = "".join(
        f'<section class="group"><h2><a href="namespaces/{group.file}">{_text(group.name)}</a></h2>'
        f'<ul class="rows">{"".join(_row(group, row) for row in group.rows)}</ul></section>'
        for group in groups
    )
    empty = '<p class="empty">Nothing is installed yet. <code>chalie install NAME</code> adds tools.</p>'
    return f"""<h1>Tools</h1>
<p class="lead">{_counted(len(document.abilities), "tool")} in {_counted(len(groups), "namespace")}, from
{_counted(len(packages), "package")}. Each is called by its name, through one gate.</p>
<form class="find" hidden>
<div><label for="filter">Find a tool</label>
<input type="search" id="filter" autocomplete="off" placeholder="name, or words of what it does"></div>
<fieldset class="chips"><legend>Only what</legend>{chips}</fieldset>
<p class="told" id="told" role="status"></p>
</form>
{lists or empty}
<p class="empty" id="none" hidden>No tool has all of these words.</p>
<p class="identity">Identity: <code>{_text(document.identity)}</code></p>"""


def _row(group: _Group, row: Mapping[str, Any]) -> str:
    words = " ".join([row["called"], row["summary"], row["package"], *row["examples"]]).lower()
    marks = _marks(row)
    return (
        f'<li data-text="{_text(words)}" data-effects="{_text(" ".join(marks))}">'
        f'<a class="name" href="namespaces/{group.file}#{_anchor(row)}">{_name(row["called"])}</a>'
        f'<p dir="auto">{_text(_first(row["summary"]))}</p>'
        f'<span class="marks">{"".join(_badge(mark) for mark in marks)}</span></li>'
    )


def _namespace(group: _Group) -> str:
    tools = "".join(_tool(row) for row in group.rows)
    owners = ", ".join(dict.fromkeys(_text(owner(row)) for row in group.rows))
    links = "".join(
        f'<li><a class="name" href="#{_anchor(row)}">{_name(row["called"])}</a></li>' for row in group.rows
    )
    listed = f'<ul class="here" aria-label="On this page">{links}</ul>' if len(group.rows) > _FEW else ""
    return f"""<h1>{_text(group.name)}</h1>
<p class="lead">{_counted(len(group.rows), "tool")}, answered by {owners}.</p>
{listed}
{tools}"""


def _tool(row: Mapping[str, Any]) -> str:
    anchor = _anchor(row)
    marks = "".join(map(_badge, _marks(row)))
    facts = [("Answered by", _text(owner(row)))]
    if row["actions"]:
        said = "".join(
            f"<li><code>{_text(action)}</code> {_text(_effect(effect))}</li>"
            for action, effect in effects(row)
        )
        facts.append(("Side effect of each action", f'<ul class="bare">{said}</ul>'))
    else:
        effect = effects(row)[0][1]
        facts.append(("Side effect", f"{_text(_effect(effect))} (<code>{_text(effect)}</code>)"))
    facts += [
        ("Approval", _text(approval(row))),
        ("Latency", _text(latency(row))),
        ("Availability", _text(availability(row))),
        ("Version of the tool", _text(str(row["version"]))),
    ]
    listed = "".join(f"<div><dt>{label}</dt><dd>{value}</dd></div>" for label, value in facts if value)
    examples = "".join(f'<li dir="auto">{_text(each)}</li>' for each in row["examples"])
    schema = json.dumps(row["parameters"], ensure_ascii=False, indent=2)
    return f"""<article class="tool" id="{anchor}">
<h2><a class="name" href="#{anchor}">{_name(row["called"])}</a> {marks}</h2>
<p class="summary" dir="auto">{_text(row["summary"])}</p>
<dl class="facts">{listed}</dl>
{_parameters(list(fields(row["parameters"])))}
{f'<h3>Said by people who need it</h3><ul class="examples">{examples}</ul>' if examples else ""}
<details><summary>JSON Schema of its arguments</summary>
<pre tabindex="0"><code>{_text(schema, lines=True)}</code></pre></details>
</article>
"""


def _parameters(found: Sequence[Field]) -> str:
    if not found:
        return "<h3>Parameters</h3><p>None.</p>"
    rows = "".join(_parameter(field) for field in found)
    return (
        '<h3>Parameters</h3><table><thead><tr><th scope="col">Name</th><th scope="col">Type</th>'
        f'<th scope="col">Meaning</th></tr></thead><tbody>{rows}</tbody></table>'
    )


def _parameter(field: Field) -> str:
    bounds = list(field.bounds)
    if field.default is not None:
        bounds.append(f"default {field.default}")
    if field.secret:
        bounds.append("secret: masked wherever it is shown")
    under = f'<span class="bounds">{_text("; ".join(bounds))}</span>' if bounds else ""
    needed = '<span class="req">required</span>' if field.required else ""
    return (
        f'<tr><th scope="row"><code>{_text(field.path)}</code>{needed}</th>'
        f'<td class="kind">{_text(field.kind)}</td>'
        f'<td dir="auto">{_text(field.description)}{under}</td></tr>'
    )


def _marks(row: Mapping[str, Any]) -> list[str]:
    """Return the classes of a tool, each once, mildest first."""
    known = list(EFFECTS)
    found = dict.fromkeys(effect for _, effect in effects(row))
    return sorted(found, key=lambda effect: known.index(effect) if effect in known else len(known))


def _name(text: str) -> str:
    """Return a name as HTML that may be broken behind its underscores."""
    return _text(text).replace("_", "_<wbr>")


def _badge(effect: str) -> str:
    return f'<span class="badge {_TONES.get(effect, "far")}">{_text(_effect(effect))}</span>'


def _effect(effect: str) -> str:
    return EFFECTS.get(effect, effect)


def _anchor(row: Mapping[str, Any]) -> str:
    return f"tool-{_safe(row['called'])}"


@cache
def _safe(text: str) -> str:
    """Return a name for a file or an anchor; what is not plain gets a mark that no other text has."""
    if _PLAIN.fullmatch(text):
        return text.replace("_", "-")
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:48] or "x"
    return f"{plain}.{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def _text(text: str, *, lines: bool = False) -> str:
    """Return a text as HTML that shows exactly that text: no markup, nothing hidden, nothing reordered."""
    if lines:
        return "\n".join(escape(escaped(line)) for line in text.split("\n"))
    return escape(escaped(" ".join(text.split())))


def _first(text: str) -> str:
    """Return the first sentence of a text, or its beginning."""
    line = " ".join(text.split())
    end = re.search(r"[.!?](?=\s)", line)
    line = line[: end.end()] if end else line
    return line if len(line) <= 160 else f"{line[:159]}…"


def _counted(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


@cache
def _asset(name: str) -> str:
    text = (files(__package__) / name).read_text("utf-8")
    return f"\n{text}"


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
