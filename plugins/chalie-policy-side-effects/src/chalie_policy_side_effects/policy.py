"""What a call leaves behind decides whether a person is asked: never its name, never what the model says.

Its `allow` counts once a person trusts it (`chalie trust chalie-policy-side-effects`); a person's own row for
a permission goes before everything here.
"""

from __future__ import annotations

from chalie import Call, Opinion, SideEffect, hookimpl

__all__ = ["review_call"]

_HARMLESS = (SideEffect.READ, SideEffect.COMPUTATION)


@hookimpl
def review_call(call: Call) -> Opinion:
    """Say that a call which only reads or computes may run, and that a person is asked about any other.

    One that sends may run where what it sends lands in the very conversation that is being answered: the
    person there asked for it. Where it lands is computed by the tool from what it will really do
    (`Ability.destination`); a direct message to somebody, or a channel called by its name, is elsewhere.
    """
    if call.requires_approval:
        return Opinion("ask", "the tool asks to be approved each time")
    if not call.trusted:
        return Opinion("ask", f"what {call.dist} says of its tools is not trusted")
    if call.effect in _HARMLESS:
        return Opinion("allow", f"it leaves nothing behind ({call.effect.value})")
    if call.effect is SideEffect.EXTERNAL_SEND and call.lands_in_current_conversation:
        return Opinion("allow", "what it sends lands in the conversation that is being answered")
    return Opinion("ask", _REASONS[call.effect])


_REASONS = {
    SideEffect.WRITE: "it changes something here (write)",
    SideEffect.CONNECT: "it connects to something outside (connect)",
    SideEffect.EXTERNAL_WRITE: "it changes something outside (external_write)",
    SideEffect.EXTERNAL_SEND: "it sends something to somebody (external_send)",
    SideEffect.DESTRUCTIVE: "what it does cannot be taken back (destructive)",
}
