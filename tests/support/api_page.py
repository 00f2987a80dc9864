"""The page of the public Python names, made from `__all__`, the signatures and the docstrings."""

from __future__ import annotations

import enum
import importlib
import inspect
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from tests.support import docstrings, signatures

__all__ = ["PARTS", "api_page", "public_names"]

_OPENING = """\
Everything that may be relied on: what stands here keeps its meaning within a version of the interface,
and whatever does not stand here may change with any release. Names of the first four parts come from
`chalie` itself and are imported when they are first asked for, so `import chalie` costs nothing.
"""

#: title -> what it is for, the module, and its names; of `chalie` each public name stands once.
PARTS: Final[Mapping[str, tuple[str, str, tuple[str, ...]]]] = {
    "For authors": (
        "What a package with tools is made of: see [writing an ability](writing-an-ability.md).",
        "chalie",
        ("Ability", "Context", "ToolResult", "SideEffect", "ArgumentRefused"),
    ),
    "For policies and plugins": (
        "What [hooks](hooks.md) take and return.",
        "chalie",
        ("hookimpl", "Call", "Opinion", "Limit", "CallRecord", "HoldChange"),
    ),
    "For programs": (
        "What an agent program opens and calls: see [embedding](embedding.md).",
        "chalie",
        (
            "Host",
            "Turn",
            "Channel",
            "Approver",
            "TerminalApprover",
            "HoldView",
            "Answer",
            "AnswerKind",
        ),
    ),
    "Errors": (
        "Every expected failure is a `ChalieError` with a [code](error-codes.md), a message "
        "and a hint. Nothing a tool does is raised: `turn.call` returns it as an envelope.",
        "chalie",
        (
            "ChalieError",
            "ConfigError",
            "DescribeFailed",
            "IndexUnreadable",
            "LedgerUnavailable",
            "NameRefused",
            "NotAuthorised",
            "NotReady",
            "SchemaRefused",
        ),
    ),
    "chalie.envelope": (
        "The text form of a result: see [reading an envelope](embedding.md#reading-an-envelope).",
        "chalie.envelope",
        ("parse", "Frame", "render"),
    ),
    "chalie.hints": ("See [hints](hints.md).", "chalie.hints", ("resolve",)),
    "chalie.testing": (
        "For the tests of packages; the fixtures `host`, `turn`, `call`, `approver`, `clock` "
        "and `service` come with the host as a pytest plugin.",
        "chalie.testing",
        (),
    ),
}


def public_names(title: str) -> tuple[str, ...]:
    """Return the names of a part, in the order they are shown."""
    _, module, names = PARTS[title]
    return names or tuple(importlib.import_module(module).__all__)


def api_page(made: str) -> str:
    """Return the page.

    Args:
        made: the line that says where the page comes from.
    """
    parts = [
        "# Python names\n",
        made,
        _OPENING,
        "Beside these, `chalie.__version__` is the host's version.\n",
    ]
    for title, (text, module, _) in PARTS.items():
        names = public_names(title)
        heading = f"`{title}`" if title == module else title
        parts += [f"## {heading}\n", f"{text}\n", f"{_contents(names)}\n"]
        source = importlib.import_module(module)
        parts += [_name(name, getattr(source, name)) for name in names]
    return "\n".join(parts)


def _contents(names: Iterable[str]) -> str:
    return ", ".join(f"[`{name}`](#{name.lower()})" for name in names)


def _name(name: str, value: Any) -> str:
    doc = docstrings.markdown(inspect.getdoc(value) or "")
    if inspect.isfunction(value):
        return f"### {name}\n\n{_code(signatures.of_function(name, value))}\n\n{doc}\n"
    if not inspect.isclass(value):
        return f"### {name}\n\n{_MARKERS[name]}\n"
    head = _code(signatures.of_class(value)) + "\n\n" if attrs.has(value) else ""
    parts = [f"### {name}\n", f"{head}{doc}\n"]
    if issubclass(value, enum.Enum):
        parts.append(f"{', '.join(f'`{each.name}` (`{each.value}`)' for each in value)}\n")
    if issubclass(value, Exception):
        parts.append(f"Its code is [`{value.code}`](error-codes.md#{value.code}).\n")
        return "\n".join(parts)
    parts += [_member(name, each, member) for each, member in _members(value)]
    return "\n".join(parts)


#: public values that are neither class nor function, in words.
_MARKERS = {
    "hookimpl": "The decorator that marks a function as an implementation of the hook of its name: "
    "`@hookimpl`.",
}


def _members(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield what a class itself defines for others to use, in the order it is written in."""
    for name, member in vars(cls).items():
        if name.startswith("_"):
            continue
        if isinstance(member, (property, staticmethod, classmethod)) or inspect.isfunction(member):
            yield name, member


def _member(owner: str, name: str, member: Any) -> str:
    if isinstance(member, property):
        returns = member.fget.__annotations__.get("return", "")
        return f"#### {owner}.{name}\n\n{_code(f'{name}: {returns}')}\n\n{_doc(member.fget)}\n"
    bound = not isinstance(member, staticmethod)
    function = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
    line = signatures.of_function(name, function, method=bound)
    return f"#### {owner}.{name}\n\n{_code(line)}\n\n{_doc(function)}\n"


def _doc(function: Any) -> str:
    return docstrings.markdown(inspect.getdoc(function) or "")


def _code(line: str) -> str:
    return f"```py\n{line}\n```"
