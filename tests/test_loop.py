"""A host inside a running event loop: opening, building and searching happen beside it, not in it."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import os
import re
import sqlite3
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from chalie import Host
from chalie.config import environment_key
from chalie.discovery.embedding import Embedder

from .support import packages

#: seconds between two ticks
TICK_S = 0.005
ENOUGH = 20
SESSIONS = 20

#: an import that ends once somebody opens the gate of its process, and takes long enough to be named
WAITS = """
import os, time
gate = {gate!r} + ("-here" if os.getpid() == {here} else "")
open(gate + "-begun", "w").close()
while not os.path.exists(gate):
    time.sleep(0.01)
time.sleep(1.1)
"""


class Gate:
    """What an import waits at, in this process and in others."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "gate"
        self.code = WAITS.format(gate=str(self._path), here=os.getpid())

    async def passed(self, ticks: Ticks, opening: asyncio.Task[Any], *, here: bool = False) -> None:
        """Wait until an import stands at it, have the loop come round often, and let it through."""
        path = self._path.with_name("gate-here") if here else self._path
        while not path.with_name(f"{path.name}-begun").exists():
            assert not opening.done()
            await asyncio.sleep(TICK_S)
        await ticks.more(ENOUGH)
        assert not opening.done()
        path.touch()


class Ticks:
    """A task that counts how often the loop has come round."""

    def __init__(self) -> None:
        self.count = 0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Ticks:
        self._task = asyncio.create_task(self._tick())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()

    async def _tick(self) -> None:
        while True:
            self.count += 1
            await asyncio.sleep(TICK_S)

    async def more(self, count: int) -> None:
        """Wait until the loop has come round so many times more."""
        until = self.count + count
        while self.count < until:
            await asyncio.sleep(TICK_S)


def test_a_loop_goes_on_while_a_host_opens_whose_tool_sleeps_at_import_and_the_tool_is_named(
    home: Path, site: Path, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[limits]\nbuild_wait_s = 60.0\n")
    packages.install(site, packages.ability_package("slow_words", before=gate.code))

    async def main() -> None:
        async with Ticks() as ticks:
            opening = asyncio.create_task(Host.aopen(home))
            await gate.passed(ticks, opening)
            async with await opening as host:
                turn = await host.aturn(active=["slow_words"])
                assert "slow_words" in turn.names
                (problem,) = [one for one in host.problems() if one.dist == "chalie-ability-slow-words"]
                assert "to import" in problem.reason and not problem.quarantined

    asyncio.run(main())


def test_a_loop_goes_on_while_an_enabled_plugin_sleeps_in_the_host_and_the_plugin_is_named(
    home: Path, site: Path, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)
    code = f"{gate.code}\nfrom chalie import hookimpl\n\n@hookimpl\ndef call_finished(record): pass\n"
    points = {"chalie.plugins": {"slow": "chalie_slow"}}
    packages.install(site, packages.Package("chalie-slow", {"chalie_slow.py": code}, points))
    with Host.open(home) as host:
        host.upkeep.refresh(None)
        row = host.snapshot.distribution("chalie-slow")
        assert row is not None
        host.ledger.enabled.set("chalie-slow", row.files_hash, environment_key(), by="test")

    async def main() -> None:
        async with Ticks() as ticks:
            opening = asyncio.create_task(Host.aopen(home))
            await gate.passed(ticks, opening)  # it is tried in a process of its own first
            await gate.passed(ticks, opening, here=True)
            async with await opening as host:
                assert host.plugins.authors("call_finished") == ("chalie-slow",)
                (problem,) = [one for one in host.problems() if one.dist == "chalie-slow"]
                assert "to import" in problem.reason and not problem.quarantined

    asyncio.run(main())


def thousand(site: Path, before: str) -> None:
    """Install a thousand tools, a hundred in each of ten packages; the import of one package waits."""
    for number in range(10):
        sources = []
        for package in packages.many(100, start=100 * number):
            ((_, source),) = package.files.items()
            sources.append(str(source))
        name = f"hundred_{number}"
        files = {f"{name}.py": "\n".join([before if number == 9 else "", *sources])}
        packages.install(site, packages.Package(f"chalie-{name}", files, {packages.GROUP: {"all": name}}))


def test_twenty_sessions_over_a_thousand_tools_embed_their_queries_off_the_loop_and_no_tool_again(
    home: Path, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(tmp_path)
    thousand(site, gate.code)
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[limits]\nbuild_wait_s = 60.0\n")
    embedded: list[str] = []
    embed = Embedder.embed
    ticks = Ticks()
    loop_thread = threading.get_ident()

    def watched(self: Embedder, texts: Sequence[str]) -> Any:
        assert threading.get_ident() != loop_thread
        embedded.extend(texts)
        # Goes on only once the loop has come round: on the loop, or in its way, it would never end.
        until, patience = ticks.count + ENOUGH, time.monotonic() + 60
        while ticks.count < until:
            assert time.monotonic() < patience, "the loop stands still"
            time.sleep(TICK_S)
        return embed(self, texts)

    monkeypatch.setattr(Embedder, "embed", watched)

    async def session(host: Host, number: int) -> tuple[str, int]:
        turn = await host.aturn("chat", conversation=str(number))
        text = await turn.acall("find_tools", {"query": [f"I want to archive a photo, number {number}"]})
        return text, len(turn.names)

    async def main() -> Path:
        async with ticks:
            opening = asyncio.create_task(Host.aopen(home))
            await gate.passed(ticks, opening)
            before = ticks.count
            async with await opening as host:
                assert ticks.count >= before + ENOUGH, "what is left of the build, embedding included"
                assert host.snapshot.counts()["abilities"] == 1_000
                assert embedded == [], "tools are embedded by the process that builds"
                first = host.generation.id
                said = await asyncio.gather(*(session(host, number) for number in range(SESSIONS)))
                assert host.generation.id == first
                assert all("status=success" in text and names > 2 for text, names in said)
                return host.generation.path

    generation = asyncio.run(main())
    queries = {f"I want to archive a photo, number {number}" for number in range(SESSIONS)}
    assert queries <= set(embedded)
    spoken = {example for package in packages.many(1_000) for example in examples_of(package)}
    assert not spoken & set(embedded)
    # One vector a tool, though twenty sessions looked for it.
    with contextlib.closing(sqlite3.connect(generation / "catalogue.sqlite")) as file:
        rows = file.execute("SELECT count(*), count(DISTINCT content_hash) FROM vectors").fetchone()
    assert rows == (1_000, 1_000)


def examples_of(package: packages.Package) -> list[str]:
    (source,) = package.files.values()
    (found,) = re.findall(r"def examples\(self\):\n +return (.*)", str(source))
    return list(ast.literal_eval(found))
