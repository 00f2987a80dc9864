"""The corpus of bypasses: `bypass/*.toml`, one case for each command, each path with each tool, each call.

A file has one `kind` and groups of cases that share a `claim` and what is to be expected:

    allow     it runs without a question, where reading and computing may
    ask       a person is asked at least
    always    a person is asked whatever the permission rows say
    refused   it is refused with `code` (any where that is empty), even after a person's yes
"""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from attrs import frozen

__all__ = ["Case", "cases", "counts"]

_FOLDER = Path(__file__).parent / "bypass"


@frozen
class Case:
    """One call that could get past a gate, and what this gate says of it.

    Attributes:
        kind: `command`, `path`, `argument`, `name` or `timing`.
        claim: what holds for it.
        expect: `allow`, `ask`, `always` or `refused`.
        code: of a refusal; empty for any.
        tool: the name that is called.
        arguments: as the model gives them: an object, or the text of one.
        meanwhile: a link that is put at `path` and leads `to`, once a person is asked.
    """

    kind: str
    claim: str
    expect: str
    code: str
    tool: str
    arguments: Any
    meanwhile: dict[str, str] | None = None

    def __str__(self) -> str:
        shown = self.arguments
        if self.kind in ("command", "path"):
            shown = shown.get("command") or shown["path"]
        return f"{self.tool} {shown!r:.60}: {self.claim}"


#: what a tool needs besides its path.
_BESIDES: dict[str, dict[str, Any]] = {
    "write": {"content": "GONE"},
    "edit": {"edits": [{"old": "one", "new": "GONE"}]},
}


def cases() -> list[Case]:
    """Return every case of every file."""
    found: list[Case] = []
    for file in sorted(_FOLDER.glob("*.toml")):
        data = tomllib.loads(file.read_text(encoding="utf-8"))
        for group in data["group"]:
            found += [
                Case(data["kind"], group["claim"], group["expect"], group.get("code", ""), *call)
                for call in _calls(group)
            ]
    return found


def _calls(group: dict[str, Any]) -> list[tuple[Any, ...]]:
    calls: list[tuple[Any, ...]] = [("bash", {"command": command}) for command in group.get("commands", ())]
    for tool in group.get("tools", ()):
        calls += [(tool, {"path": path, **_BESIDES.get(tool, {})}) for path in group["paths"]]
    return calls + [
        (call["tool"], call["arguments"], call.get("meanwhile")) for call in group.get("calls", ())
    ]


def counts() -> Counter[tuple[str, str]]:
    """Return how many cases there are of each (kind, expectation)."""
    return Counter((case.kind, case.expect) for case in cases())
