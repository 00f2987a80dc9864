from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from chalie.catalogue import publishing
from chalie.catalogue.publishing import build_lock

from .places import Place

ROOT = Path(__file__).parents[2]


def environment(**more: str) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), str(Path(publishing.__file__).parents[2]), *sys.path])
    return {**os.environ, "PYTHONPATH": path, **more}


def run(arguments: list[str], **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], env=environment(**more), capture_output=True, text=True
    )


@pytest.mark.parametrize("seed", [20261130, 20261201])
def test_a_build_killed_at_any_of_a_hundred_moments_leaves_a_readable_generation(
    tmp_path: Path, seed: int
) -> None:
    for name in ("site", "tmp"):
        (tmp_path / name).mkdir()
    folders = [str(tmp_path / "home"), str(tmp_path / "site")]
    # What a killed build leaves in the folder for temporary files goes with the test.
    done = run(
        ["-m", "tests.catalogue.killed_builds", *folders, str(seed), "50"], TMPDIR=str(tmp_path / "tmp")
    )
    assert done.returncode == 0, done.stderr
    *wrong, last = done.stdout.splitlines()
    assert wrong == []
    seen = json.loads(last.removeprefix("done "))
    assert seen["most"]["file"] > 50 and seen["most"]["call"] > 10_000
    # Nearly all were killed where they were meant to be, and not one late moment after the end.
    assert all(ended >= 13 for ended in seen["ends"].values()), seen["ends"]
    assert seen["found"] > 50


def test_a_killed_builders_lock_is_free_at_once_and_a_live_ones_is_not(place: Place) -> None:
    root = place.home / "generations" / "x"
    program = (
        "import os, signal, sys; from pathlib import Path\n"
        "from chalie.catalogue.publishing import build_lock\n"
        "from chalie.errors import ChalieError\n"
        "try:\n"
        "    with build_lock(Path(sys.argv[1]), timeout_s=0.2): os.kill(os.getpid(), signal.SIGKILL)\n"
        "except ChalieError as error: print(error.code)\n"
    )
    assert run(["-c", program, str(root)]).returncode == -9
    with build_lock(root, timeout_s=5):
        assert run(["-c", program, str(root)]).stdout.strip() == "not-ready"


BUILDER = """
import sys
from pathlib import Path
import chalie.build, tantivy
from chalie.config import Config
from chalie.discovery.name_index import Names
from chalie.names import segments

home, what, *paths = sys.argv[1:]
if what == "stopping":
    class Stopping:
        made = tantivy.Index

        def __init__(self, *arguments, **more):
            self.index = self.made(*arguments, **more)

        def writer(self, *arguments):
            held = self.index.writer(*arguments)
            print("writing", flush=True)
            sys.stdin.read()

    tantivy.Index = Stopping
generation = chalie.build.build(Config.load(Path(home)), paths=paths, quiet_s=0)
names, abilities = Names(generation), dict(generation.snapshot.abilities())
assert all(number in names.aligned(segments(item.name), "ability") for number, item in abilities.items())
print(generation.id, len(abilities), *generation.manifest.builders)
"""


def test_builders_that_come_while_one_writes_an_index_lose_nothing_when_it_is_killed(place: Place) -> None:
    for number in range(6):
        place.install(f"tool_{number}")

    def start(what: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", BUILDER, str(place.home), what, *place.paths],
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    first = start("stopping")
    assert first.stdout is not None
    assert first.stdout.readline() == "writing\n"
    others = [start("whole") for _ in range(2)]
    first.kill()
    assert first.communicate()[0] == ""
    said = [other.communicate()[0].split() for other in others]
    assert [other.returncode for other in others] == [0, 0]
    # The one that waited for the other found everything done.
    assert said[0] == said[1]
    assert said[0][1:] == ["6", "names", "prose"]
