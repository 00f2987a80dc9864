"""The one road a call takes: resolve, arguments, gate, run, envelope, trail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..calls import Call, CallRecord
from ..catalogue.descriptor import Descriptor
from .arguments import Prepared
from .state import CancelToken, Progress, TurnState

if TYPE_CHECKING:
    from ..ability import Ability
    from ..catalogue.snapshot import Snapshot
    from ..config import Config
    from ..gate.gate import Gate
    from ..ledger import Ledger

__all__ = ["Dispatcher"]


class Dispatcher:
    """Runs every call of every turn.

    Args:
        ledger: where calls are recorded and results, jobs and inbox are kept.
        gate: asked once per call.
        load: gives an ability's class; raises `NotReady` where its files are not those described.
        config: limits and per-package options.
        embed: texts -> one unit vector each.
        data_folder: distribution -> its private folder (made on first use).
        observe: told of each finished call; may raise without effect.
        deliver: told of each finished background call as (conversation, call id, envelope), after the
            inbox has it; may raise without effect.
    """

    def __init__(
        self,
        *,
        ledger: Ledger,
        gate: Gate,
        load: Callable[[Descriptor, Snapshot], type[Ability]],
        config: Config,
        embed: Callable[[Sequence[str]], list[list[float]]],
        data_folder: Callable[[str], Path],
        observe: Callable[[CallRecord], None],
        deliver: Callable[[str | None, str, str], None],
    ) -> None:
        raise NotImplementedError

    def call(
        self,
        state: TurnState,
        name: str,
        arguments: Any = None,
        *,
        token: CancelToken | None = None,
        progress: Progress | None = None,
    ) -> str:
        """Run one call and return its envelope. Never raises for anything a tool does.

        Args:
            state: the turn.
            name: what the model calls: an exposed, qualified or aliased name.
            arguments: a mapping, the JSON text of an object, or None.
            token: cancels this call alone; it should hang on `state.cancel`.
            progress: told how far this call is, in place of the turn's.
        """
        raise NotImplementedError

    async def acall(
        self,
        state: TurnState,
        name: str,
        arguments: Any = None,
        *,
        token: CancelToken | None = None,
        progress: Progress | None = None,
    ) -> str:
        """Do what `call` does without ever blocking the running event loop.

        Cancelling the awaiting task cancels the call: nothing is delivered for it.
        """
        raise NotImplementedError

    def seed(self, state: TurnState, calls: Iterable[tuple[str, Mapping[str, Any]]]) -> list[str]:
        """Run the framework's own calls down the same road, in order."""
        return [self.call(state, name, arguments) for name, arguments in calls]

    def prepare_call(self, state: TurnState, descriptor: Descriptor, prepared: Prepared) -> Call:
        """Return the call as the gate sees it: permission and class derived from the arguments."""
        raise NotImplementedError

    def cancel(self, call_id: str) -> bool:
        """Cancel one running call, in the background or not; return whether it was running."""
        raise NotImplementedError

    def close(self, drain_s: float = 5.0) -> None:
        """Take no more calls, wait for background ones up to `drain_s`, mark the rest, end the workers."""
        raise NotImplementedError
