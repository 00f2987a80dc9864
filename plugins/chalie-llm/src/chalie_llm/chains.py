"""Chains in which what was found is listed by its own name, and what nobody has is answered by the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import llm
from llm.parts import Message, Part, ToolResultPart

from .exchange import Held
from .toolbox import Chalie

__all__ = ["achain", "chain"]


def chain(model: llm.Model, prompt: str | None = None, *, chalie: Chalie, **options: Any) -> str:
    """Run a chain to its end and return the text of its last response.

    llm copies the tools of a chain from one response to the next. What was found is added before each.

    Args:
        model: an llm model, or a conversation.
        prompt: what the person says; None where `messages=` goes on with a history.
        chalie: the toolbox.
        options: as for `model.chain`; `tools` are the program's own.

    Raises:
        Held: a call waits for a person. It has the messages to go on with.
    """
    messages = list(options.get("messages") or ())
    exchange = chalie.exchange(messages)
    own = list(options.pop("tools", None) or ())
    made = model.chain(prompt, tools=[*own, *exchange.tools()], **options)
    last: Any = None
    text = ""
    try:
        for last in made.responses():
            exchange.join(last.prompt.tools)
            text = last.text()
            exchange.cover(last.prompt.tools, last.tool_calls())
    except Held as held:
        said = [] if last is None else last.messages()
        held.messages = _history(messages if last is None else last.prompt.messages, said, held)
        raise
    return text


async def achain(model: llm.AsyncModel, prompt: str | None = None, *, chalie: Chalie, **options: Any) -> str:
    """Do what `chain` does with an async model and an `AsyncChalie`."""
    import asyncio

    messages = list(options.get("messages") or ())
    exchange = await asyncio.to_thread(chalie.exchange, messages)
    own = list(options.pop("tools", None) or ())
    made = model.chain(prompt, tools=[*own, *exchange.tools()], **options)
    last: Any = None
    text = ""
    try:
        async for last in made.responses():
            exchange.join(last.prompt.tools)
            text = await last.text()
            exchange.cover(last.prompt.tools, await last.tool_calls())
    except Held as held:
        said = [] if last is None else await last.messages()
        held.messages = _history(messages if last is None else last.prompt.messages, said, held)
        raise
    return text


def _history(sent: Sequence[Any], said: Sequence[Any], held: Held) -> list[Any]:
    """Return what was sent and said until the pause, and the results of the calls before it."""
    results: list[Part] = [
        ToolResultPart(name=result.name, output=result.output, tool_call_id=result.tool_call_id)
        for result in held.tool_results
    ]
    return [*sent, *said, *([Message(role="tool", parts=results)] if results else [])]
