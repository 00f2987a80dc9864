"""One exchange of an agent: its tools, its calls, its records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from . import schema
from .calls import AnswerKind, Setting
from .envelope import parse, render
from .errors import ChalieError, NotAuthorised
from .result import ToolResult

if TYPE_CHECKING:
    from datetime import datetime

    from .approvals import Approvals
    from .calls import Answer, Call, CallRecord, Channel, HoldView
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
        approvals: knows the calls that wait for a person.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        state: TurnState,
        open_delegate: Callable[[Turn, str], Turn],
        approvals: Approvals,
    ) -> None:
        self._dispatcher = dispatcher
        self._open_delegate = open_delegate
        self._approvals = approvals
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

    def attempt(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None = None,
        *,
        hold: str | None = None,
        answer: AnswerKind | None = None,
        token: str | None = None,
    ) -> tuple[str, HoldView | None]:
        """Call a tool without asking anybody, for a program that asks in a way of its own, perhaps later.

        Once the program has an answer it makes the same call again with it. An answer is for the very call
        that was asked about: it counts only where that call waited before this one, with these arguments. A
        no never runs anything.

        Args:
            name: a name from `names`.
            arguments: a mapping, or the JSON text of an object as a model API delivers it.
            hold: the id of what was asked about; where it was answered elsewhere meanwhile, what became
                of it is the result, and nothing is called. Without it an answer is for the one that has
                waited longest of the same calls.
            answer: what the person said, or None where nobody has been asked.
            token: the approver token that stands for the person; left out, it is as in `Host.answer`.

        Returns:
            The call's envelope, and what it waits for; None where it does not wait.

        Raises:
            NotAuthorised: the answer is nobody's who may give one; the call still waits.
        """
        over = self._over(name, arguments, hold, answer, token)
        if over is not None:
            return over, None
        asked = _Unasked()
        text = self._dispatcher.call(self.state, name, arguments, approver=asked)
        return text, asked.waits(text)

    async def aattempt(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None = None,
        *,
        hold: str | None = None,
        answer: AnswerKind | None = None,
        token: str | None = None,
    ) -> tuple[str, HoldView | None]:
        """Do what `attempt` does without blocking the event loop."""
        import asyncio

        over = None
        if hold is not None or answer is not None:
            over = await asyncio.to_thread(self._over, name, arguments, hold, answer, token)
        if over is not None:
            return over, None
        asked = _Unasked()
        text = await self._dispatcher.acall(self.state, name, arguments, approver=asked)
        return text, asked.waits(text)

    def foresee(
        self, name: str, arguments: Mapping[str, Any] | str | None = None
    ) -> tuple[Setting | None, str]:
        """Return what the gate would say of a call now, running and changing nothing.

        Args:
            name, arguments: as in `call`.

        Returns:
            `allow`, `ask` or `deny`, and no text; or None and the envelope of the refusal that the call would
            meet before the gate: of an unknown tool, or of arguments that do not fit.
        """
        try:
            call = self._dispatcher.examine(self.state, name, arguments)
            if isinstance(call, ToolResult):
                return None, render(name, call)
            return self._approvals.gate.decide(call, self.channel).setting, ""
        except ChalieError as error:
            return None, _refused(name, error)

    async def aforesee(
        self, name: str, arguments: Mapping[str, Any] | str | None = None
    ) -> tuple[Setting | None, str]:
        """Do what `foresee` does without blocking the event loop."""
        import asyncio

        return await asyncio.to_thread(self.foresee, name, arguments)

    def waiting(
        self, name: str | None = None, arguments: Mapping[str, Any] | str | None = None
    ) -> tuple[HoldView, ...]:
        """Return the calls of this principal's conversation that wait for a person, oldest first.

        Args:
            name, arguments: as in `call`; with a name, only the one that an answer to this very call is for.
        """
        waits = self._approvals.waiting(self.principal, self.conversation)
        if name is None:
            return waits
        call = self._examined(name, arguments)
        held = None if call is None else self._approvals.asked_about(call, None, self.state)
        return tuple(view for view in waits if view.id == held)

    def settle(
        self,
        hold: str,
        kind: AnswerKind | str = AnswerKind.ONCE,
        *,
        until: datetime | None = None,
        token: str | None = None,
    ) -> str:
        """Answer a call of this principal that waits, and return its envelope once it has ended.

        After a yes it is run, once, exactly as it was held. Where somebody else answered first, or it has
        ended, the envelope says what became of it. It is not in the inbox any more then.

        Args:
            hold: its id.
            kind, until, token: as in `Host.answer`.

        Raises:
            NotAuthorised: nobody who may answer did.
            ChalieError: `hold-unknown`, `not-ready` or `not-allowed`.
        """
        text = self._approvals.settle(self._dispatcher.run_hold, hold, kind, until, token, self.principal)
        return self._readable(text)

    async def asettle(
        self,
        hold: str,
        kind: AnswerKind | str = AnswerKind.ONCE,
        *,
        until: datetime | None = None,
        token: str | None = None,
    ) -> str:
        """Do what `settle` does without blocking the event loop; cancelling it does not cancel the call."""
        import asyncio

        return await asyncio.to_thread(self.settle, hold, kind, until=until, token=token)

    def _over(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None,
        hold: str | None,
        answer: AnswerKind | None,
        token: str | None,
    ) -> str | None:
        """Return what became of a call that waited, once answered; None where the call is to be made."""
        if hold is None and answer is None:
            return None
        no = answer in _NO
        try:
            # a no, which runs nothing, is for whatever waits under that id; a yes is for the very call
            call = None if no and hold is not None else self._examined(name, arguments)
            held = self._approvals.asked_about(call, hold, self.state)
            if held is not None:
                text = self._approvals.outcome(held, self.principal)
                if text is not None:
                    return self._readable(text)
                if answer is not None and (no or call is not None):
                    return self.settle(held, answer, token=token)
        except NotAuthorised:
            raise
        except ChalieError as error:
            return _refused(name, error)
        if no:  # to a call that does not wait: a no runs nothing, also where a row allows it
            result = ToolResult.error("it was declined by the person; do not retry.", code="declined")
            return render(name, result)
        return None

    def _examined(self, name: str, arguments: Mapping[str, Any] | str | None) -> Call | None:
        try:
            call = self._dispatcher.examine(self.state, name, arguments)
        except ChalieError:
            return None
        return None if isinstance(call, ToolResult) else call

    def _readable(self, text: str) -> str:
        """Make the rest of a result that was cut readable from this turn, and return its envelope."""
        if self.state.reader is not None and "result" in parse(text).meta:
            self.state.activate(self.state.reader)
        return text

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


#: answers that run nothing.
_NO = (AnswerKind.DECLINE, AnswerKind.DECLINE_ALWAYS)


def _refused(name: str, error: ChalieError) -> str:
    return render(name, ToolResult.error(error.message or error.code, code=error.code, hint=error.hint))


class _Unasked:
    """Takes the question about one call and asks nobody: its program does, and answers later."""

    def __init__(self) -> None:
        self._hold: HoldView | None = None

    def ask(self, hold: HoldView) -> Answer:
        """Note what is asked about; raising is no answer."""
        self._hold = hold
        raise LookupError("the program that made the call asks about it itself")

    def waits(self, text: str) -> HoldView | None:
        """Return what the call waits for, given its envelope: it may have been answered elsewhere by now."""
        return self._hold if self._hold is not None and parse(text).code == "approval-pending" else None
