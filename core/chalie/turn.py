"""One exchange of an agent: its tools, its calls, its records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from . import schema

if TYPE_CHECKING:
    from .calls import CallRecord, Channel
    from .dispatch.dispatcher import Dispatcher
    from .dispatch.state import TurnState

__all__ = ["Turn"]


class Turn:
    """One exchange of an agent, opened by `Host.turn`.

    Use one turn per exchange and drop it afterwards: what was found is active in this turn only.

    Args:
        dispatcher: runs the calls.
        state: what the turn knows.
        open_delegate: opens a turn on another channel under this one.
    """

    def __init__(
        self, dispatcher: Dispatcher, state: TurnState, open_delegate: Callable[[Turn, str], Turn]
    ) -> None:
        self._dispatcher = dispatcher
        self._open_delegate = open_delegate
        self.state = state

    @property
    def id(self) -> str:
        """The turn's id."""
        return self.state.id

    @property
    def channel(self) -> Channel:
        """Where the turn happens."""
        return self.state.channel

    @property
    def principal(self) -> str:
        """On whose behalf the turn runs."""
        return self.state.principal

    @property
    def conversation(self) -> str | None:
        """The conversation the turn belongs to, or None."""
        return self.state.conversation

    @property
    def records(self) -> Sequence[CallRecord]:
        """The finished calls of the turn, in the order they finished."""
        return tuple(self.state.records)

    @property
    def rich(self) -> Mapping[int, Any]:
        """Payloads for a user interface by the ordinal of their call (from 1); never shown to the model."""
        return dict(self.state.rich)

    @property
    def names(self) -> tuple[str, ...]:
        """The names that can be called now: the pinned ones, then what was found."""
        return tuple(self.state.tools())

    def tools(self, style: Literal["anthropic", "openai", "mcp"] = "anthropic") -> list[dict[str, Any]]:
        """Return the tools that can be called now, ready for a model API.

        Ask again after each call: a search adds to the list.

        Args:
            style: the shape of `tools=` in the Anthropic Messages API, in OpenAI's chat completions,
                or of the entries of an MCP tool listing.
        """
        background = self.state.channel.background
        return [
            schema.assemble(
                exposed, descriptor.summary, descriptor.parameters, background=background, style=style
            )
            for exposed, descriptor in self.state.tools().items()
        ]

    def call(self, name: str, arguments: Mapping[str, Any] | str | None = None) -> str:
        """Call a tool and return its envelope; nothing a tool does is ever raised here.

        Args:
            name: a name from `names`.
            arguments: a mapping, or the JSON text of an object as a model API delivers it.
        """
        return self._dispatcher.call(self.state, name, arguments)

    async def acall(self, name: str, arguments: Mapping[str, Any] | str | None = None) -> str:
        """Do what `call` does without blocking the event loop.

        Cancelling the task cancels the call.
        """
        return await self._dispatcher.acall(self.state, name, arguments)

    def seed(self, calls: Iterable[tuple[str, Mapping[str, Any]]]) -> list[str]:
        """Run the program's own calls down the same gated road, in order, before the model's.

        Args:
            calls: pairs of a name and its arguments.
        """
        return self._dispatcher.seed(self.state, calls)

    def delegate(self, channel: str) -> Turn:
        """Open a turn on a delegate channel: its own tools, this turn's policy, principal and approver.

        Raises:
            ConfigError: there is no delegate channel of that name.
        """
        return self._open_delegate(self, channel)

    def cancel(self) -> None:
        """Cancel the running calls of the turn and refuse later ones; background calls go on."""
        self.state.cancel.cancel()

    def cancel_call(self, call_id: str) -> bool:
        """Cancel one call by its id, in the background or not; return whether it was running."""
        return self._dispatcher.cancel(call_id)
