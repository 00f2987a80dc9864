"""A program for `test_kill.py`: builds in forks that end themselves with SIGKILL at chosen moments.

Arguments: home, import folder, seed, how many moments. Half of the moments lie before operations on the files
of the generations, drawn without putting back, so that hardly one is left out; the other half before any call
of a function. Prints a line per failure, then `done` and how many moments of each kind a build has.
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
    root = str(generations.root)
    change(site, 0)
    files = counted(True, config, paths, root)
    change(site, 1)
    steps = counted(False, config, paths, root)
    last = current(generations)
    on_files = chance.sample(range(1, files + 1), min(files, moments // 2))
    drawn = [(one, True) for one in on_files]
    drawn += [(chance.randrange(1, steps + 1), False) for _ in range(moments - len(drawn))]
    chance.shuffle(drawn)
    for number, (moment, on_file) in enumerate(drawn, start=2):
        change(site, number)
        installed = last | {name_of(n) for n in range(number + 1)}
        killed_at(moment, on_file, config, paths, root)
        try:
            after = current(generations)
        except Exception as error:
            print(f"{moment} {on_file}: {error!r}")
            break
        # What is installed grows, so a whole generation is either the last one or holds all of it.
        if after not in (last, installed):
            print(
                f"{moment} {on_file}: a generation of {len(after)}, neither {len(last)} nor {len(installed)}"
            )
        last = after
        if number % 10 == 0:
            last = build(config, paths)
            if last != installed:
                print(f"{moment} {on_file}: the next build holds {len(last)} of {len(installed)}")
            names = [entry.name for entry in generations.root.iterdir()]
            if rubbish := [name for name in names if name.startswith(("building-", "removing-"))]:
                print(f"{moment} {on_file}: left {rubbish}")
    print("done", files, steps)


def change(site: Path, number: int) -> str:
    """Install one more package of skills; no process is needed to read it."""
    dist = name_of(number)
    files = {f"skills_{number}/book/SKILL.md": f"---\nname: book\ndescription: Step {number}.\n---\nDo it.\n"}
    packages.install(site, packages.Package(dist, files, {"chalie.skills": {"books": f"skills_{number}"}}))
    return dist


def name_of(number: int) -> str:
    return f"chalie-skills-{number}"


def build(config: Config, paths: tuple[str, ...]) -> frozenset[str]:
    generation = chalie.build.build(config, paths=paths, quiet_s=0.0)
    return frozenset(row.name for row in generation.snapshot.distributions())


def current(generations: Generations) -> frozenset[str]:
    generation = generations.current()
    assert generation is not None
    generation.check()
    assert len(list(generation.snapshot.playbooks())) == generation.manifest.counts["playbooks"]
    return frozenset(row.name for row in generation.snapshot.distributions())


class Moments:
    """Counts the moments of a build, and ends the process at one."""

    def __init__(self, files: bool, root: str, end: int | None = None) -> None:
        self.seen = 0
        self._root = root
        self._end = end
        self._on = True
        if files:
            sys.addaudithook(self._audited)
        else:
            sys.setprofile(self._called)

    def stop(self) -> int:
        self._on = False  # an audit hook cannot be taken off
        sys.setprofile(None)
        return self.seen

    def _audited(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._on and any(isinstance(a, str | Path) and self._root in str(a) for a in arguments):
            self._count()

    def _called(self, frame: FrameType, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            self._count()

    def _count(self) -> None:
        self.seen += 1
        if self.seen == self._end:
            os.kill(os.getpid(), signal.SIGKILL)


def counted(files: bool, config: Config, paths: tuple[str, ...], root: str) -> int:
    """Return how many moments a build has."""
    moments = Moments(files, root)
    build(config, paths)
    return moments.stop()


def killed_at(moment: int, files: bool, config: Config, paths: tuple[str, ...], root: str) -> None:
    """Build in a fork that ends itself after so many moments."""
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    Moments(files, root, moment)
    build(config, paths)
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
