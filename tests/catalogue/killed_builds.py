"""A program for `test_kill.py`: builds in forks that end themselves with SIGKILL at chosen moments.

Arguments: home, import folder, seed, how many moments. A moment is the start of a function, or of a call
into C, so every step of a build has its turn. Prints a line per failure, then `done` and how many there are.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import chalie.build
from chalie.catalogue.generations import Generations
from chalie.config import Config, import_paths

from tests.catalogue.places import Index
from tests.support import packages


def main(home: Path, site: Path, seed: int, moments: int) -> None:
    paths = (str(site), *import_paths())
    chance = random.Random(seed)
    chalie.build._index_builders = lambda config, points: ((Index(),), ())
    config = Config.load(home)
    generations = chalie.build.generations_of(config, paths)
    build(config, paths)
    steps = counted(config, paths, change(site, 0))
    last = current(generations)
    for number in range(1, moments + 1):
        name = change(site, number)
        killed_at(chance.randrange(steps), config, paths)
        try:
            after = current(generations)
        except Exception as error:
            print(f"moment {number}: {error!r}")
            continue
        if after != last and name not in after:
            print(f"moment {number}: a generation without {name}")
        last = build(config, paths)
        if name not in last:
            print(f"moment {number}: the next build did not add {name}")
        rubbish = [
            e.name for e in generations.root.iterdir() if e.name.startswith(("building-", "removing-"))
        ]
        if rubbish:
            print(f"moment {number}: left {rubbish}")
    print("done", steps)


def change(site: Path, number: int) -> str:
    """Install one more package of skills; no process is needed to read it."""
    dist = f"chalie-skills-{number}"
    files = {f"skills_{number}/book/SKILL.md": f"---\nname: book\ndescription: Step {number}.\n---\nDo it.\n"}
    packages.install(site, packages.Package(dist, files, {"chalie.skills": {"books": f"skills_{number}"}}))
    return dist


def build(config: Config, paths: tuple[str, ...]) -> frozenset[str]:
    generation = chalie.build.build(config, paths=paths, quiet_s=0.0)
    return frozenset(row.name for row in generation.snapshot.distributions())


def current(generations: Generations) -> frozenset[str]:
    generation = generations.current()
    assert generation is not None
    generation.check()
    assert len(list(generation.snapshot.playbooks())) == generation.manifest.counts["playbooks"]
    return frozenset(row.name for row in generation.snapshot.distributions())


def counted(config: Config, paths: tuple[str, ...], _: str) -> int:
    """Return how many moments a build has."""
    seen = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal seen
        seen += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        build(config, paths)
    finally:
        sys.setprofile(None)
    return seen


def killed_at(moment: int, config: Config, paths: tuple[str, ...]) -> None:
    """Build in a fork that ends itself after so many moments."""
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    left = moment

    def end(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal left
        left -= event in ("call", "c_call")
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(end)
    build(config, paths)
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
