from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve
from chalie import Host, search
from chalie.calls import Channel, Setting, SideEffect
from chalie.catalogue.descriptor import Descriptor
from chalie.catalogue.generations import Generation
from chalie.discovery.cascade import Cascade
from chalie.ledger.permissions import PermissionRow, Rows, _patterns
from hypothesis import given, settings
from hypothesis import strategies as st

from ..support import packages
from .conftest import ability

CHAT = Channel("chat", "chat", True, (), True)
MAIL = {"mail": (), "mail_merge": ("send", "print"), "letter": ("send",)}
FILES = {"_mcp_files_read": (), "_mcp_files_write": ("append", "replace"), "letter": ()}


def brought(dist: str, tools: dict[str, tuple[str, ...]]) -> list[Descriptor]:
    return [
        evolve(ability(name, dist=dist), actions=dict.fromkeys(actions, SideEffect.WRITE)).sealed()
        for name, actions in tools.items()
    ]


def row(
    channel: str, package: str, permission: str, setting: str, until: float | None = None
) -> PermissionRow:
    ends = None if until is None else datetime.fromtimestamp(until, UTC)
    at = datetime.fromtimestamp(0, UTC)
    return PermissionRow(
        channel, package, permission, Setting(setting), ends, "me", at, ends=until or float("inf")
    )


def rows_of(some: Iterable[PermissionRow]) -> Rows:
    keyed = {(each.channel, each.package, each.permission): each for each in some}
    return Rows(1, 1, keyed, _patterns(keyed.values()), {}, frozenset(), time.time)


@pytest.fixture(scope="module")
def generation(tmp_path_factory: pytest.TempPathFactory) -> Generation:
    from chalie.catalogue.generations import Generations
    from chalie.catalogue.publishing import publish
    from chalie.catalogue.tables import Contents, DistributionRow

    some = [*brought("office", MAIL), *brought("mcp:files", FILES)]
    ready = tuple(DistributionRow(dist, "1", "", "", "", False, "ready") for dist in ("office", "mcp:files"))
    root = tmp_path_factory.mktemp("settings") / "generations"
    return publish(Generations(root), Contents(distributions=ready, abilities=tuple(some)), ())


PERMISSIONS = sorted(
    {f"{name}.{action}" for tools in (MAIL, FILES) for name, actions in tools.items() for action in actions}
    | {*MAIL, *FILES, "_mcp_files_*", "_mcp_files_w*", "unheard_of"}
)
ROWS = st.lists(
    st.builds(
        row,
        st.sampled_from(["chat", "chat", "chat", "mail"]),
        st.sampled_from(["office", "office", "mcp:files", "mcp:files", "gone"]),
        st.sampled_from(PERMISSIONS),
        st.sampled_from(["allow", "ask", "deny", "deny", "deny"]),
        st.sampled_from([None, None, None, 1.0, 9e9]),
    ),
    min_size=1,
    max_size=24,
)


@settings(max_examples=400, deadline=None)
@given(some=ROWS, reach=st.none() | st.lists(st.sampled_from(PERMISSIONS), max_size=4).map(tuple))
def test_left_out_is_what_a_row_without_an_end_denies_whole_or_the_channel_does_not_reach(
    generation: Generation, some: list[PermissionRow], reach: tuple[str, ...] | None
) -> None:
    rows, channel = rows_of(some), evolve(CHAT, permissions=reach)
    lasting = rows_of(each for each in some if each.until is None)

    def hidden(item: Descriptor, looked_at: Rows) -> bool:
        said = [
            looked_at.for_call("chat", item.dist, item.name, permission)
            for permission, _ in item.permissions()
            if channel.reaches(permission)
        ]
        return all(each is not None and each.setting is Setting.DENY for each in said)

    everything = dict(generation.snapshot.abilities())
    left = {number for number, item in everything.items() if not hidden(item, lasting)}
    allowed = search._visible(generation.snapshot, channel, rows)
    if allowed is not None:
        assert allowed.tolist() == sorted(left)
        # nothing that a search would show is left out beforehand
        assert all(hidden(everything[number], rows) for number in everything.keys() - left)
    else:
        assert reach is None and 2 * len(left) > len(everything)


def test_what_settings_leave_is_worked_out_once_and_searched_alone(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worked_out: list[str] = []
    visible = search._visible

    def counted(snapshot: object, channel: Channel, rows: Rows) -> object:
        allowed = visible(snapshot, channel, rows)  # type: ignore[arg-type]
        worked_out.append("all" if allowed is None else str(len(allowed)))
        return allowed

    monkeypatch.setattr(search, "_visible", counted)
    passed: list[int | None] = []
    find = Cascade.find

    def watched(self: Cascade, *arguments: object, allowed: np.ndarray | None = None) -> object:
        passed.append(None if allowed is None else len(allowed))
        return find(self, *arguments, allowed=allowed)  # type: ignore[arg-type]

    monkeypatch.setattr(Cascade, "find", watched)
    for name in ("send_letters", "read_letters", "count_letters"):
        packages.install(site, packages.ability_package(name))

    def names(host: Host, channel: str = "chat") -> set[str]:
        return {hit.item.name for hit in host.find(["letters"], channel=channel).hits}

    with Host.open(tmp_path / "home") as host:
        host.upkeep.refresh()
        dists = {item.name: item.dist for _, item in host.snapshot.abilities()}
        assert names(host) == names(host) == set(dists)
        assert worked_out == ["all"]
        for name in ("send_letters", "read_letters"):
            host.ledger.permissions.set("chat", dists[name], name, "deny", by="me")
        assert names(host) == names(host) == {"count_letters"}
        assert worked_out == ["all", "1"] and passed == [None, None, 1, 1]
        host.ledger.permissions.set("chat", dists["count_letters"], "count_letters", "deny", by="me")
        assert [miss.reason for miss in host.find(["letters", "send_letters"]).misses] == ["hidden"] * 2
        host.ledger.permissions.remove("chat", dists["count_letters"], "count_letters", by="me")
        assert names(host, "subconscious") == set(dists)
        host.ledger.permissions.remove("chat", dists["send_letters"], "send_letters", by="me")
        assert names(host) == {"send_letters", "count_letters"}
