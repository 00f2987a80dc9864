"""A place for tests of the catalogue: an import folder, a home, and builds without real indexes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import chalie.build
import pytest
from attrs import define, field
from chalie.catalogue.generations import Generation
from chalie.catalogue.installed import Distribution, Scan, scan
from chalie.catalogue.snapshot import Snapshot
from chalie.catalogue.vectors import VectorStore
from chalie.config import Config, import_paths

from tests.support import packages


@define
class Index:
    """An index builder that writes names, and "embeds" what it has no vector for."""

    name: str = "names"
    version: str = "1"
    built: list[list[str]] = field(factory=list)
    embedded: list[list[str]] = field(factory=list)
    fails: bool = False

    def fingerprint(self) -> str:
        return self.version

    def build(
        self, snapshot: Snapshot, folder: Path, vectors: VectorStore, previous: Generation | None = None
    ) -> None:
        abilities = [ability for _, ability in snapshot.abilities()]
        (folder / self.name).mkdir()
        (folder / self.name / "list").write_text("\n".join(ability.name for ability in abilities))
        if self.fails:
            raise RuntimeError("no room for an index")
        known = vectors.get([ability.hash for ability in abilities], "model-1")
        new = [ability for ability in abilities if ability.hash not in known]
        vectors.put({ability.hash: ability.name.encode() for ability in new}, "model-1")
        self.built.append([ability.name for ability in abilities])
        self.embedded.append([ability.name for ability in new])


@define
class Place:
    """An import folder, a home, and what is built for them in this process."""

    site: Path
    home: Path
    index: Index

    @property
    def paths(self) -> tuple[str, ...]:
        return (str(self.site), *import_paths())

    def install(self, name: str, **source: object) -> packages.Installed:
        return packages.install(self.site, packages.ability_package(name, **source))  # type: ignore[arg-type]

    def scan(self, disabled: Sequence[str] = ()) -> Scan:
        return scan([str(self.site)], disabled)

    def found(self, name: str) -> Distribution:
        return next(one for one in self.scan().distributions if one.name == name)

    def build(self, *, full: bool = False, rebuild: bool = False, quiet_s: float = 0.0) -> Generation:
        return chalie.build.build(
            Config.load(self.home), full=full, rebuild=rebuild, paths=self.paths, quiet_s=quiet_s
        )


def place_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Return a place with nothing installed; builds in this process write its index alone."""
    place = Place(folder / "site", folder / "home", Index())
    place.site.mkdir()
    monkeypatch.setattr(chalie.build, "_index_builders", lambda config, points: ((place.index,), ()))
    return place
