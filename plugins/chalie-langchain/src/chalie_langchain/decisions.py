"""What goes out with an interrupt, and what a resumed one brings: plain values, for any client."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen
from chalie import AnswerKind, HoldView
from chalie.envelope import parse

__all__ = ["Decision", "names", "question", "read"]

_KINDS = {"approve": AnswerKind.ONCE, "reject": AnswerKind.DECLINE}


@frozen
class Decision:
    """A person's answer, and what they said with it."""

    kind: AnswerKind
    message: str = ""


def question(hold: HoldView, call_id: str, problem: str = "") -> dict[str, Any]:
    """Return the value of an interrupt: the shape of LangChain's own approval of one call, and the hold.

    Args:
        hold: what waits; the approval binds to its arguments.
        call_id: the id of the model's tool call.
        problem: why the answer before this question could not be used.
    """
    reasons = "; ".join(hold.reasons)
    return {
        "type": "tool_approval",
        "tool_call_id": call_id,
        "name": hold.name,
        "args": dict(hold.arguments),
        "description": f"{hold.permission} ({hold.effect.value}) of {hold.dist}: {reasons}",
        "allowed_decisions": list(_KINDS),
        "hold": hold.id,
        "permission": hold.permission,
        "model_says": hold.model_says,
        "expires_at": hold.expires_at.isoformat() if hold.expires_at else None,
        **({"problem": problem} if problem else {}),
    }


def read(answer: object) -> Decision | str:
    """Return the decision of a resumed interrupt, or why there is none: only a clear yes is one.

    Taken are `{"type": "approve"}`, `{"type": "reject", "message": "..."}`, and either alone in a list of
    `decisions`.
    """
    if isinstance(answer, Mapping) and "decisions" in answer:
        several = answer["decisions"]
        if not isinstance(several, list) or len(several) != 1:
            return f"this question takes a list of one decision, not {several!r:.80}"
        answer = several[0]
    if not isinstance(answer, Mapping):
        return f'the answer is {{"type": "approve"}} or {{"type": "reject"}}, not {answer!r:.80}'
    kind = _KINDS.get(str(answer.get("type")))
    if kind is None:
        return f"a call can be approved or rejected as it is held, not {answer.get('type')!r:.40}"
    return Decision(kind, str(answer.get("message") or ""))


def names(messages: Sequence[Any]) -> tuple[str, ...]:
    """Return the tools that were found or called since the person spoke last, in that order, each once.

    A run that goes on in another process begins with these: they were listed before it stopped.
    """
    spoken = [at for at, message in enumerate(messages) if message.type == "human"]
    found: dict[str, None] = {}
    for message in messages[spoken[-1] + 1 if spoken else 0 :]:
        if message.type == "ai":
            found.update(dict.fromkeys(call["name"] for call in message.tool_calls))
        elif message.type == "tool" and message.name == "find_tools":
            found.update(dict.fromkeys(_injected(message.content)))
    return tuple(found)


def _injected(content: object) -> Iterator[str]:
    """Yield the names in what `find_tools` answered; nothing where that cannot be read."""
    try:
        for tool in json.loads(parse(str(content)).body)["injected"]:
            yield str(tool["name"])
    except (ValueError, KeyError, TypeError):
        return
