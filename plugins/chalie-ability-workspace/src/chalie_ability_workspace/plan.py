"""The ability `plan`."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from chalie import Ability, SideEffect, ToolResult

__all__ = ["Plan"]

_STATES: Final = ("pending", "in_progress", "done", "dropped")


class Plan(Ability):
    """The steps of a longer task, kept for its conversation. It touches no file of the workspace."""

    namespace = "workspace"
    side_effect = SideEffect.COMPUTATION
    aliases = {"todos": "steps", "tasks": "steps", "items": "steps"}

    def name(self) -> str:
        """Return what the model calls it by."""
        return "plan"

    def summary(self) -> str:
        """Say what it does, for the model and for search."""
        return (
            "Keep the plan of a longer task: pass all its steps with their states to set it, nothing to see "
            "it. One step at most is in progress."
        )

    def examples(self) -> list[str]:
        """Return what people say who need it."""
        return [
            "make a plan for the refactoring",
            "write down the steps of this task",
            "mark the first step as done",
            "which steps of the plan are left to do",
            "keep a todo list while you work",
            "show me where we are in the plan",
            "add a step for the tests",
        ]

    def search_tooltip(self) -> str:
        """Return a few words for a user interface."""
        return "Keep a plan"

    def parameters(self) -> dict[str, Any]:
        """Return the JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": {
                "steps": {
                    "type": "array",
                    "maxItems": 100,
                    "description": "The whole plan in order; an empty list clears it, none shows it.",
                    "items": {
                        "type": "object",
                        "properties": {
                            "text": {"type": "string", "minLength": 1, "maxLength": 500},
                            "state": {"type": "string", "enum": list(_STATES), "default": "pending"},
                        },
                        "required": ["text"],
                        "additionalProperties": False,
                    },
                }
            },
            "additionalProperties": False,
        }

    def run(self, params: Mapping[str, Any]) -> ToolResult:
        """Set the plan, or show it."""
        file = self._file()
        given = params.get("steps")
        if given is None:
            return _shown(_kept(file))
        steps = [{"text": step["text"], "state": step.get("state") or "pending"} for step in given]
        if sum(step["state"] == "in_progress" for step in steps) > 1:
            return ToolResult.error(
                "more than one step is in progress; the plan was not changed",
                code="several-in-progress",
                hint="set all but one to pending or done",
            )
        _keep(file, steps)
        return _shown(steps)

    def _file(self) -> Path:
        whose = json.dumps([self.context.principal, self.context.conversation])
        folder = self.context.data_folder / "plans"
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder / f"{hashlib.sha256(whose.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.json"


def _kept(file: Path) -> list[dict[str, str]]:
    try:
        steps = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []  # none yet, or damaged: a plan is written anew in one call
    return [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []


def _keep(file: Path, steps: list[dict[str, str]]) -> None:
    if not steps:
        with contextlib.suppress(FileNotFoundError):
            file.unlink()
        return
    aside = file.with_name(f"{secrets.token_hex(8)}.new")
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as opened:
        json.dump(steps, opened)
    aside.replace(file)


def _shown(steps: list[dict[str, str]]) -> ToolResult:
    left = sum(step.get("state") in ("pending", "in_progress") for step in steps)
    return ToolResult.ok({"steps": steps}, count=len(steps), left=left)
