"""Small catalogues, published with real indexes, and the real model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from chalie.calls import Sight
from chalie.catalogue.descriptor import Descriptor, EntryPoint, Playbook
from chalie.catalogue.generations import Generation, Generations
from chalie.catalogue.publishing import publish
from chalie.catalogue.tables import Contents, DistributionRow
from chalie.discovery import builders
from chalie.discovery.cascade import Cascade, Item
from chalie.discovery.embedding import Embedder, model_folder

Publish = Callable[..., Generation]


def ability(
    name: str,
    summary: str = "",
    *,
    dist: str = "tools",
    examples: Iterable[str] = (),
    parameters: Iterable[str] = (),
    discoverable: bool = True,
) -> Descriptor:
    return Descriptor(
        dist=dist,
        dist_version="1",
        target=f"{dist}:{name}",
        name=name,
        summary=summary,
        examples=tuple(examples),
        search_tooltip="",
        parameters={"type": "object", "properties": {key: {"type": "string"} for key in parameters}},
        namespace=name,
        version="1",
        discoverable=discoverable,
    ).sealed()


def playbook(name: str, description: str, *, dist: str = "skills", body: str = "") -> Playbook:
    return Playbook(dist, name, description, None, body, f"/{name}/SKILL.md", "0")


def everything(_: Item) -> Sight:
    return Sight()


@pytest.fixture(scope="session")
def model() -> Path:
    return model_folder(
        None, [EntryPoint("chalie-model-static", "chalie.models", "static", "chalie_model_static")]
    )


@pytest.fixture(scope="session")
def embedder(model: Path) -> Embedder:
    return Embedder.open(model)


@pytest.fixture
def published(tmp_path: Path, model: Path) -> Publish:
    def make(
        abilities: Iterable[Descriptor] = (),
        playbooks: Iterable[Playbook] = (),
        *,
        with_model: Path | None = model,
        previous: Generation | None = None,
        unready: Iterable[str] = (),
    ) -> Generation:
        some, books = tuple(abilities), tuple(playbooks)
        dists = {item.dist: "ready" for item in (*some, *books)} | dict.fromkeys(unready, "quarantined")
        rows = tuple(
            DistributionRow(dist, "1", "", "", "", False, state, "")  # type: ignore[arg-type]
            for dist, state in dists.items()
        )
        contents = Contents(distributions=rows, abilities=some, playbooks=books)
        return publish(
            Generations(tmp_path / "generations"), contents, builders(with_model), previous=previous
        )

    return make


@pytest.fixture
def cascade(published: Publish, embedder: Embedder) -> Callable[..., Cascade]:
    def make(*abilities: Descriptor, playbooks: Iterable[Playbook] = (), **options: object) -> Cascade:
        return Cascade(published(abilities, playbooks), lambda: embedder, **options)  # type: ignore[arg-type]

    return make


def names_of(cascade: Cascade, entry: str, kind: str = "ability") -> list[str]:
    return [hit.item.name for hit in cascade.find([entry], kind, everything).hits]  # type: ignore[arg-type]
