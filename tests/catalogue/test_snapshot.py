from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest
from attrs import evolve
from chalie.calls import SideEffect
from chalie.catalogue import tables
from chalie.catalogue.descriptor import Descriptor, EntryPoint, Playbook, Problem
from chalie.catalogue.snapshot import Snapshot
from chalie.catalogue.tables import Contents, DistributionRow, State
from chalie.errors import IndexUnreadable
from hypothesis import given
from hypothesis import strategies as st


def ability(name: str, dist: str = "chalie-ability-one", **facts: object) -> Descriptor:
    given = Descriptor(
        dist=dist,
        dist_version="1.0",
        target="m:C",
        name=name,
        summary=f"Do {name}.",
        examples=("a", "b"),
        search_tooltip="t",
        parameters={"type": "object", "properties": {"é": {"type": "string"}}},
        namespace="n",
        version="1",
    )
    return evolve(given, **facts).sealed()


def row(name: str, state: State = "ready") -> DistributionRow:
    return DistributionRow(name, "1.0", f"/x/{name}.dist-info", "s", "f", False, state, "", {"m": "/x/m.py"})


def book(name: str, dist: str = "chalie-skills") -> Playbook:
    return Playbook(dist, name, "When to.", None, "# Steps", f"/x/{name}/SKILL.md", "h")


def opened(
    folder: Path,
    abilities: Iterable[Descriptor] = (),
    states: dict[str, State] | None = None,
    **more: object,
) -> Snapshot:
    abilities = tuple(abilities)
    dists = {one.dist for one in abilities} | set(states or {})
    rows = tuple(row(name, (states or {}).get(name, "ready")) for name in sorted(dists))
    path = folder / tables.FILE
    path.unlink(missing_ok=True)
    tables.write(path, Contents(rows, abilities, **more), {"key": "value"})  # type: ignore[arg-type]
    return Snapshot.open(folder)


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    one = ability(
        "weather", actions={"go": SideEffect.READ}, action_required={"go": ("é",)}, aliases={"E": "é"}
    )
    shut = evolve(book("b"), allowed_tools=())
    problem = Problem("d", "e", "scan", "r", "f", quarantined=False)
    point = EntryPoint("chalie-ability-one", "chalie.models", "n", "v")
    snapshot = opened(
        tmp_path,
        [one],
        {"chalie-skills": "ready"},
        playbooks=(book("a"), shut),
        problems=(problem,),
        entries=(point,),
    )
    assert list(snapshot.abilities()) == [(1, one)]
    assert snapshot.get("chalie-ability-one", "weather") == one
    assert [found for _, found in snapshot.playbooks()] == [book("a"), shut]
    assert snapshot.problems() == (problem,)
    assert snapshot.entry_points("chalie.models") == (point,)
    assert snapshot.distribution("chalie-ability-one") == row("chalie-ability-one")
    assert snapshot.distributions() == (row("chalie-ability-one"), row("chalie-skills"))
    assert snapshot.meta("key") == "value" and snapshot.meta("other") is None
    assert snapshot.counts() == {
        "abilities": 1,
        "playbooks": 2,
        "distributions": 2,
        "unready": 0,
        "problems": 1,
    }


def test_names_fold_and_calls_are_exact(tmp_path: Path) -> None:
    one = ability("web_search")
    snapshot = opened(tmp_path, [one, ability("other")])
    assert snapshot.named("Web-Search") == snapshot.named("webSearch") == (one,)
    assert snapshot.resolve("web_search") == (one,)
    assert snapshot.resolve("Web-Search") == ()
    assert snapshot.exposed(one) == "web_search"


def test_a_name_with_two_owners_is_exposed_qualified_and_found_whole(tmp_path: Path) -> None:
    one, two = ability("search", "chalie-ability-one"), ability("search", "chalie-ability-two")
    snapshot = opened(tmp_path, [one, two])
    assert [snapshot.exposed(each) for each in (one, two)] == ["one__search", "two__search"]
    assert snapshot.named("search") == (one, two)
    assert snapshot.resolve("search") == (one, two)
    assert snapshot.resolve("two__search") == snapshot.named("two__search") == (two,)
    assert snapshot.owners("search") == (one, two)


def test_owners_whose_short_names_tie_go_by_their_whole_names(tmp_path: Path) -> None:
    one, two = ability("search", "chalie-ability-one"), ability("search", "one")
    snapshot = opened(tmp_path, [one, two])
    assert [snapshot.exposed(each) for each in (one, two)] == ["chalie_ability_one__search", "one__search"]
    assert snapshot.resolve("one__search") == (two,)


