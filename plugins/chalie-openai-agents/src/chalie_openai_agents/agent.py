"""The agent: one of the SDK's, whose tools are asked for anew before each model request."""

from __future__ import annotations

from typing import Any, TypeVar

from agents import Agent, RunContextWrapper, Tool, UserError

from .exchange import CURRENT

__all__ = ["ChalieAgent"]

Context = TypeVar("Context")


class ChalieAgent(Agent[Context]):
    """An `Agent` that has Chalie's tools besides its own: the pinned ones, then what is found.

    Run it with `Chalie.run` or inside `Chalie.exchange`, which open the turn of the run. Its own tools keep
    their names where a found tool has the same.
    """

    async def get_all_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
        """Return its own tools and what can be called now in the run's turn.

        Raises:
            UserError: there is no turn.
        """
        exchange = CURRENT.get()
        if exchange is None:
            raise UserError("a ChalieAgent is run with Chalie.run, or inside Chalie.exchange")
        own = await super().get_all_tools(run_context)
        names = {tool.name for tool in own}
        return [*own, *(tool for tool in await exchange.tools(run_context) if tool.name not in names)]
