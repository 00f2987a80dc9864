"""The playbook as an agent meets it: found by what it is about to do, and whole."""

from __future__ import annotations

import json

import pytest
from chalie import Host
from chalie.testing import assert_ok

PLAYBOOK = "pack-a-suitcase"


@pytest.mark.parametrize(
    "words",
    [
        "pack a suitcase",
        "ask first, make one list and check it off",
    ],
)
def test_it_is_found_by_its_title_and_by_the_task(host: Host, words: str) -> None:
    body = assert_ok(host.turn("chat").call("find_skills", {"query": [words]}))
    assert PLAYBOOK in json.dumps(body)


def test_it_says_what_to_do_and_when_it_is_done(host: Host) -> None:
    (playbook,) = host.snapshot.playbooks_of("chalie-skill-pack-a-suitcase")
    assert playbook.name == PLAYBOOK
    headings = [line for line in playbook.body.splitlines() if line.startswith("## ")]
    assert headings.index("## Steps") < headings.index("## Done when")
    assert len(playbook.body) < 6000, "it goes whole into a model's context"
