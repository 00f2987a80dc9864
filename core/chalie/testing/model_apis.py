"""What the model APIs accept as a tool, checked here so that no request of a user is refused for one.

One tool that an API refuses costs its user the whole request, all other tools included.

**Anthropic, Messages API** (`tools` with `input_schema`;
https://docs.anthropic.com/en/docs/agents-and-tools/tool-use and the API's own messages as quoted in
reports): a name matches `^[a-zA-Z0-9_-]{1,64}$`; `input_schema` has `type: object` at its root
("input_schema.type: Field required") and there "does not support oneOf, allOf, or anyOf at the top level"
(anthropics/claude-code#40075); "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"
(n8n-io/n8n#30590).

**OpenAI, chat completions and responses** (`tools` of type `function`;
https://platform.openai.com/docs/guides/function-calling): a name as above; a description of up to 1024
characters ("string too long. Expected a string with maximum length 1024"); the "schema must have type
'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level"
(langchain-ai/langchainjs#9804); "array schema missing items" at any depth (PrefectHQ/fastmcp#2464). With
`strict: true` (https://platform.openai.com/docs/guides/structured-outputs, "Supported schemas") each object
needs `additionalProperties: false` and each of its properties under `required`; `allOf`, `not`, `if`,
`then`, `else`, `dependentRequired`, `dependentSchemas` and `patternProperties` are not supported; up to
5000 properties, 10 levels, 1000 enum values and 120,000 characters of names and values. Chalie sends tools
without `strict`, and validates arguments itself, so these are notes and no refusals.

**Gemini** (`functionDeclarations`; https://ai.google.dev/api/caching#Schema): an array needs `items`
("items: missing field", NousResearch/hermes-agent#69924); no value of an `enum` may be empty ("enum[0]:
cannot be empty", weave-os/router#83). In its older form `parameters`, a subset of OpenAPI 3.0, an `enum` is
for strings only, `type` is one word, and `$ref` is unknown; `parametersJsonSchema` takes these, so they are
notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import frozen

from ..schema import assemble
from ..schema.references import parts

__all__ = ["Objection", "notes", "refusals"]

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_KEY: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_LONGEST_DESCRIPTION: Final = 1024
_NOT_ON_TOP: Final = ("oneOf", "anyOf", "allOf", "enum", "not")
_NOT_STRICT: Final = (
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
)
_STRICT_PROPERTIES: Final = 5000
_STRICT_LEVELS: Final = 10
_STRICT_VALUES: Final = 1000
_STRICT_CHARACTERS: Final = 120_000


@frozen
class Objection:
    """What an API has against a tool.

    Attributes:
        api: whose it is.
        where: the part of the tool, as in `properties/tags`.
        reason: what is wrong there.
        fix: the edit.
    """

    api: str
    where: str
    reason: str
    fix: str


def refusals(name: str, summary: str, parameters: Mapping[str, Any]) -> list[Objection]:
    """Return what makes an API refuse a request with this tool, as Chalie sends it there.

    Args:
        name: what the model calls it by.
        summary: its description.
        parameters: JSON Schema of its arguments, self-contained.
    """
    return [
        *_names(name, summary),
        *_roots(name, summary, parameters),
        *(found for place, node in _nodes(parameters) for found in _refused(place, node)),
    ]


def _names(name: str, summary: str) -> Iterator[Objection]:
    if not _NAME.fullmatch(name):
        fix = "name() returns 1 to 64 of a-z, A-Z, 0-9, _ and -"
        yield Objection("Anthropic, OpenAI", "name", f"{name!r} is no name there", fix)
    if len(summary) > _LONGEST_DESCRIPTION:
        reason = f"{len(summary)} characters are over {_LONGEST_DESCRIPTION}"
        yield Objection("OpenAI", "summary", reason, "shorten summary(); details belong to the parameters")


def _roots(name: str, summary: str, parameters: Mapping[str, Any]) -> Iterator[Objection]:
    tools = {
        "Anthropic": assemble(name, summary, parameters, background=True, style="anthropic")["input_schema"],
        "OpenAI": assemble(name, summary, parameters, background=True, style="openai")["function"][
            "parameters"
        ],
    }
    for api, schema in tools.items():
        if schema.get("type") != "object":
            yield Objection(api, "parameters", "its type is not object", 'give the schema "type": "object"')
        for word in _NOT_ON_TOP:
            if word in schema:
                fix = "say it inside a property, or check it in run()"
                yield Objection(api, "parameters", f"{word} stands at the top level", fix)


def _refused(place: str, node: Mapping[str, Any]) -> Iterator[Objection]:
    for key in node.get("properties") or ():
        if not _KEY.fullmatch(key):
            reason = f"the property {key!r} has other characters than letters, digits, _, . and -"
            yield Objection(
                "Anthropic", place, reason, "call it by 1 to 64 of a-z, A-Z, 0-9, _, . and -, as in dueDate"
            )
    if _is(node, "array") and not isinstance(node.get("items"), Mapping):
        fix = 'say what the array holds, as in "items": {"type": "string"}'
        yield Objection("OpenAI, Gemini", place, "an array has no items", fix)
    if "" in (node.get("enum") or ()):
        fix = "leave the empty text out of the enum and the parameter out of required"
        yield Objection("Gemini", place, "a value of the enum is empty", fix)


def notes(parameters: Mapping[str, Any]) -> list[Objection]:
    """Return what stands in the way of OpenAI's strict mode and of Gemini's older form of a schema.

    Nothing here is refused as Chalie sends it.
    """
    nodes = list(_nodes(parameters))
    found = [objection for place, node in nodes for objection in _strict(place, node)]
    found += [objection for place, node in nodes for objection in _older(place, node)]
    counts = (
        (sum(len(node.get("properties") or ()) for _, node in nodes), _STRICT_PROPERTIES, "properties"),
        (max((place.count("properties/") for place, _ in nodes), default=0), _STRICT_LEVELS, "levels"),
        (sum(len(node.get("enum") or ()) for _, node in nodes), _STRICT_VALUES, "enum values"),
        (sum(map(_characters, (node for _, node in nodes))), _STRICT_CHARACTERS, "characters"),
    )
    found += [
        Objection("OpenAI strict", "parameters", f"{count} {what}, over {most}", "describe less, or split it")
        for count, most, what in counts
        if count > most
    ]
    return found


def _strict(place: str, node: Mapping[str, Any]) -> Iterator[Objection]:
    if _is(node, "object"):
        if node.get("additionalProperties") is not False:
            yield Objection("OpenAI strict", place, "additionalProperties is not false", "set it to false")
        optional = sorted(set(node.get("properties") or ()) - set(node.get("required") or ()))
        if optional:
            reason = f"{', '.join(optional)} not under required"
            yield Objection("OpenAI strict", place, reason, "require all and let them be null instead")
    for word in _NOT_STRICT:
        if word in node:
            yield Objection("OpenAI strict", place, f"{word} is not supported", "say it without")


def _older(place: str, node: Mapping[str, Any]) -> Iterator[Objection]:
    if any(not isinstance(value, str) for value in node.get("enum") or ()):
        yield Objection("Gemini parameters", place, "an enum holds other values than texts", "use texts")
    if isinstance(node.get("type"), list):
        yield Objection("Gemini parameters", place, "type is a list", "use one type")
    if "$ref" in node:
        yield Objection("Gemini parameters", place, "$ref is unknown there", "write it out in place")


def _is(node: Mapping[str, Any], kind: str) -> bool:
    given = node.get("type")
    return given == kind or (isinstance(given, list) and kind in given)


def _characters(node: Mapping[str, Any]) -> int:
    names = sum(map(len, node.get("properties") or ()))
    return names + sum(len(str(value)) for value in node.get("enum") or ())


def _nodes(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every schema inside one, itself first, with its place."""
    pending: list[tuple[str, Any]] = [("parameters", schema)]
    while pending:
        place, node = pending.pop()
        if isinstance(node, Mapping):
            yield place, node
            pending.extend((f"{place}/{where}", child) for where, child in parts(node))
