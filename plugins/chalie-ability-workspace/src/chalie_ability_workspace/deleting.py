"""The ability `file_delete`."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from typing import Any

from chalie import SideEffect, ToolResult

from .guarded import protected
from .opening import parent, refused
from .refusal import Refused
from .workspace import WorkspaceAbility, ask_always, openly

__all__ = ["FileDelete"]


class FileDelete(WorkspaceAbility):
    """One file, link or empty folder, taken away for good."""

    actions = {"delete": SideEffect.DESTRUCTIVE}
    aliases = {"file": "path", "file_path": "path", "filename": "path"}

    def name(self) -> str:
        """Return what the model calls it by."""
        return "file_delete"

    def summary(self) -> str:
        """Say what it does, for the model and for search."""
        return "Delete one file, one link or one empty folder of the workspace. There is no way back."

    def examples(self) -> list[str]:
        """Return what people say who need it."""
        return [
            "delete the temporary file",
            "remove old.txt",
            "get rid of that generated file",
            "erase the empty folder",
            "throw away the backup copy",
            "clean up the scratch file",
        ]

    def search_tooltip(self) -> str:
        """Return a few words for a user interface."""
        return "Delete a file"

    def parameters(self) -> dict[str, Any]:
        """Return the JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": {
                "path": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 4096,
                    "description": "What to delete. A link is deleted itself, not what it leads to.",
                }
            },
            "required": ["path"],
            "additionalProperties": False,
        }

    def classify(self, params: Any) -> str:
        """Return `delete`; what other programs run or obey is always asked about."""
        ask_always(params["path"], protected, follow_last=False)
        return "delete"

    def work(self, params: Mapping[str, Any]) -> ToolResult:
        """Delete it."""
        place = openly(params["path"], protected, follow_last=False)
        with parent(place) as (where, name):
            try:
                mode = os.stat(name, dir_fd=where, follow_symlinks=False).st_mode
                if stat.S_ISDIR(mode):
                    os.rmdir(name, dir_fd=where)
                else:
                    os.unlink(name, dir_fd=where)
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    raise Refused(
                        f"{place.asked} is a folder with something in it",
                        code="folder-not-empty",
                        hint="delete what is in it one by one",
                    ) from None
                raise refused(place.asked, error) from None
        return ToolResult.ok(None, path=place.shown, deleted="folder" if stat.S_ISDIR(mode) else "file")
