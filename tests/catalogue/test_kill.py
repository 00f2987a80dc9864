from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from chalie.catalogue import publishing
from chalie.catalogue.publishing import build_lock

from .places import Place

ROOT = Path(__file__).parents[2]


def run(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT), str(Path(publishing.__file__).parents[2]), *sys.path])
    return subprocess.run(
        [sys.executable, *arguments], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )


def test_a_build_killed_at_any_of_a_hundred_moments_leaves_a_readable_generation(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    done = run(
        [
            "-m",
            "tests.catalogue.killed_builds",
            str(tmp_path / "home"),
            str(tmp_path / "site"),
            "20261130",
            "100",
        ]
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    done_, files, steps = lines[-1].split()
    assert done_ == "done" and int(files) > 30 and int(steps) > 1000
    assert lines[:-1] == []


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


def test_two_builders_at_once_lose_nothing(place: Place) -> None:
    for number in range(6):
        place.install(f"tool_{number}")
    program = (
        "import sys; from pathlib import Path\n"
        "import chalie.build; from chalie.config import Config; from tests.catalogue.places import Index\n"
        "chalie.build._index_builders = lambda config, points: ((Index(),), ())\n"
        "print(chalie.build.build(Config.load(Path(sys.argv[1])), paths=sys.argv[2:], quiet_s=0).id)\n"
    )
    path = os.pathsep.join([str(ROOT), str(Path(publishing.__file__).parents[2]), *sys.path])
    builders = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(place.home), *place.paths],
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    ids = [builder.communicate()[0].strip() for builder in builders]
    assert [builder.returncode for builder in builders] == [0, 0, 0]
    generation = place.build()
    # The one that waited found everything done.
    assert set(ids) == {generation.id}
    assert generation.snapshot.counts()["abilities"] == 6
