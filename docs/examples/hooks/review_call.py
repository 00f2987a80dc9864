"""Reading may go ahead unasked, in the working week."""

from datetime import date

from chalie import Call, Opinion, SideEffect, hookimpl


@hookimpl
def review_call(call: Call) -> Opinion | None:
    if call.effect is not SideEffect.READ:
        return None
    if date.today().weekday() < 5:
        return Opinion("allow", "reading leaves nothing behind")
    return Opinion("ask", "nobody looks at the record at the weekend")
