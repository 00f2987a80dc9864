"""The gate of a host, put together: trusted policies, pinned tools, and the answers that holds get."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from .calls import AnswerKind, HoldChange
from .config import Config
from .gate.answering import answered
from .gate.authority import Authority
from .gate.drift import pin_of
from .gate.gate import Gate
from .gate.holds import Holds
from .gate.policies import Policies, note_policies
from .ledger import Ledger
from .ledger.hold import Hold
from .ledger.pins import Pin

if TYPE_CHECKING:
    from .build import Upkeep
    from .catalogue.plugins import Plugins

__all__ = ["Approvals"]


class Approvals:
    """What a host knows of decisions: made once, with it.

    Args:
        config: its options of the gate.
        ledger: rows, holds, pins and trust.
        upkeep: what is installed.
        plugins: the loaded policies.
        authority: proves who answers.

    Attributes:
        environment: key of this Python environment.
        gate: decides on every call.
        holds: what waits for a person.
    """

    def __init__(
        self,
        config: Config,
        ledger: Ledger,
        upkeep: Upkeep,
        plugins: Plugins,
        authority: Authority,
    ) -> None:
        options = config.gate
        self.environment = upkeep.environment
        self._config = config
        self._ledger = ledger
        self._upkeep = upkeep
        self._plugins = plugins
        self._authority = authority
        self.holds = Holds(
            ledger,
            environment=self.environment,
            keep_s=options.hold_days * 86_400,
            facts=self.pin,
            changed=self._changed,
        )
        policies = Policies(
            plugins, required=options.required, deadline_ms=options.deadline_ms, trusted=self.trusts
        )
        note_policies(ledger, self.environment, plugins, options.required)
        self.gate = Gate(
            ledger, policies, ask_timeout_s=options.ask_timeout_s, holds=self.holds, facts=self.pin
        )

    def trusts(self, dist: str) -> bool:
        """Tell whether a loaded policy's allow counts: no longer, once its files are not those loaded."""
        loaded = self._plugins.files_hashes.get(dist)
        return (
            loaded is not None
            and loaded == self.files_hash(dist)
            and self._ledger.permissions.trusts(dist, loaded, self.environment)
        )

    def files_hash(self, dist: str) -> str:
        """Return the hash over a package's files as they are described; empty where there are none."""
        row = self._upkeep.latest.snapshot.distribution(dist)
        return "" if row is None else row.files_hash

    def pin(self, dist: str, name: str) -> Pin | None:
        """Return an ability as a person's allow would pin it now; None where it is not there."""
        found = self._upkeep.latest.snapshot.get(dist, name)
        return None if found is None else pin_of(found, self.files_hash(dist))

    def answer(
        self,
        run: Callable[[str], str | None],
        hold_id: str,
        kind: AnswerKind | str,
        until: datetime | None,
        token: str | None,
    ) -> Hold:
        """Prove who answers a hold, record the answer and see to its run; `Host.answer` says what of it."""
        by = self._authority.prove(token or self._config.approver_token)
        return answered(self.holds, self._ledger, run, hold_id, kind, by, until)

    def _changed(self, change: HoldChange) -> None:
        self._plugins.tell("hold_changed", change=change)
