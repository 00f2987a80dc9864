"""Between 22 and 7 o'clock a person is asked before anything is sent, whatever is allowed at other times."""

from __future__ import annotations

from datetime import datetime

from chalie import Call, Limit, SideEffect, hookimpl

__all__ = ["limit_call"]

#: hours of the local day, the first included, the last not.
_BEGIN, _END = 22, 7


@hookimpl
def limit_call(call: Call) -> Limit | None:
    """Have a person asked about what is sent at night; say nothing of anything else."""
    if call.arguments is None:
        return None  # a search asks what may be shown, and that does not change with the hour
    if call.effect is not SideEffect.EXTERNAL_SEND:
        return None
    hour = datetime.now().hour
    if _END <= hour < _BEGIN:
        return None
    return Limit("must_ask", f"nothing is sent unasked between {_BEGIN} and {_END} o'clock")