@pytest.mark.parametrize("state", ["in-progress", "quarantined", "missing"])
def test_abilities_of_a_package_that_is_not_ready_drop_out_but_are_known(
    tmp_path: Path, state: State
) -> None:
    gone, here = ability("search", "chalie-ability-gone"), ability("search", "chalie-ability-here")
    snapshot = opened(
        tmp_path,
        [gone, here],
        {"chalie-ability-gone": state},
        playbooks=(book("b", "chalie-ability-gone"),),
        entries=(EntryPoint("chalie-ability-gone", "chalie.policies", "p", "v"),),
    )
    assert snapshot.named("search") == (here,)
    assert snapshot.exposed(here) == "search"
    assert [found for _, found in snapshot.abilities()] == [here]
    assert list(snapshot.abilities([1, 2])) == [(1, here)]
    assert list(snapshot.playbooks()) == [] and snapshot.playbooks_named("b") == ()
    assert snapshot.entry_points("chalie.policies") == ()
    assert snapshot.get("chalie-ability-gone", "search") == gone
    assert snapshot.of("chalie-ability-gone") == (gone,)
    assert snapshot.state("chalie-ability-gone") == state
    assert [found.name for found in snapshot.unready("Search")] == ["chalie-ability-gone"]


def test_to_learn_that_nothing_is_unready_no_ready_ability_is_looked_at(tmp_path: Path) -> None:
    snapshot = opened(tmp_path, [ability("search")], {})
    said: list[str] = []
    snapshot.connection.set_trace_callback(said.append)
    assert snapshot.unready("nothing") == ()
    snapshot.connection.set_trace_callback(None)
    plans = [
        step[3]
        for text in said
        for step in snapshot.connection.execute(f"EXPLAIN QUERY PLAN {text}").fetchall()
    ]
    assert any("abilities_unready" in plan for plan in plans)
    assert not any(plan == "SCAN abilities" for plan in plans)


def test_a_package_that_was_never_read_is_known_by_its_entry_points(tmp_path: Path) -> None:
    snapshot = opened(
        tmp_path,
        [],
        {"chalie-ability-bad": "quarantined"},
        entries=(EntryPoint("chalie-ability-bad", "chalie.abilities", "web_search", "bad"),),
    )
    assert [found.name for found in snapshot.unready("web search")] == ["chalie-ability-bad"]
    assert snapshot.unready("other") == ()
    assert snapshot.state("never-heard-of") is None


def test_ids_are_given_back_in_the_order_asked_for(tmp_path: Path) -> None:
    snapshot = opened(tmp_path, [ability(f"a{n}") for n in range(5)])
    assert [number for number, _ in snapshot.abilities([4, 99, 2])] == [4, 2]


def test_a_row_changed_behind_its_hash_is_refused(tmp_path: Path) -> None:
    opened(tmp_path, [ability("weather")]).close()
    with sqlite3.connect(tmp_path / tables.FILE) as connection:
        connection.execute("UPDATE abilities SET json = replace(json, 'Do ', 'Undo ')")
    snapshot = Snapshot.open(tmp_path)
    with pytest.raises(IndexUnreadable, match="weather is damaged"):
        snapshot.get("chalie-ability-one", "weather")


@pytest.mark.parametrize(
    "content", [None, b"", b"not a database at all", b"SQLite format 3\x00" + b"\xff" * 5000]
)
def test_a_file_that_is_no_catalogue_is_said_to_be_unreadable(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / tables.FILE).write_bytes(content)
    with pytest.raises(IndexUnreadable):
        Snapshot.open(tmp_path / tables.FILE)


def test_many_threads_read_at_once(tmp_path: Path) -> None:
    snapshot = opened(tmp_path, [ability(f"a{n}") for n in range(50)])
    failures: list[BaseException] = []

    def read() -> None:
        try:
            for n in range(50):
                found = snapshot.get("chalie-ability-one", f"a{n}")
                assert found is not None and found.name == f"a{n}"
            assert len(list(snapshot.abilities())) == 50
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_what_is_remembered_does_not_grow_with_what_is_installed(tmp_path: Path) -> None:
    snapshot = opened(tmp_path, [ability(f"a{n}") for n in range(400)])
    for n in range(400):
        snapshot.get("chalie-ability-one", f"a{n}")
    assert len(snapshot._recent) <= 128


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    summary=st.text(),
    examples=st.lists(st.text()).map(tuple),
    parameters=st.dictionaries(st.text(), _JSON, max_size=4),
    actions=st.dictionaries(st.text(), st.sampled_from(SideEffect)),
    limit=st.none() | st.floats(min_value=0.1, max_value=1e6),
)
def test_any_descriptor_comes_back_as_it_was_stored(
    summary: str,
    examples: tuple[str, ...],
    parameters: dict[str, object],
    actions: dict[str, SideEffect],
    limit: float | None,
) -> None:
    one = ability(
        "x", summary=summary, examples=examples, parameters=parameters, actions=actions, time_limit_s=limit
    )
    text = tables._text(tables._plain(one))
    assert tables.descriptor_from(text, tables._sha(text), "x") == one


def test_a_row_leaves_out_what_is_as_usual_and_gives_it_back() -> None:
    plain = ability("plain")
    assert "latency" not in tables._plain(plain)
    for one in (plain, evolve(plain, discoverable=False, latency="high", side_effect=SideEffect.READ)):
        text = tables._text(tables._plain(one))
        assert tables.descriptor_from(text, tables._sha(text), "x") == one
    # a row of another version may hold what is not known here
    text = tables._text({**tables._plain(plain), "unheard_of": 1})
    assert tables.descriptor_from(text, tables._sha(text), "x") == plain
