"""The ability `bash`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from chalie import SideEffect, ToolResult

from .guarded import protected, secret
from .opening import folder
from .refusal import AlwaysAsk, Refused
from .roots import resolve, roots
from .shell.judging import LONGEST, judge
from .workspace import WorkspaceAbility, openly

__all__ = ["Bash"]

_USUAL_S: Final = 120
_MOST_S: Final = 1800
_USUAL_BYTES: Final = 64 * 1024
_MOST_BYTES: Final = 1024 * 1024


class Bash(WorkspaceAbility):
    """A command, judged before it runs.

    The judgement tells what is asked about. It does not hold a command that a person lets run: that has
    all the powers of the account.
    """

    actions = {
        "read": SideEffect.READ,
        "write": SideEffect.WRITE,
        "network": SideEffect.EXTERNAL_SEND,
        "install": SideEffect.DESTRUCTIVE,
        "destructive": SideEffect.DESTRUCTIVE,
    }
    latency = "medium"
    # the host's own limit comes last: the ability's ends the whole process group and reports the output
    time_limit_s = _MOST_S + 30.0
    aliases = {
        "cmd": "command",
        "script": "command",
        "cwd": "folder",
        "workdir": "folder",
        "timeout": "timeout_s",
        "approval_required": "approvalRequired",
        "approval_reason": "approvalReason",
    }

    def name(self) -> str:
        """Return what the model calls it by."""
        return "bash"

    def summary(self) -> str:
        """Say what it does, for the model and for search."""
        return (
            "Run a bash command in the workspace and return its output and exit code. Simple commands that "
            "only read (ls, cat, head, grep, find, wc) run at once; most others wait for a person's yes."
        )

    def examples(self) -> list[str]:
        """Return what people say who need it."""
        return [
            "run the test script",
            "execute this shell command",
            "search the source for a function with grep",
            "count the lines in all files",
            "run make in the shell to build the project",
            "check the git status in the terminal",
            "install the dependencies",
            "start the script and show what it prints",
        ]

    def search_tooltip(self) -> str:
        """Return a few words for a user interface."""
        return "Run a shell command"

    def parameters(self) -> dict[str, Any]:
        """Return the JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": {
                "command": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": LONGEST,
                    "description": "What bash runs. It has no terminal and no input. What it leaves running "
                    "is ended with it. To search without a question: grep -rn --include='*.py' WORD src",
                },
                "folder": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 4096,
                    "description": "The folder to run in; the workspace's own unless given.",
                },
                "timeout_s": {
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "maximum": _MOST_S,
                    "description": f"Seconds it may take; {_USUAL_S} unless given.",
                },
                "output_bytes": {
                    "type": "integer",
                    "minimum": 1024,
                    "maximum": _MOST_BYTES,
                    "description": "How much of the output is kept: its beginning and its end.",
                },
                "approvalRequired": {
                    "type": "boolean",
                    "description": "true to have a person look at this command, whatever is allowed.",
                },
                "approvalReason": {
                    "type": "string",
                    "maxLength": 1000,
                    "description": "Why a person should look at it.",
                },
            },
            "required": ["command"],
            "additionalProperties": False,
        }

    def classify(self, params: Any) -> str:
        """Return which action a command is; what cannot be told is always asked about.

        Works without a context: the workspace's folders are all it needs to know.

        Raises:
            AlwaysAsk: no standing permission covers it, or the model asks for a person.
        """
        if params.get("approvalRequired"):
            said = params.get("approvalReason")
            # quoted: it is the model's claim, beside reasons that are not
            raise AlwaysAsk(
                f"the model asks for a person, saying {said!r}" if said else "the model asks for a person"
            )
        command = params["command"]
        if not isinstance(command, str):
            raise AlwaysAsk("the command is no text")
        try:
            asked = params.get("folder")
            base = resolve(asked).path if asked else roots()[0]
        except Refused:
            return "destructive"  # the run refuses it
        return judge(command, base)

    def work(self, params: Mapping[str, Any]) -> ToolResult:
        """Run the command."""
        from .shell.running import run

        command = params["command"]
        if "\0" in command:
            raise Refused(
                "the command holds a NUL", code="invalid-param", hint="write it as \\0 where needed"
            )
        try:
            command.encode()
        except UnicodeEncodeError:
            raise Refused("the command is no text", code="invalid-param", hint="pass valid Unicode") from None
        place = openly(params.get("folder") or ".", protected, secret)
        limit_s = float(params.get("timeout_s") or _USUAL_S)
        most = int(params.get("output_bytes") or _USUAL_BYTES)
        with folder(place) as opened:
            ran = run(command, opened, place.path, limit_s, most, lambda: self.context.cancelled)
        facts: dict[str, Any] = {"seconds": round(ran.seconds, 2)}
        if ran.left_out:
            facts["left_out_bytes"] = ran.left_out
        if ran.stopped is None:
            return ToolResult.ok(ran.output, exit_code=ran.code, **facts)
        after = f" It wrote before: {ran.output[-2000:]}" if ran.output else ""
        if ran.stopped == "cancelled":
            return ToolResult.error(f"the command was cancelled and ended.{after}", code="cancelled", **facts)
        return ToolResult.error(
            f"the command took over {limit_s:g} s and was ended, with all it had started.{after}",
            code="timed-out",
            hint=f"pass a larger timeout_s= (up to {_MOST_S}), or do it in parts",
            **facts,
        )
