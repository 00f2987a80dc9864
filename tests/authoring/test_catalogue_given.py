"""A host that is given a catalogue: its own is fine, another is refused, and the host stays up."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve
from chalie import Host
from chalie.catalogue import tables
from chalie.catalogue.identity import Document, document, identity, read
from chalie.catalogue.snapshot import Snapshot
from chalie.catalogue.tables import Contents, DistributionRow
from chalie.envelope import parse
from chalie.errors import ConfigError
from chalie.pins import own_descriptors

from tests.authoring.subjects import subject


@pytest.fixture
def built(read_home: Path, tmp_path: Path) -> Path:
    """The catalogue of a host with two packages, as a file."""
    with Host.open() as host:
        return written(tmp_path / "catalogue.json", ours(host))


def ours(host: Host) -> Document:
    return document(host.snapshot, own_descriptors().values())


def written(path: Path, found: Document) -> Path:
    path.write_text(json.dumps(found.as_json()))
    return path


def refusals(host: Host) -> list[str]:
    return [problem.reason for problem in host.problems() if problem.phase == "catalogue"]


def test_the_hosts_own_catalogue_is_no_problem(built: Path) -> None:
    with Host.open(catalogue=built) as host:
        assert refusals(host) == []


def test_another_catalogue_is_refused_with_both_identities_and_the_host_stays_up(
    built: Path, tmp_path: Path
) -> None:
    mine = read(built)
    rows = [{**row, "latency": "high"} if row["name"] == "dice" else row for row in mine.abilities]
    other = evolve(mine, abilities=tuple(rows), identity=identity(mine.protocol, rows))
    given = written(tmp_path / "given.json", other)
    with Host.open(catalogue=given) as host:
        assert refusals(host) == [
            f"the catalogue {given} is refused: it has protocol 1 and identity {other.identity}, "
            f"this host protocol 1 and identity {mine.identity}"
        ]
        frame = parse(host.turn(active=["dice"]).call("find_tools", {"query": ["roll dice"]}))
        assert frame.status == "success"


def test_another_protocol_is_refused_though_the_abilities_are_the_same(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as later, Host.open() as host:
        later.setattr("chalie.catalogue.identity.PROTOCOL", "2")
        newer = written(tmp_path / "newer.json", ours(host))
    with Host.open(catalogue=newer) as host:
        [reason] = refusals(host)
    assert "it has protocol 2 and identity sha256:" in reason
    assert "this host protocol 1 and identity sha256:" in reason


def test_the_configuration_names_a_catalogue_too_and_the_argument_wins(built: Path, home: Path) -> None:
    (home / "config.toml").write_text('[catalogue]\nfile = "given.json"\n')
    with Host.open() as host:
        [reason] = refusals(host)
        assert reason.startswith(f"the catalogue {home / 'given.json'} cannot be read")
    with Host.open(catalogue=built) as host:
        assert refusals(host) == []


Change = Callable[[dict[str, object]], object]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data.update(format="chalie-catalogue/9"), "has the format 'chalie-catalogue/9'"),
        (lambda data: data.update(identity="sha256:0"), "was changed after it was built"),
        (lambda data: data.update(abilities=[]), "was changed after it was built"),
        (lambda data: data.update(abilities=[{"name": 1}]), "lacks protocol, identity or abilities"),
        (lambda data: data.pop("protocol"), "lacks protocol, identity or abilities"),
        (lambda data: data.clear(), "is none, and chalie-catalogue/1 is expected"),
    ],
    ids=["format", "identity", "contents", "rows", "protocol", "nothing"],
)
def test_what_is_no_catalogue_is_refused_with_the_reason(built: Path, change: Change, said: str) -> None:
    data = json.loads(built.read_text())
    change(data)
    built.write_text(json.dumps(data))
    with pytest.raises(ConfigError, match=said):
        read(built)
    with Host.open(catalogue=built) as host:
        assert said in refusals(host)[0]


def test_a_file_that_changes_is_looked_at_again(built: Path) -> None:
    whole = built.read_text()
    with Host.open(catalogue=built) as host:
        assert refusals(host) == []
        built.write_text("[")
        assert "cannot be read" in refusals(host)[0]
        built.write_text(whole)
        assert refusals(host) == []


def test_an_identity_does_not_depend_on_the_order_of_installing(tmp_path: Path) -> None:
    some = [subject(name, "A tool.", dist=f"chalie-ability-{name}").descriptor for name in ("dice", "coin")]
    found = []
    for number, order in enumerate((some, some[::-1])):
        rows = tuple(DistributionRow(item.dist, "1", "", "", "", False, "ready") for item in order)
        tables.write(tmp_path / f"{number}.sqlite", Contents(rows, tuple(order)), {})
        snapshot = Snapshot.open(tmp_path / f"{number}.sqlite")
        found.append(document(snapshot))
        snapshot.close()
    assert found[0] == found[1]
    assert [row["name"] for row in found[0].abilities] == ["coin", "dice"]
