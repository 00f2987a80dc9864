from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from textwrap import dedent

import pytest
from chalie.catalogue.describe import SLOW_S, Described, describe
from chalie.catalogue.descriptor import Problem
from chalie.catalogue.installed import scan
from chalie.config import import_paths
from chalie.errors import DescribeFailed

from tests.support import packages
from tests.support.packages import Raw, ability_package

LIMIT_S = 3.0

#: dist -> what its module does before its class, or how its facts are made
BAD = {
    "import-error": ability_package("import_error", before="import not_installed_anywhere"),
    "syntax-error": packages.Package(
        "chalie-ability-syntax-error",
        {"syntax_error.py": "def (:\n"},
        {"chalie.abilities": {"syntax_error": "syntax_error"}},
    ),
    "runtime-error": ability_package("runtime_error", before="raise RuntimeError('first\\nsecond')"),
    "exits": ability_package("exits", before="raise SystemExit(7)"),
    "exits-hard": ability_package("exits_hard", before="import os; os._exit(3)"),
    "crashes": ability_package("crashes", before="import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"),
    "hangs": ability_package("hangs", before="import time; time.sleep(600)"),
    "floods": ability_package("floods", inside="def examples(self): return ['x' * (1 << 25)]"),
    "pipes": ability_package("pipes", before="""
        import os
        for fd in range(3, 64):
            try: os.write(fd, b'{}' * 50)
            except OSError: pass
    """),
    "gone": packages.Package("chalie-ability-gone", {}, {"chalie.abilities": {"gone": "gone_module"}}),
    "no-class": packages.Package(
        "chalie-ability-no-class", {"no_class.py": "x = 1"}, {"chalie.abilities": {"no_class": "no_class"}}
    ),
    "facts-raise": ability_package("facts_raise", inside="def summary(self): raise KeyError('oops')"),
    "facts-exit": ability_package("facts_exit", inside="def summary(self): raise SystemExit"),
    "hash-order": ability_package("hash_order", inside=(
        "def summary(self): return 'Knows ' + ', '.join({'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'})"
    )),
    "time-zone": ability_package(
        "time_zone", before="import time", inside="def summary(self): return f'In zone {time.tzname[0]}.'"
    ),
    "folder": ability_package(
        "folder", before="import os", inside="def summary(self): return f'Works in {os.getcwd()}.'"
    ),
    "bad-schema": ability_package("bad_schema", parameters={"type": "array"}),
    "bad-name": ability_package("Bad__Name", dist="chalie-ability-bad-name"),
    "two-of-one": packages.Package(
        "chalie-ability-two-of-one",
        {"two_a.py": packages.ability_source("twin"), "two_b.py": packages.ability_source("twin")},
        {"chalie.abilities": {"a": "two_a", "b": "two_b"}},
    ),
}  # fmt: skip
GOOD = {
    "prints": ability_package("prints", before="print('x' * 1_000_000, flush=True)"),
    "threads": ability_package("threads", before="""
        import threading, time
        threading.Thread(target=time.sleep, args=(600,)).start()
    """),
    "children": ability_package("children", before="""
        import subprocess, sys
        subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])
    """),
    "several": packages.Package(
        "chalie-ability-several",
        {
            "several.py": packages.ability_source("one") + packages.ability_source("two", imports=False)
            + "\nclass _Hidden(One): pass\n"
        },
        {"chalie.abilities": {"several": "several", "again": "several:One"}},
    ),
    "slow": ability_package("slow", before=f"import time; time.sleep({SLOW_S})"),
    "marked": ability_package(
        "marked", facts={"actions": Raw("{'go': SideEffect.DESTRUCTIVE}"), "version": "3"},
        parameters={"type": "object", "properties": {"action": {"type": "string", "enum": ["go"]}}}),
}  # fmt: skip


