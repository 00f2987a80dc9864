"""Runs with a turn of their own: begun, gone on with after an approval, and brought back from text."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from agents import Agent, RunConfig, Runner, RunResult, RunState
from chalie import Host

from .exchange import CURRENT, Exchange
from .items import names

__all__ = ["Chalie"]


class Chalie:
    """Chalie's tools for agents of the Agents SDK. One turn for each run.

    With an approver token, what must be asked about interrupts the run; `RunState.approve` and
    `RunState.reject` are the person's answer. Without one the host's own approver is asked, and a call that
    nobody answers returns `approval-pending`.

    Args:
        host: an open host.
        channel: where the runs happen.
        approver_token: stands for the person whose answers the run's state brings; default:
            `CHALIE_APPROVER_TOKEN`.
    """

    def __init__(self, host: Host, *, channel: str = "chat", approver_token: str | None = None) -> None:
        self._host = host
        self._channel = channel
        self._token = approver_token or host.config.approver_token
        self._asked: dict[str, str] = {}

    async def run(
        self,
        agent: Agent[Any],
        input: Any,
        *,
        conversation: str,
        principal: str | None = None,
        run_config: RunConfig | None = None,
        **options: Any,
    ) -> RunResult:
        """Do what `Runner.run` does, in a turn of its own.

        Args:
            agent: a `ChalieAgent`, or one that hands over to such.
            input: as for `Runner.run`; the state of an interrupted run once its interruptions are answered.
            conversation: its id; the same for a run that goes on.
            principal: on whose behalf; default: the account's login name.
            run_config, options: as for `Runner.run`.

        Raises:
            NotAuthorised: the home does not know the approver token.
        """
        state = input if isinstance(input, RunState) else None
        async with self.exchange(
            conversation=conversation, principal=principal, state=state, run_config=run_config
        ) as config:
            return await Runner.run(agent, input, run_config=config, **options)

    @asynccontextmanager
    async def exchange(
        self,
        *,
        conversation: str,
        principal: str | None = None,
        state: RunState[Any, Any] | None = None,
        run_config: RunConfig | None = None,
    ) -> AsyncIterator[RunConfig]:
        """Open the turn of one run, for `Runner.run_streamed` and the like, and give its configuration.

        With it a call of an unknown tool, or one that was rejected, is answered in an envelope.

        Args:
            conversation, principal, run_config: as for `run`.
            state: the state of an interrupted run that goes on here.

        Raises:
            NotAuthorised: the home does not know the approver token.
        """
        stored = {} if state is None else state.to_json(context_serializer=lambda _: {})
        items = [] if state is None else state.get_interruptions()
        exchange = await self._open(conversation, principal, stored, items)
        config = run_config or RunConfig()
        formatter = config.tool_error_formatter or exchange.explain
        before = CURRENT.set(exchange)
        try:
            yield replace(
                config, tool_not_found_behavior="return_error_to_model", tool_error_formatter=formatter
            )
        finally:
            CURRENT.reset(before)

    async def restore(
        self, agent: Agent[Any], text: str, *, conversation: str, principal: str | None = None
    ) -> RunState[Any, Any]:
        """Return the state of an interrupted run from `RunState.to_string()`: what it found is listed again.

        Args:
            agent: the agent that the run began with.
            text: the stored state.
            conversation, principal: as for `run`.
        """
        before = CURRENT.set(await self._open(conversation, principal, json.loads(text), []))
        try:
            return await RunState.from_string(agent, text)
        finally:
            CURRENT.reset(before)

    async def _open(
        self, conversation: str, principal: str | None, stored: dict[str, Any], items: list[Any]
    ) -> Exchange:
        if self._token:
            await asyncio.to_thread(self._host.authority.prove, self._token)
        turn = await self._host.aturn(
            self._channel, principal=principal, conversation=conversation, active=names(stored)
        )
        return Exchange(self._host, turn, self._token, self._asked, items)
