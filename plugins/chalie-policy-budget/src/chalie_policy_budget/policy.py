"""At most so many calls of a permission in so much time; beyond that a person is asked, or nothing runs.

What is allowed stands in `budget.toml` in the home folder (or where `CHALIE_BUDGET_FILE` says), read when the
host starts. A file that cannot be used keeps this policy from being loaded, and `chalie doctor` says why.
"""

from __future__ import annotations

from chalie import Call, CallRecord, Limit, hookimpl

from .counter import Counter
from .rules import read_rules

__all__ = ["call_finished", "limit_call"]

_RULES = read_rules()
_COUNTER = Counter(max(rule.seconds for rule in _RULES) if _RULES else 0.0)

#: how a call ends that never ran: it costs nothing.
_NOT_RUN = frozenset(
    {"approval-pending", "cannot-record", "declined", "not-allowed", "permission-denied", "not-ready"}
)


@hookimpl
def limit_call(call: Call) -> Limit | None:
    """Narrow a call whose permission has been used up; the strictest rule that fits counts."""
    if call.arguments is None:
        return None  # a search may show a tool whose budget comes back in a while
    hardest: Limit | None = None
    for rule in _RULES:
        if not rule.fits(call):
            continue
        used = _COUNTER.used(
            call.permission, call.principal if rule.per == "principal" else None, rule.seconds
        )
        if used >= rule.calls:
            limit = Limit(
                rule.then, f"{used} of {rule.calls} calls of {call.permission} {rule.window} are used"
            )
            if hardest is None or limit.kind == "deny":
                hardest = limit
    return hardest


@hookimpl
def call_finished(record: CallRecord) -> None:
    """Count a call that ran."""
    if record.setting is not None and record.code not in _NOT_RUN:
        _COUNTER.add(record.permission, record.principal)
