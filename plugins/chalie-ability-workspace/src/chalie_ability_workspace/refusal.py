"""What the workspace does not do, and what it does only when a person says yes each time."""

from __future__ import annotations

from chalie import ToolResult

__all__ = ["AlwaysAsk", "Refused"]


class AlwaysAsk(Exception):
    """Raised by `classify` where no standing permission may cover the call.

    A `classify` that raises leaves the call without an action, and the host then asks a person about this
    very call, in the class `destructive`, whatever the permission rows say. The text is the reason they see.
    """


class Refused(Exception):
    """A call that cannot be done, with what its caller should know.

    Args:
        message: what and why, in one sentence.
        code: a stable kebab-case word.
        hint: the next step.
    """

    def __init__(self, message: str, *, code: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = hint

    def result(self) -> ToolResult:
        """Return the refusal as an ability returns it."""
        return ToolResult.error(self.message, code=self.code, hint=self.hint)
