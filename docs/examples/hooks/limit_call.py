"""Nothing is deleted here, and what is sent is seen first."""

from chalie import Call, Limit, SideEffect, hookimpl


@hookimpl
def limit_call(call: Call) -> Limit | None:
    if call.effect is SideEffect.DESTRUCTIVE:
        return Limit("deny", "nothing is deleted by an agent here")
    if call.arguments is None:
        return None  # a search asks whether the tool may be shown: it may
    if call.effect is SideEffect.EXTERNAL_SEND and not call.lands_in_current_conversation:
        return Limit("must_ask", "it goes to somebody outside this conversation")
    return None
