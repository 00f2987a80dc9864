"""The tools of an MCP server as descriptors: each is checked singly, and a bad one costs only itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from .. import names, schema
from ..calls import SideEffect
from ..errors import ChalieError, SchemaRefused
from .descriptor import Descriptor, Problem

__all__ = ["described", "problem_of", "side_effect_of"]

#: bounds on one tool: far beyond what a model can use. The schema has its own (see `chalie.schema`).
_MOST_BYTES: Final = 256 * 1024
_LONGEST_NAME: Final = 256
_LONGEST_DESCRIPTION: Final = 32 * 1024
_LONGEST_TITLE: Final = 200
#: what of a definition is stored and pinned besides name, description and input schema.
_DECLARED: Final = ("title", "annotations", "outputSchema", "execution")
#: text that a reader cannot see: controls but line break and tab, direction marks, tags, surrogates.
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)


class _Dropped(Exception):
    """Why a tool is left out, and what its server's author can do."""

    def __init__(self, reason: str, fix: str) -> None:
        super().__init__(reason)
        self.fix = fix


def described(slug: str, version: str, tools: Iterable[Any]) -> tuple[list[Descriptor], list[Problem]]:
    """Return the usable tools of a listing, and a problem for each that is left out or merely odd.

    Args:
        slug: the server's.
        version: what the server says its version is.
        tools: definitions as the server sent them; anything may stand there.
    """
    found: dict[str, Descriptor] = {}
    problems: list[Problem] = []
    folded: dict[str, str] = {}
    for number, raw in enumerate(tools, 1):
        name = raw.get("name") if isinstance(raw, Mapping) else None
        shown = names.shown(name[:80]) if isinstance(name, str) and name else f"number {number}"
        try:
            tool = _described(slug, version, raw, found)
        except _Dropped as error:
            problems.append(problem_of(slug, shown, str(error), error.fix))
            continue
        except Exception as error:  # whatever one definition makes go wrong costs that one
            said = " ".join(str(error).split())[:200]
            problems.append(problem_of(slug, shown, f"left out: {type(error).__name__}: {said}"))
            continue
        twin = folded.setdefault(names.normal(tool.bare), tool.bare)
        if twin != tool.bare:
            reason = f"looks like {names.shown(twin)}: they differ in case or joins alone; both are kept"
            problems.append(problem_of(slug, shown, reason))
        if "outputSchema" in tool.declared and (wrong := _unusable(tool.declared["outputSchema"])):
            reason = f"its results are not checked, since its outputSchema cannot be used: {wrong}"
            problems.append(problem_of(slug, shown, reason))
        found[tool.bare] = tool
    return list(found.values()), problems


def problem_of(slug: str, tool: str, reason: str, fix: str = "") -> Problem:
    """Return what to report of one tool of a server, or of the server where `tool` is empty."""
    fix = fix or "tell the server's author"
    point = f"tool: {tool}" if tool else ""
    return Problem(f"{names.SERVER}{slug}", point, "server", reason, fix, quarantined=False)


def side_effect_of(annotations: Any) -> SideEffect:
    """Return the class that a tool's annotations claim. What is not said is the worse.

    Args:
        annotations: in the wire's spelling, in the Python SDK's, or the SDK's own object; None for none.
    """
    if _hint(annotations, "readOnlyHint", "read_only_hint") is True:
        return SideEffect.READ
    if _hint(annotations, "destructiveHint", "destructive_hint") is not False:
        return SideEffect.DESTRUCTIVE
    if _hint(annotations, "openWorldHint", "open_world_hint") is False:
        return SideEffect.WRITE
    return SideEffect.EXTERNAL_WRITE


def _hint(annotations: Any, wire: str, attribute: str) -> Any:
    if isinstance(annotations, Mapping):
        return annotations.get(wire, annotations.get(attribute))
    return getattr(annotations, attribute, getattr(annotations, wire, None))


def _described(slug: str, version: str, raw: Any, known: Mapping[str, Descriptor]) -> Descriptor:
    if not isinstance(raw, Mapping):
        raise _Dropped(f"left out: it is {_kind(raw)}, not an object", "tell the server's author")
    name = _name(raw.get("name"))
    if name in known:
        raise _Dropped("left out: the server lists that name twice, and the first counts", "rename one")
    title = _text(raw, "title", _LONGEST_TITLE)
    summary = _text(raw, "description", _LONGEST_DESCRIPTION)
    parameters = _parameters(raw)
    size = len(json.dumps({key: raw[key] for key in raw if key not in ("icons", "_meta")}))
    if size > _MOST_BYTES:
        raise _Dropped(f"left out: its definition has {size} bytes, over {_MOST_BYTES}", "shorten it")
    annotations = raw.get("annotations")
    return Descriptor(
        dist=f"{names.SERVER}{slug}",
        dist_version=version,
        target=f"mcp:{name}",
        name=names.server_tool(slug, name),
        summary=summary or title or f"{' '.join(names.segments(name)) or name} ({slug})",
        examples=(),
        search_tooltip=title or names.shown(name)[:_LONGEST_TITLE],
        parameters=parameters,
        namespace=slug,
        version="1",
        side_effect=side_effect_of(annotations if isinstance(annotations, Mapping) else None),
        latency="medium",
        bare=name,
        declared=json.loads(json.dumps({key: raw[key] for key in _DECLARED if raw.get(key) is not None})),
    ).sealed()


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise _Dropped(f"left out: its name is {_kind(name)}, not text", "give it a name")
    if len(name) > _LONGEST_NAME:
        raise _Dropped(
            f"left out: its name has {len(name)} characters, over {_LONGEST_NAME}", "give it a shorter name"
        )
    why = names.disguised(name)
    if why is not None:
        raise _Dropped(f"left out: its name may not be what it looks like: {why}", "give it a plain name")
    return name


def _text(raw: Mapping[str, Any], key: str, most: int) -> str:
    value = raw.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _Dropped(f"left out: its {key} is {_kind(value)}, not text", f"make its {key} text")
    if len(value) > most:
        raise _Dropped(f"left out: its {key} has {len(value)} characters, over {most}", "shorten it")
    value = value.replace("\r\n", "\n").strip()
    _refuse_unseen(value, key)
    return value


def _refuse_unseen(text: str, where: str) -> None:
    found = _UNSEEN.search(text)
    if found is not None:
        raise _Dropped(
            f"left out: its {where} holds the hidden character U+{ord(found[0]):04X}",
            "take it out of the text",
        )


def _parameters(raw: Mapping[str, Any]) -> dict[str, Any]:
    try:
        parameters = schema.self_contained(raw.get("inputSchema"))
        schema.refuse_injected(parameters)
    except SchemaRefused as error:
        raise _Dropped(f"left out: {error.message}", error.hint or "correct its inputSchema") from error
    _refuse_unseen(json.dumps(parameters, ensure_ascii=False), "inputSchema")
    return parameters


def _unusable(output: Any) -> str:
    """Return why results cannot be checked against an output schema; empty where they can."""
    try:
        schema.bounded(output)
    except ChalieError as error:
        return error.message
    return ""


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "text", bool: "a truth value", type(None): "absent"}
    return kinds.get(type(value), "a number")
