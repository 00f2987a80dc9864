"""The policy as a host asks it: what it says by day and by night."""

from __future__ import annotations

from datetime import datetime

import pytest
from chalie import Call, Host, Limit, SideEffect
from chalie.testing import Clock


def asked(host: Host, effect: SideEffect, arguments: dict[str, str] | None) -> object:
    """Return what the policy says of a call, asked as the gate asks it."""
    call = Call(
        dist="chalie-ability-email",
        name="email",
        permission="email.send",
        effect=effect,
        arguments=arguments,
        channel="chat",
        principal="ada",
        conversation=None,
        descriptor_hash="",
    )
    ((_, said),) = host.plugins.each("limit_call", call=call)
    return said


@pytest.mark.parametrize(("hour", "limited"), [(6, True), (7, False), (21, False), (22, True), (0, True)])
def test_what_is_sent_at_night_is_asked_about(host: Host, clock: Clock, hour: int, limited: bool) -> None:
    clock.set(datetime(2026, 5, 4, hour, 30).astimezone())
    said = asked(host, SideEffect.EXTERNAL_SEND, {"to": "eve"})
    if not limited:
        assert said is None
    else:
        assert isinstance(said, Limit)
        assert (said.kind, "between 22 and 7" in said.reason) == ("must_ask", True)


@pytest.mark.parametrize("effect", [effect for effect in SideEffect if effect != SideEffect.EXTERNAL_SEND])
def test_nothing_else_is_limited(host: Host, clock: Clock, effect: SideEffect) -> None:
    clock.set(datetime(2026, 5, 4, 23).astimezone())
    assert asked(host, effect, {}) is None


def test_a_search_shows_what_is_limited_now(host: Host, clock: Clock) -> None:
    clock.set(datetime(2026, 5, 4, 23).astimezone())
    assert asked(host, SideEffect.EXTERNAL_SEND, None) is None