def read(
    folder: Path, installed: Sequence[packages.Package], limit_s: float = LIMIT_S
) -> dict[str, Described | Problem]:
    for package in installed:
        packages.install(folder, package)
    paths = [str(folder), *import_paths()]
    answers = {}
    for answer in describe(scan([str(folder)]).distributions, limit_s=limit_s, paths=paths):
        if answer is not None:
            answers[answer.dist.removeprefix("chalie-ability-")] = answer
    return answers


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Described | Problem]]:
    """All of them read together: each must cost itself only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SECRET_TOKEN", "not for packages")
        yield read(tmp_path_factory.mktemp("site"), [*BAD.values(), *GOOD.values()])


@pytest.mark.parametrize(
    ("dist", "phase", "reason"),
    [
        ("import-error", "import", "ModuleNotFoundError: No module named 'not_installed_anywhere'"),
        ("syntax-error", "import", "SyntaxError: invalid syntax (syntax_error.py, line 1)"),
        ("runtime-error", "import", "RuntimeError: first second"),
        ("exits", "import", "SystemExit: 7"),
        ("exits-hard", "import", "ended the process with exit status 3 while it was imported"),
        ("crashes", "import", "crashed the process (SIGSEGV) while it was imported"),
        ("hangs", "import", "the import did not finish within 3 s"),
        ("gone", "import", "No module named 'gone_module'"),
        ("no-class", "check", "the module no_class defines no ability class"),
        ("facts-raise", "describe", "KeyError: 'oops'"),
        ("facts-exit", "describe", "SystemExit"),
        ("hash-order", "describe", "summary of hash_order differs between two readings"),
        ("time-zone", "describe", "summary of time_zone differs between two readings"),
        ("folder", "describe", "summary of folder differs between two readings"),
        ("two-of-one", "check", "two of its abilities are called twin: two_a:Twin and two_b:Twin"),
    ],
)
def test_a_package_that_cannot_be_read_is_reported_by_phase_and_reason(
    answers: dict[str, Described | Problem], dist: str, phase: str, reason: str
) -> None:
    problem = answers[dist]
    assert isinstance(problem, Problem)
    assert (problem.dist, problem.phase) == (f"chalie-ability-{dist}", phase)
    assert reason in problem.reason
    assert "\n" not in problem.reason and problem.fix


@pytest.mark.parametrize("dist", ["floods", "pipes", "bad-schema", "bad-name"])
def test_facts_that_cannot_be_used_set_the_package_aside(
    answers: dict[str, Described | Problem], dist: str
) -> None:
    problem = answers[dist]
    assert isinstance(problem, Problem) and problem.quarantined


def test_every_package_gets_exactly_one_answer(answers: dict[str, Described | Problem]) -> None:
    assert set(answers) == set(BAD) | set(GOOD)
    assert {name for name, answer in answers.items() if isinstance(answer, Described)} == set(GOOD)


def test_a_report_names_entry_point_and_metadata_folder(answers: dict[str, Described | Problem]) -> None:
    problem = answers["gone"]
    assert isinstance(problem, Problem)
    assert problem.entry_point == "chalie.abilities: gone = gone_module"
    assert "chalie_ability_gone-1.0.dist-info" in problem.reason


def test_the_line_that_fixes_a_missing_library_installs_it(answers: dict[str, Described | Problem]) -> None:
    problem, own = answers["import-error"], answers["gone"]
    assert isinstance(problem, Problem) and isinstance(own, Problem)
    assert "python -m pip install not_installed_anywhere" in problem.fix
    assert "python -m pip install --upgrade --force-reinstall chalie-ability-gone" in own.fix
    assert "chalie disable chalie-ability-gone" in own.fix


def test_a_module_gives_its_own_public_classes_once(answers: dict[str, Described | Problem]) -> None:
    several = answers["several"]
    assert isinstance(several, Described)
    assert sorted((a.name, a.target) for a in several.abilities) == [
        ("one", "several:One"),
        ("two", "several:Two"),
    ]


def test_facts_arrive_as_they_were_declared(answers: dict[str, Described | Problem]) -> None:
    marked = answers["marked"]
    assert isinstance(marked, Described)
    (ability,) = marked.abilities
    assert ability.actions == {"go": "destructive"}
    assert (ability.version, ability.dist_version, ability.dist) == ("3", "1.0", "chalie-ability-marked")
    assert ability.examples == packages.EXAMPLES
    assert len(ability.hash) == 64


def test_a_slow_import_is_timed(answers: dict[str, Described | Problem]) -> None:
    slow = answers["slow"]
    assert isinstance(slow, Described) and slow.seconds >= SLOW_S


def test_packages_see_nothing_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "not for packages")
    seen = "','.join(sorted(k for k in os.environ if 'TOKEN' in k or 'PYTHONPATH' in k)) or 'nothing'"
    curious = ability_package(
        "curious", before="import os", inside=f"def summary(self): return 'Sees ' + ({seen}) + '.'"
    )
    (answer,) = read(tmp_path / "site", [curious]).values()
    assert isinstance(answer, Described)
    assert answer.abilities[0].summary == "Sees nothing."


#: how an import can start a process, as code that writes its id to MARK
STARTS = {
    "a child": """
        import subprocess, sys
        child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])
        open(MARK, 'a').write(f'{child.pid} ')
    """,
    "a daemon": """
        import os, time
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                open(MARK, 'a').write(f'{os.getpid()} ')
                os.close(writing)
                time.sleep(600)
            os._exit(0)
        os.close(writing)
        os.read(reading, 1)
    """,
    "a daemon with a child, of an import that fails": """
        import os, signal, time
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                if os.fork() == 0:
                    os.setsid()
                    open(MARK, 'a').write(f'{os.getpid()} ')
                    os.close(writing)
                    time.sleep(600)
                os.close(writing)
                open(MARK, 'a').write(f'{os.getpid()} ')
                time.sleep(600)
            os._exit(0)
        os.close(writing)
        os.read(reading, 1)
        os.kill(os.getpid(), signal.SIGKILL)
    """,
}


@pytest.mark.parametrize("start", STARTS)
def test_what_a_package_started_is_ended_with_it(tmp_path: Path, start: str) -> None:
    mark = tmp_path / "pid"
    before = f"MARK = {str(mark)!r}\n" + dedent(STARTS[start])
    answers = read(tmp_path / "site", [ability_package("starter", before=before)])
    assert isinstance(answers["starter"], Problem if "fails" in start else Described)
    started = mark.read_text().split()
    assert started
    for pid in map(int, started):
        assert _ends(pid)


def test_reading_that_is_given_up_ends_what_it_was_reading(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    before = f"import os, time; open({str(mark)!r}, 'a').write(f'{{os.getpid()}} '); time.sleep(600)"
    packages.install(tmp_path, ability_package("hangs", before=before))
    reading = describe(
        scan([str(tmp_path)]).distributions, limit_s=600.0, paths=[str(tmp_path), *import_paths()]
    )
    assert isinstance(reading, Generator)
    while not mark.exists() or len(mark.read_text().split()) < 2:
        assert next(reading) is None
    reading.close()
    for pid in map(int, mark.read_text().split()):
        assert _ends(pid)


def _ends(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while _lives(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not _lives(pid)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_a_reading_process_that_cannot_begin_blames_no_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    packages.install(site, ability_package("good"))
    (site / "attrs").mkdir()
    (site / "attrs" / "__init__.py").write_text("raise ImportError('a broken attrs')")
    with pytest.raises(DescribeFailed, match="a broken attrs"):
        read(site, [])


#: what an import can write into the pipe that its facts are sent by
FRAMES = {
    "a list": '{"answer": ["facts"]}',
    "no facts": '{"answer": {}}',
    "facts of nothing": '{"answer": {"facts": [{"name": "x"}], "seconds": 0}}',
    "facts that are none": '{"answer": {"facts": 3, "seconds": 0}}',
    "a failure of nothing": '{"answer": {"failed": {}}}',
    "another's": '{"answer": {"dist": "chalie-ability-good", "facts": [], "seconds": 0}}',
    "no place": '{"at": ["phase"]}',
    "half a place": '{"at": {"phase": "import"}, "answer": {"failed": 3}}',
    "too deep": "[" * 100_000,
}


@pytest.mark.parametrize("frame", FRAMES)
def test_an_answer_that_a_package_made_up_is_taken_for_nobody_elses(tmp_path: Path, frame: str) -> None:
    forger = f"""
        import os, stat, struct, sys
        data = {FRAMES[frame]!r}.encode()
        for fd in range(3, 64):
            try:
                if stat.S_ISFIFO(os.fstat(fd).st_mode):
                    with os.fdopen(fd, 'wb', closefd=False) as pipe:
                        pipe.write(struct.pack('>I', len(data)) + data)
            except OSError: pass
        os._exit(0)
    """
    answers = read(tmp_path / "site", [ability_package("forger", before=forger), ability_package("good")])
    good, forged = answers["good"], answers["forger"]
    assert isinstance(good, Described) and [found.name for found in good.abilities] == ["good"]
    assert isinstance(forged, Problem) or forged.abilities == ()


def test_reading_leaves_no_compiled_files(tmp_path: Path) -> None:
    read(tmp_path / "site", [ability_package("good")])
    assert not list((tmp_path / "site").rglob("__pycache__"))
