"""Versions of interfaces: what a package wants stands in its groups, and what this host has not is said."""

from __future__ import annotations

import pytest
from chalie.catalogue.interfaces import GROUPS, Interface, foreign, wanted
from chalie.catalogue.snapshot import Snapshot

from tests.support import packages

from .places import Place


def package(*groups: str, dist: str = "chalie-ability-tea") -> packages.Package:
    source = packages.ability_source("tea")
    return packages.Package(
        dist, files={"tea.py": source}, entry_points={group: {"tea": "tea"} for group in groups}
    )


def read(place: Place, *groups: str) -> Snapshot:
    packages.install(place.site, package(*groups))
    return place.build().snapshot


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("chalie.abilities", Interface("abilities", 1)),
        ("chalie.models", Interface("models", 1)),
        ("chalie.policies.v2", Interface("policies", 2)),
        ("chalie.skills.v12", Interface("skills", 12)),
        ("chalie.abilities.v1", None),
        ("chalie.abilities.v0", None),
        ("chalie.abilities.v02", None),
        ("chalie.abilities.2", None),
        ("chalie.ability", None),
        ("chalie.other.v2", None),
        ("chalieXabilities", None),
        ("console_scripts", None),
    ],
)
def test_a_group_says_which_interface_in_which_version(group: str, expected: Interface | None) -> None:
    assert wanted(group) == expected
    assert foreign(group) == (expected is not None and expected.version != 1)
    if expected is not None:
        assert expected.group == group


def test_every_group_of_this_host_is_a_version_of_an_interface() -> None:
    assert [found.group for group in GROUPS if (found := wanted(group))] == list(GROUPS)


def test_a_package_for_a_later_host_alone_is_named_with_both_versions(place: Place) -> None:
    snapshot = read(place, "chalie.abilities.v2", "chalie.abilities.v3")
    assert list(snapshot.abilities()) == []
    (problem,) = snapshot.problems()
    assert problem.dist == "chalie-ability-tea"
    assert problem.entry_point == "chalie.abilities.v2: tea = tea"
    assert problem.reason == (
        "it wants version 2 or 3 of the interface for abilities, and chalie 0.1.0 has version 1"
    )
    assert problem.fix == "python -m pip install --upgrade chalie"
    assert not problem.quarantined


def test_a_package_for_this_host_and_a_later_one_works_and_is_no_problem(place: Place) -> None:
    snapshot = read(place, "chalie.abilities", "chalie.abilities.v2")
    assert [item.name for _, item in snapshot.abilities()] == ["tea"]
    assert snapshot.problems() == ()


def test_what_a_package_has_for_this_host_works_beside_what_it_has_for_a_later_one(place: Place) -> None:
    snapshot = read(place, "chalie.abilities", "chalie.policies.v2")
    assert [item.name for _, item in snapshot.abilities()] == ["tea"]
    (problem,) = snapshot.problems()
    assert "version 2 of the interface for policies" in problem.reason


def test_the_problem_goes_when_a_version_for_this_host_is_installed(place: Place) -> None:
    packages.install(place.site, package("chalie.abilities.v2")).uninstall()
    snapshot = read(place, "chalie.abilities")
    assert snapshot.problems() == ()
