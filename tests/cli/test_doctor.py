"""What `chalie doctor` says that is no failure: of packages that are gone, and of how tools are described."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from chalie import Host
from chalie.cli import exits

from tests.support import packages

from .conftest import Ran

Chalie = Callable[..., Ran]


def notes_on(chalie: Chalie, package: str) -> list[dict[str, str]]:
    return [row for row in chalie("doctor", "--json").json["notes"] if row["package"] == package]


def remove(package: packages.Installed, home: Path) -> None:
    """Uninstall a package and have that noticed, as the next command of a person would."""
    package.uninstall()
    with Host.open(home) as host:
        host.upkeep.refresh(None)


@pytest.fixture
def echo(site: Path, home: Path) -> packages.Installed:
    found = packages.install(site, packages.ability_package("echo_words"))
    with Host.open(home) as host:
        host.upkeep.refresh(None)
    return found


def test_a_setting_and_its_pins_outlive_their_package_and_count_when_it_comes_back(
    chalie: Chalie, echo: packages.Installed, home: Path, token: str
) -> None:
    assert chalie("permissions", "set", "chat", "echo_words", "allow").code == exits.OK
    with Host.open(home) as host:
        pinned = host.ledger.pins.list()
    assert [row.pin.dist for row in pinned] == ["chalie-ability-echo-words"]
    remove(echo, home)
    (note,) = notes_on(chalie, "chalie-ability-echo-words")
    assert note["reason"].startswith("known but not installed")
    assert "settings" in note["reason"] and "pins" in note["reason"] and "wait" not in note["reason"]
    assert note["fix"] == "chalie install chalie-ability-echo-words"
    (row,) = chalie("permissions", "list", "--package", "chalie-ability-echo-words", "--json").json
    assert row["setting"] == "allow"
    with Host.open(home) as host:
        assert host.ledger.pins.list() == pinned
    packages.install(echo.target, echo.package)
    with Host.open(home) as host:
        host.upkeep.refresh(None)
    assert notes_on(chalie, "chalie-ability-echo-words") == []
    assert chalie("call", "echo_words").code == exits.OK


def test_a_call_that_waits_outlives_its_package_and_can_be_approved_when_it_is_back(
    chalie: Chalie, echo: packages.Installed, home: Path, token: str
) -> None:
    found = re.search(r"chalie approve ([0-9a-f]{8})", chalie("call", "echo_words", "text=six").out)
    assert found
    remove(echo, home)
    (note,) = notes_on(chalie, "chalie-ability-echo-words")
    assert note["reason"].startswith("known but not installed")
    assert "calls that wait" in note["reason"] and "settings" not in note["reason"]
    (row,) = chalie("holds", "--json").json
    assert (row["id"], row["state"], row["arguments"]) == (found[1], "pending", {"text": "six"})
    assert chalie("approve", found[1]).code != exits.OK
    assert [(row["id"], row["state"]) for row in chalie("holds", "--json").json] == [
        (found[1], "not-started")
    ]
    packages.install(echo.target, echo.package)
    with Host.open(home) as host:
        host.upkeep.refresh(None)
    done = chalie("approve", found[1])
    assert done.code == exits.OK, done.err
    assert '{"echo":{"text":"six"}}' in done.out


def test_a_pin_of_the_configuration_outlives_its_package(
    chalie: Chalie, echo: packages.Installed, home: Path
) -> None:
    (home / "config.toml").write_text(
        '[channels.chat]\npins = ["find_tools", "chalie-ability-echo-words:echo_words"]\n'
    )
    assert notes_on(chalie, "chalie-ability-echo-words") == []
    with Host.open(home) as host:
        assert host.turn("chat").names == ("find_tools", "echo_words")
    remove(echo, home)
    with Host.open(home) as host:
        assert host.turn("chat").names == ("find_tools",)
    (note,) = notes_on(chalie, "chalie-ability-echo-words")
    assert "pinned on chat" in note["reason"] and "not installed" in note["reason"]
    assert note["fix"] == "chalie install chalie-ability-echo-words"


def test_tools_with_fewer_than_six_or_more_than_eight_examples_are_advised_on_and_work(
    chalie: Chalie, site: Path
) -> None:
    counts = {f"words_{count}": count for count in (1, 5, 6, 7, 8, 9)}
    for name, count in counts.items():
        examples = [f"do the thing in way {number}" for number in range(count)]
        packages.install(site, packages.ability_package(name, examples=examples))
    said = chalie("doctor", "--json").json
    advised = {row["package"]: row["reason"] for row in said["notes"] if "example" in row["reason"]}
    assert {package: reason.split(",")[0] for package, reason in advised.items()} == {
        "chalie-ability-words-1": "words_1 has 1 example",
        "chalie-ability-words-5": "words_5 has 5 examples",
        "chalie-ability-words-9": "words_9 has 9 examples",
    }
    assert said["problems"] == []
    assert chalie("find", *counts, "--json").json["not_found"] == []


def test_the_doctor_says_which_package_wants_what(
    chalie: Chalie, site: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from chalie.catalogue import interfaces
    from chalie.errors import Leaving

    both = packages.ability_package("echo_words")
    packages.install(
        site,
        packages.Package(
            both.dist,
            files=both.files,
            entry_points={**both.entry_points, "chalie.abilities.v2": {"echo_words": "later"}},
            requires=("chalie>=0.1,<0.2", "attrs>=20", 'chalie>=7; extra == "later"'),
        ),
    )
    packages.install(
        site,
        packages.Package(
            "chalie-policy-later",
            files={"later_policy.py": ""},
            entry_points={"chalie.policies.v2": {"later": "later_policy"}},
            requires=("chalie>=7",),
        ),
    )
    found = {row["package"]: row for row in chalie("doctor", "--json").json["wants"]}
    assert found["chalie-ability-echo-words"] == {
        "package": "chalie-ability-echo-words",
        "version": "1.0",
        "interfaces": ["abilities 1", "abilities 2"],
        "chalie": "<0.2,>=0.1",
        "met": True,
        "leaving": [],
    }
    later = found["chalie-policy-later"]
    assert (later["interfaces"], later["chalie"], later["met"]) == (["policies 2"], ">=7", False)
    ran = chalie("doctor")
    assert ran.code == exits.NOTHING, "what a package wants and this host has not is to be repaired"
    lines = [line.split() for line in ran.out.splitlines()]
    assert ["chalie-policy-later", "1.0", "policies", "2", ">=7", "(not", "this", "one)"] in lines
    assert ["chalie-ability-echo-words", "1.0", "abilities", "1,", "abilities", "2", "<0.2,>=0.1"] in lines
    (note,) = notes_on(chalie, "chalie-policy-later")
    assert note["reason"] == "it wants chalie >=7, and this is 0.1.0"
    assert note["fix"] == "python -m pip install --upgrade chalie chalie-policy-later"
    monkeypatch.setattr(interfaces, "LEAVING", {"chalie.abilities": Leaving("0.4", "chalie.abilities.v2")})
    (note,) = notes_on(chalie, "chalie-ability-echo-words")
    assert (
        note["reason"] == "chalie.abilities goes with chalie 0.4; its author should use chalie.abilities.v2"
    )
    assert note["fix"] == "python -m pip install --upgrade chalie-ability-echo-words"
