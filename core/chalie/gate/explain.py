"""A decision in words: every verdict in order of effect, with its author, reason and source."""

from __future__ import annotations

from ..calls import Call, Decision
from .display import escaped

__all__ = ["explain"]

_STEP = {
    "row": "setting",
    "internal": "setting",
    "opinion": "setting",
    "default": "setting",
    "limit": "limit",
    "failure": "limit",
    "channel": "channel",
}


def explain(decision: Decision, call: Call) -> str:
    """Return the explanation of a decision, several lines for a person.

    Args:
        decision: from `Gate.decide`, best with `complete=True`.
        call: the call that was decided on.
    """
    tool = f"{escaped(call.name)} of {escaped(call.dist)}"
    lines = [
        f"{tool} on {escaped(call.channel)}, for {escaped(call.principal)}",
        f"permission {escaped(call.permission)}, side effect {call.effect.value}",
        "",
    ]
    for verdict in decision.verdicts:
        mark = " " if verdict.counted else "-"
        source = f"  [{escaped(verdict.source)}]" if verdict.source else ""
        first, *more = map(escaped, verdict.reason.split("\n") if verdict.kind == "row" else [verdict.reason])
        lines.append(
            f"{mark} {_STEP[verdict.kind]:<8} {verdict.value:<9} {escaped(verdict.author)}: {first}{source}"
        )
        lines += [f"{'':22}{line}" for line in more]
    if not all(verdict.counted for verdict in decision.verdicts):
        lines.append("  (- was heard and changed nothing)")
    asked = ", each time" if decision.must_ask else ""
    return "\n".join([*lines, "", f"= {decision.setting.value}{asked}"])
