"""A program for `test_kill.py`: builds in forks that end at chosen moments without any clean-up.

Arguments: home, import folder, seed, how many moments. Every build is a whole one: packages with an ability
each, described in processes of their own, and the real indexes of names and of prose. A third of the moments
lie before operations on the files of the generations, drawn without putting back; a third before any call of
a function; and a third anywhere, inside the native libraries too, after so much of the processor's time since
the first index was begun. The first two kinds end by SIGKILL; the last by SIGPROF, which nobody handles, so
that the system ends the process just as suddenly.

Prints a line per failure, then `done` and what was seen, as JSON.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import chalie.build
import numpy as np
from attrs import frozen
from chalie.catalogue.descendants import adopt_orphans
from chalie.catalogue.generations import Generation, Generations
from chalie.config import Config, import_paths
from chalie.discovery.name_index import Names
from chalie.discovery.prose_index import Prose
from chalie.names import segments

from tests.support import packages

#: signals by which a killed build may have ended, by kind of moment
ENDS = {"file": signal.SIGKILL, "call": signal.SIGKILL, "time": signal.SIGPROF}
#: killed builds after which one is let go on to its end
_EVERY = 10


@frozen
class Scene:
    """Where builds happen.

    Attributes:
        config: of the home.
        paths: the import path they look at.
        site: the folder on it that packages are put into.
    """

    config: Config
    paths: tuple[str, ...]
    site: Path

    @property
    def generations(self) -> Generations:
        return chalie.build.generations_of(self.config, self.paths)

    def build(self) -> Generation:
        return chalie.build.build(self.config, paths=self.paths, quiet_s=0.0)

    def install(self, number: int) -> None:
        packages.install(self.site, *packages.many(1, start=number))


def main(home: Path, site: Path, seed: int, moments: int) -> None:
    adopt_orphans()  # so that a describing process whose build was killed is seen, and waited for
    scene = Scene(Config.load(home), (str(site), *import_paths()), site)
    chance = random.Random(seed)
    scene.install(0)
    assert apart(scene.build) == 0
    most: dict[str, float] = {}
    for number, kind in enumerate(ENDS, start=1):
        scene.install(number)
        most[kind] = measured(scene, kind)
    drawn = draw(chance, most, moments)
    last, installed = names_of(scene.generations.current()), len(ENDS) + 1
    ends: Counter[str] = Counter()
    for number, (kind, moment) in enumerate(drawn, start=1):
        scene.install(installed)
        installed += 1
        everything = last | {name_of(n) for n in range(installed)}
        status = apart(lambda kind=kind, moment=moment: Moments(scene, kind, moment).run())
        ends[kind] += os.WIFSIGNALED(status) and os.WTERMSIG(status) == ENDS[kind]
        last = judged(scene, f"{kind} {moment}", last, everything)
        if number % _EVERY == 0:
            if apart(scene.build):
                print(f"{kind} {moment}: the next build failed")
            last = judged(scene, f"after {kind} {moment}", everything, everything)
            left = [
                entry.name
                for entry in scene.generations.root.iterdir()
                if entry.name.startswith(("building-", "removing-"))
            ]
            if left:
                print(f"{kind} {moment}: left {left}")
    print("done", json.dumps({"most": most, "ends": ends, "found": len(last)}))


def draw(chance: random.Random, most: dict[str, float], moments: int) -> list[tuple[str, float]]:
    """Return the moments to end at, of all kinds, in an order drawn as well."""
    share = moments // len(most)
    on_files = chance.sample(range(1, int(most["file"]) + 1), min(int(most["file"]), share))
    drawn: list[tuple[str, float]] = [("file", one) for one in on_files]
    # Not the very last ones: how many calls, and how long, differs a little from build to build.
    drawn += [("time", chance.uniform(0.0, 0.8 * most["time"])) for _ in range(share)]
    drawn += [("call", chance.randrange(1, int(0.9 * most["call"]))) for _ in range(moments - len(drawn))]
    chance.shuffle(drawn)
    return drawn


def name_of(number: int) -> str:
    (package,) = packages.many(1, start=number)
    return package.dist


def names_of(generation: Generation | None) -> frozenset[str]:
    assert generation is not None
    return frozenset(row.name for row in generation.snapshot.distributions() if row.state == "ready")


def judged(scene: Scene, when: str, least: frozenset[str], everything: frozenset[str]) -> frozenset[str]:
    """Read the newest generation, as another process does; print what is wrong, return what it holds."""
    if apart(lambda: read(scene, when)):
        print(f"{when}: the generation cannot be read")
    found = names_of(scene.generations.current())
    # A build that takes long publishes in between what it has read, so any part of what is new may be there.
    if not least <= found <= everything:
        print(f"{when}: gone {sorted(least - found)}, unknown {sorted(found - everything)}")
    return found


def read(scene: Scene, when: str) -> None:
    """Check every file, and that both indexes hold exactly the abilities of the catalogue."""
    generation = scene.generations.current()
    assert generation is not None
    generation.check()
    snapshot = generation.snapshot
    abilities = dict(snapshot.abilities())
    assert len(abilities) == generation.manifest.counts["abilities"]
    assert {item.dist for item in abilities.values()} >= {
        point.dist for point in snapshot.entry_points("chalie.abilities")
    } & names_of(generation)
    names = Names(generation)
    for number, item in abilities.items():
        assert number in names.aligned(segments(item.name), "ability"), (when, item.name)
    prose = Prose(generation, "ability")
    assert prose.built, when
    assert sorted(prose.ids(np.arange(len(prose)))) == sorted(abilities), when


class Moments:
    """Counts the moments of one kind in a build, and ends the process at one.

    Args:
        scene: where it builds.
        kind: "file", "call" or "time".
        end: the moment to end at: the number of an operation or call, or seconds of the processor's time.
    """

    def __init__(self, scene: Scene, kind: str, end: float | None = None) -> None:
        self.seen = 0
        self._scene = scene
        self._kind = kind
        self._root = str(scene.generations.root)
        self._end = end

    def run(self) -> float:
        """Build; return how many moments there were."""
        if self._kind == "time":
            return self._timed()
        if self._kind == "file":
            sys.addaudithook(self._audited)
        else:
            sys.setprofile(self._called)
        self._scene.build()
        sys.setprofile(None)
        return self.seen

    def _timed(self) -> float:
        begun: list[float] = []
        builders = chalie.build._index_builders

        def begin(*arguments: Any) -> Any:
            found = builders(*arguments)
            begun.append(sum(os.times()[:2]))
            if self._end is not None:
                signal.setitimer(signal.ITIMER_PROF, max(self._end, 1e-6))
            return found

        chalie.build._index_builders = begin
        self._scene.build()
        return sum(os.times()[:2]) - begun[0]

    def _audited(self, event: str, arguments: tuple[Any, ...]) -> None:
        if any(isinstance(a, str | Path) and self._root in str(a) for a in arguments):
            self._count()

    def _called(self, frame: FrameType, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            self._count()

    def _count(self) -> None:
        self.seen += 1
        if self.seen == self._end:
            os.kill(os.getpid(), signal.SIGKILL)


def measured(scene: Scene, kind: str) -> float:
    """Return how many moments of a kind a build has."""
    ours, theirs = os.pipe()
    assert apart(lambda: os.write(theirs, json.dumps(Moments(scene, kind).run()).encode())) == 0
    os.close(theirs)
    with os.fdopen(ours, "rb") as answer:
        return float(json.loads(answer.read()))


def apart(what: Callable[[], object]) -> int:
    """Do something in a fork, and wait for it and all it leaves behind; return its wait status."""
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        try:
            what()
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return status


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
