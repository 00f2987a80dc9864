"""The ability `file_list`."""

from __future__ import annotations

import fnmatch
import os
import stat
from collections.abc import Iterator, Mapping
from typing import Any, Final

from chalie import SideEffect, ToolResult

from .opening import folder, refused
from .roots import resolve
from .workspace import WorkspaceAbility

__all__ = ["FileList"]

_MOST: Final = 2000
_LOOKED_AT: Final = 200_000
#: folders that are named and not entered: what is in them is rarely what was asked for, and a lot.
_NOT_ENTERED: Final = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"})

Row = dict[str, Any]


class FileList(WorkspaceAbility):
    """What lies in a folder of the workspace."""

    side_effect = SideEffect.READ
    aliases = {"folder": "path", "directory": "path", "dir": "path", "glob": "pattern"}

    def name(self) -> str:
        """Return what the model calls it by."""
        return "file_list"

    def summary(self) -> str:
        """Say what it does, for the model and for search."""
        return "List the files and folders of the workspace, or find files in it by a pattern of their names."

    def examples(self) -> list[str]:
        """Return what people say who need it."""
        return [
            "list the files here",
            "what is in the src folder",
            "find all Python files",
            "show the folder structure of the project",
            "is there a file called setup.py",
            "which directories are in the workspace",
            "look for Markdown files in docs",
        ]

    def search_tooltip(self) -> str:
        """Return a few words for a user interface."""
        return "List files"

    def parameters(self) -> dict[str, Any]:
        """Return the JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": {
                "path": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 4096,
                    "default": ".",
                    "description": "The folder; the workspace's own unless given.",
                },
                "depth": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 20,
                    "description": "How deep to look: 1 for the folder alone; with a pattern 20.",
                },
                "pattern": {
                    "type": "string",
                    "maxLength": 200,
                    "description": "Only files whose name, or whose path where the pattern has a /, fits: "
                    "*.py, docs/*.md.",
                },
                "limit": {"type": "integer", "minimum": 1, "maximum": _MOST, "default": 500},
            },
            "additionalProperties": False,
        }

    def work(self, params: Mapping[str, Any]) -> ToolResult:
        """List the folder."""
        place = resolve(params.get("path") or ".")
        pattern = params.get("pattern") or None
        depth = int(params.get("depth") or (20 if pattern else 1))
        limit = int(params.get("limit") or 500)
        rows: list[Row] = []
        more = False
        with folder(place) as opened:
            for looked, row in enumerate(_walk(opened, "", depth)):
                if looked > _LOOKED_AT or (looked % 512 == 0 and self.context.cancelled):
                    more = True
                    break
                if pattern and not _fits(row, pattern):
                    continue
                if len(rows) == limit:
                    more = True
                    break
                rows.append(row)
        return ToolResult.ok({"entries": rows}, path=place.shown, count=len(rows), more=more)


def _fits(row: Row, pattern: str) -> bool:
    path = str(row["path"])
    return fnmatch.fnmatchcase(path if "/" in pattern else path.rpartition("/")[2], pattern)


def _walk(opened: int, before: str, depth: int) -> Iterator[Row]:
    """Yield what lies in an open folder, then what lies deeper; links are shown and never followed."""
    try:
        with os.scandir(opened) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        if before:
            return
        raise refused(".", error) from None
    deeper: list[str] = []
    for entry in found:
        row = _row(opened, before, entry)
        if row is None:
            continue
        yield row
        if row["type"] == "folder" and depth > 1 and entry.name not in _NOT_ENTERED:
            deeper.append(entry.name)
    for name in deeper:
        try:
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=opened)
        except OSError:
            continue  # not ours to enter, or gone
        try:
            yield from _walk(inner, f"{before}{name}/", depth - 1)
        finally:
            os.close(inner)


def _row(opened: int, before: str, entry: os.DirEntry[str]) -> Row | None:
    try:
        facts = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    path = f"{before}{entry.name}"
    if stat.S_ISLNK(facts.st_mode):
        try:
            return {"path": path, "type": "link", "to": os.readlink(entry.name, dir_fd=opened)}
        except OSError:
            return None
    if stat.S_ISDIR(facts.st_mode):
        return {"path": path, "type": "folder"}
    if stat.S_ISREG(facts.st_mode):
        return {"path": path, "type": "file", "size": facts.st_size}
    return {"path": path, "type": "other"}
