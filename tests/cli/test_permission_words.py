"""What `permissions` makes of its words: nothing is set that never counts, and the host's own rows show."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from chalie.cli import exits

Chalie = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("installed")


def rows(chalie: Chalie) -> list[dict[str, Any]]:
    """Return the rows that people set."""
    return [row for row in chalie("permissions", "list", "--json").json if row["by"] != "host"]


@pytest.mark.parametrize(
    ("permission", "more"),
    [
        ("notes.frob", ()),
        ("notes.claer", ()),
        ("dice.roll", ()),
        ("dicee", ("--package", "chalie-ability-dice")),
    ],
)
def test_what_an_installed_package_does_not_have_is_refused_with_what_it_has(
    chalie: Chalie, token: str, permission: str, more: tuple[str, ...]
) -> None:
    done = chalie("permissions", "set", "chat", permission, "deny", *more)
    assert done.code == exits.FAILED
    has = "notes, notes.add, notes.clear" if permission.startswith("notes") else "it has dice"
    assert f"has no permission {permission}" in done.err and has in done.err
    assert "--force" in done.err
    assert rows(chalie) == []


def test_a_mistyped_permission_is_told_which_was_meant(chalie: Chalie, token: str) -> None:
    assert "did you mean notes.clear?" in chalie("permissions", "set", "chat", "notes.claer", "deny").err
    assert "did you mean dice?" in chalie("permissions", "set", "chat", "dicee", "deny").err


def test_a_row_can_be_forced_ahead_of_the_version_that_brings_it(chalie: Chalie, token: str) -> None:
    done = chalie("permissions", "set", "chat", "notes.frob", "deny", "--force")
    assert done.code == exits.OK
    assert "nothing installed has that permission yet" in done.err
    assert [row["permission"] for row in rows(chalie)] == ["notes.frob"]


def test_a_row_of_a_package_that_is_not_installed_is_set_and_said_so(chalie: Chalie, token: str) -> None:
    done = chalie("permissions", "set", "chat", "mail.send", "deny", "--package", "Chalie_Ability.Mail")
    assert done.code == exits.OK
    assert "the row counts when chalie-ability-mail brings it" in done.err
    assert [row["package"] for row in rows(chalie)] == ["chalie-ability-mail"]


def test_a_package_may_be_spelt_as_pip_takes_it(chalie: Chalie, token: str) -> None:
    done = chalie("permissions", "set", "chat", "dice", "allow", "--package", "Chalie_Ability_Dice")
    assert done.code == exits.OK and done.err == ""
    assert chalie("call", "dice").code == exits.OK
    assert (
        chalie("permissions", "remove", "chat", "dice", "--package", "CHALIE.ability.dice").code == exits.OK
    )


def test_the_hosts_own_table_is_listed_and_marked(chalie: Chalie) -> None:
    listed = chalie("permissions", "list", "--json").json
    own = {(row["channel"], row["package"], row["permission"]) for row in listed if row["by"] == "host"}
    assert ("chat", "chalie", "find_tools") in own
    assert ("subconscious", "chalie-ability-memory", "memory") in own
    assert {row["setting"] for row in listed if row["by"] == "host"} == {"internal"}
    assert "host" in chalie("permissions").out


def test_what_a_person_set_stands_instead_of_the_hosts_row(chalie: Chalie, token: str) -> None:
    assert chalie("permissions", "set", "chat", "find_tools", "deny").code == exits.OK
    found = [
        (row["setting"], row["by"])
        for row in chalie("permissions", "list", "--channel", "chat", "--json").json
        if row["permission"] == "find_tools"
    ]
    assert found == [("deny", "token:phone")]


def test_the_group_alone_takes_json_too(chalie: Chalie) -> None:
    assert chalie("permissions", "--json").json == chalie("permissions", "list", "--json").json


def test_a_mistyped_channel_is_a_usage_error(chalie: Chalie, token: str) -> None:
    for words in (
        ["set", "chatt", "dice", "deny"],
        ["remove", "chatt", "dice"],
        ["list", "--channel", "chatt"],
    ):
        done = chalie("permissions", *words)
        assert done.code == exits.USAGE, words
        assert "there is no channel 'chatt'; did you mean chat?" in done.err


def test_until_is_given_in_utc_to_programs(chalie: Chalie, token: str) -> None:
    assert chalie("permissions", "set", "chat", "dice", "allow", "--for", "10").code == exits.OK
    (row,) = rows(chalie)
    assert datetime.fromisoformat(row["until"]).utcoffset() == datetime.now(UTC).utcoffset()
