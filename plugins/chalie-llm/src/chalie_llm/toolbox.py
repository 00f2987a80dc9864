"""The toolbox: what `llm -T Chalie` and `model.chain(tools=[...])` are given."""

from __future__ import annotations

import secrets
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import llm
from chalie import Host, TerminalApprover

from .exchange import Answers, Exchange
from .history import names

__all__ = ["AsyncChalie", "Chalie"]


class Chalie(llm.Toolbox):  # type: ignore[no-untyped-call]  # llm's __init_subclass__ has no types
    """Tools of Chalie: a few at first, more once find_tools has found them.

    Args:
        home: the home folder; default: `CHALIE_HOME`, else the platform's. Not used with a host.
        host: an open host, which stays yours to close. Without one the home is opened, and the person at the
            terminal is asked.
        channel: where the chains happen.
        principal: on whose behalf; default: the account's login name.
        conversation: its id; the same for a chain that goes on after a pause.
        approver_token: with one, a call that must be asked about pauses the chain (`Held`); it stands for the
            person whose answers come back.
        answers: what the person said to calls that a chain before paused for: `Held.answer`.

    Raises:
        NotAuthorised: the home does not know the approver token.
    """

    awaits = False

    def __init__(
        self,
        home: str = "",
        *,
        host: Host | None = None,
        channel: str = "chat",
        principal: str = "",
        conversation: str = "",
        approver_token: str | None = None,
        answers: Answers | None = None,
    ) -> None:
        self._home = home
        self._host = host
        self._channel = channel
        self._principal = principal or None
        self._conversation = conversation or secrets.token_hex(8)
        self._token = approver_token
        self._answers: Answers = dict(answers or {})
        if approver_token is not None:
            self._opened().authority.prove(approver_token)

    @classmethod
    def method_tools(cls) -> list[llm.Tool]:
        """Return nothing: what there is to call depends on the home."""
        return []

    def tools(self) -> Iterable[llm.Tool]:
        """Return the tools of a new chain: one turn for each."""
        return self.exchange().tools_and_door()

    def exchange(self, messages: Sequence[Any] = ()) -> Exchange:
        """Open the turn of one chain.

        Args:
            messages: the history that it goes on with, if any: what was found there is listed again.
        """
        turn = self._opened().turn(
            self._channel,
            principal=self._principal,
            conversation=self._conversation,
            active=names(messages),
        )
        return Exchange(turn, self._token, self._answers, self.awaits)

    def _opened(self) -> Host:
        if self._host is None:
            self._host = Host.open(self._home or None, approver=TerminalApprover())
            weakref.finalize(self, self._host.close)
        return self._host


class AsyncChalie(Chalie):  # type: ignore[no-untyped-call]
    """The same for async models: calls are made on the event loop and never block it."""

    awaits = True
