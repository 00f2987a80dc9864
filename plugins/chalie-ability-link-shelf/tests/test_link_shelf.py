"""The ability as a model meets it: through a host, its gate and its record."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from chalie import Host
from chalie.testing import Outcome, ScriptedApprover, assert_error, assert_held, assert_ok

TOOL = "link_shelf"
PAGE = "https://example.org/page"


def test_what_is_added_is_listed_newest_first(call: Callable[..., Outcome]) -> None:
    assert assert_ok(call(TOOL, action="list")) == []
    assert call(TOOL, action="add", url=PAGE, note="to read").meta == {"count": 1}
    assert_ok(call(TOOL, action="add", url=f"{PAGE}/2"))
    assert assert_ok(call(TOOL, action="list")) == [
        {"url": f"{PAGE}/2", "note": ""},
        {"url": PAGE, "note": "to read"},
    ]


@pytest.mark.parametrize("url", ["", "page", "javascript:alert(1)", "ftp://example.org"])
def test_what_is_no_web_address_is_refused(call: Callable[..., Outcome], url: str) -> None:
    refused = assert_error(call(TOOL, action="add", url=url), "bad-url")
    assert "https://example.org/page" in str(refused.hint)
    assert assert_ok(call(TOOL, action="list")) == []


def test_an_address_is_required_to_add_one(call: Callable[..., Outcome]) -> None:
    assert_error(call(TOOL, action="add"), "missing-params")


def test_each_person_has_a_shelf_of_their_own(host: Host, call: Callable[..., Outcome]) -> None:
    assert_ok(call(TOOL, action="add", url=PAGE))
    other = host.turn("chat", principal="somebody-else", active=[TOOL])
    assert assert_ok(other.call(TOOL, {"action": "list"})) == []


def test_nothing_is_kept_before_a_person_says_yes(
    host: Host, call: Callable[..., Outcome], approver: ScriptedApprover
) -> None:
    approver.says("away")
    hold = assert_held(call(TOOL, action="add", url=PAGE))
    assert assert_ok(call(TOOL, action="list")) == []
    host.answer(hold, token=host.approver_token)
    assert len(assert_ok(call(TOOL, action="list"))) == 1


def test_it_is_found_by_what_people_say(host: Host) -> None:
    turn = host.turn("chat", principal="tester")
    turn.call("find_tools", {"query": ["keep this link for me"]})
    assert TOOL in turn.names
