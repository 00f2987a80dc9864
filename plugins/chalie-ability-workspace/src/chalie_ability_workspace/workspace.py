"""What the abilities of the workspace have in common: whose account they act as, and how they refuse."""

from __future__ import annotations

import getpass
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from chalie import Ability, ToolResult

from .refusal import Refused

__all__ = ["WorkspaceAbility"]


class WorkspaceAbility(Ability):
    """An ability that acts with the powers of the account the host runs as.

    So it acts for that account alone: for another principal it would lend powers that are not theirs.
    """

    namespace = "workspace"

    def run(self, params: Mapping[str, Any]) -> ToolResult:
        """Do the work, for the account's own principal only."""
        account = getpass.getuser()
        if self.context.principal != account:
            return ToolResult.error(
                f"{self.name()} acts as the account {account}, which is not {self.context.principal}'s",
                code="not-allowed",
                hint="do not retry; it can only be used in a turn of that account",
            )
        try:
            return self.work(params)
        except Refused as refusal:
            return refusal.result()

    @abstractmethod
    def work(self, params: Mapping[str, Any]) -> ToolResult:
        """Do the work.

        Raises:
            Refused: it cannot be done.
        """
