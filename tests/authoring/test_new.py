"""`chalie new`: whole packages, that install and pass their own tests whatever they are called."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from chalie.authoring.new import KINDS, make
from chalie.cli.main import main
from chalie.errors import ChalieError, NameRefused
from packaging.utils import canonicalize_name

from tests.support import wheels as building

LONGEST = "a-rather-long-name-of-forty-letters-or-so"[:40]
ROOT = Path(__file__).resolve().parents[2]


def texts(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.relative_to(folder).as_posix(), path.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["a1", "never", "dice_roll", LONGEST])
def test_nothing_of_the_template_is_left_in_a_new_package(tmp_path: Path, kind: str, name: str) -> None:
    made = make(kind, name, into=tmp_path, author="Ada Lovelace")
    assert made.folder == tmp_path / made.dist
    assert made.dist == canonicalize_name(made.dist) == f"{KINDS[kind].prefix}{name.replace('_', '-')}"
    old = KINDS[kind].words
    for path, text in texts(made.folder):
        for form in (old, old.replace(" ", "-"), old.replace(" ", "_"), old.title().replace(" ", "")):
            assert form.lower() not in f"{path} {text}".lower(), path
    project = tomllib.loads((made.folder / "pyproject.toml").read_text())
    assert project["project"]["name"] == made.dist
    assert project["project"]["authors"] == [{"name": "Ada Lovelace"}]
    assert "uv" not in project["tool"]
    assert list(made.files) == [path for path, _ in texts(made.folder)]
    assert {"LICENSE", "README.md", "pyproject.toml", ".gitignore", ".github/workflows/ci.yml"} <= {
        *made.files
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["a1", "any", LONGEST])
def test_a_new_package_is_written_as_the_formatter_and_the_linter_have_it(
    tmp_path: Path, kind: str, name: str
) -> None:
    made = make(kind, name, into=tmp_path, author="Ada")
    for words in (["check", "--no-cache"], ["format", "--check", "--no-cache"]):
        building.checked([sys.executable, "-m", "ruff", *words, "."], cwd=made.folder)


def test_what_is_made_is_what_the_packages_of_this_checkout_are(tmp_path: Path) -> None:
    """Made under its template's own name it differs by what a workspace adds, and by nothing else."""
    for kind in KINDS.values():
        name = next(key for key, value in KINDS.items() if value is kind)
        made = make(name, kind.template, into=tmp_path, author="The Chalie authors")
        for path, text in texts(made.folder):
            if path not in (".gitignore", ".github/workflows/ci.yml", "pyproject.toml"):
                assert text == (ROOT / "plugins" / kind.template / path).read_text(encoding="utf-8")


def test_every_kind_is_built_installed_and_passes_its_own_tests(tmp_path: Path) -> None:
    made = [make(kind, "river_crossing", into=tmp_path, author="Ada") for kind in KINDS]
    for one in made:
        building.build(one.folder, tmp_path / "wheels")
    site = tmp_path / "site"
    building.install(site, *(building.wheel(tmp_path / "wheels", one.dist) for one in made))
    for one in made:
        assert (site / f"{one.dist.replace('-', '_')}-0.1.0.dist-info").is_dir()
    done = building.checked(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib"),
            *("-W", "ignore", "--rootdir", str(tmp_path)),
            *(str(one.folder / "tests") for one in made),
        ],
        env=building.clean_environment(tmp_path / "home", PYTHONPATH=str(site)),
        cwd=tmp_path,
    )
    assert " passed" in done.stdout and "failed" not in done.stdout


def test_a_new_ability_passes_the_lint_of_catalogues(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("dice", "dice_roll"):
        made = make("ability", name, into=tmp_path, author="Ada")
        assert main(["lint", str(made.folder)]) == 0, capsys.readouterr()


def test_the_wheel_makes_the_same_packages(tmp_path: Path, wheels: Path) -> None:
    target = tmp_path / "target"
    building.install(target, building.wheel(wheels, "chalie"))
    for kind in KINDS:
        here = make(kind, "tea", into=tmp_path / "here", author="Ada")
        building.checked(
            [
                *(sys.executable, "-m", "chalie.cli.main", "new", kind, "tea"),
                *("--author", "Ada", "--into", str(tmp_path / "there")),
            ],
            env=building.clean_environment(tmp_path / "home", PYTHONPATH=str(target)),
            cwd=tmp_path,
        )
        assert dict(texts(tmp_path / "there" / here.dist)) == dict(texts(here.folder))


@pytest.mark.parametrize(
    "name", ["", "Dice", "dice roll", "2dice", "-dice", "dice-", "dé", "a" * 41, "../dice", "dice.roll"]
)
def test_what_is_no_name_is_refused_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    for kind in KINDS:
        with pytest.raises(NameRefused, match="is no name for a package") as caught:
            make(kind, name, into=tmp_path, author="Ada")
        assert caught.value.hint == (
            "use up to 40 of a-z and 0-9, with - or _ between words, as in dice-roll"
        )
    assert list(tmp_path.iterdir()) == []


def test_an_ability_may_not_be_called_like_one_of_the_hosts_own(tmp_path: Path) -> None:
    with pytest.raises(NameRefused, match="the name find_tools belongs to the host"):
        make("ability", "find-tools", into=tmp_path, author="Ada")
    assert make("policy", "find-tools", into=tmp_path, author="Ada").dist == "chalie-policy-find-tools"


def test_the_whole_name_of_a_distribution_may_be_given(tmp_path: Path) -> None:
    assert make("ability", "chalie_ability-dice", into=tmp_path, author="Ada").dist == "chalie-ability-dice"


def test_what_is_there_already_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    theirs = tmp_path / "chalie-ability-dice"
    theirs.mkdir()
    (theirs / "notes.txt").write_text("mine")
    (tmp_path / "chalie-skill-dice").symlink_to(tmp_path / "nowhere")
    for kind in ("ability", "skill"):
        assert main(["new", kind, "dice", "--into", str(tmp_path)]) == 4
        said = capsys.readouterr().err
        assert f"chalie-{kind}-dice is there already; nothing was written [not-allowed]" in said
        assert f"hint: choose another name, or another place: chalie new {kind} dice --into FOLDER" in said
    assert sorted(path.name for path in tmp_path.rglob("*")) == [
        "chalie-ability-dice",
        "chalie-skill-dice",
        "notes.txt",
    ]


def test_a_package_is_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    from chalie.authoring import new

    written = new._write

    def full(folder: Path, contents: dict[str, bytes]) -> None:
        written(folder, dict(list(contents.items())[:4]))
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(new, "_write", full)
    with pytest.raises(ChalieError, match="could not be written: No space left on device"):
        make("ability", "dice", into=tmp_path, author="Ada")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_is_no_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ChalieError, match="could not be written") as caught:
        make("skill", "dice", into=tmp_path / "file" / "below", author="Ada")
    assert caught.value.hint == "choose a place you may write to: chalie new skill dice --into FOLDER"


def test_the_command_says_what_it_made_and_what_comes_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=False)
    assert main(["new", "policy", "curfew", "--into", str(tmp_path), "--author", 'A "B" é']) == 0
    said = capsys.readouterr()
    assert said.out.splitlines()[:2] == [f"{tmp_path}/chalie-policy-curfew", "  .github/workflows/ci.yml"]
    assert said.err.splitlines() == [
        "next:",
        f"  cd {tmp_path}/chalie-policy-curfew",
        "  python -m pip install --upgrade pip",
        "  python -m pip install --editable . --group dev",
        "  pytest",
        "  chalie install --editable .",
    ]
    project = tomllib.loads((tmp_path / "chalie-policy-curfew" / "pyproject.toml").read_text())
    assert project["project"]["authors"] == [{"name": 'A "B" é'}]


@pytest.mark.parametrize("kind", KINDS)
def test_the_workflow_checks_everything_and_publishes_without_a_password(tmp_path: Path, kind: str) -> None:
    import yaml

    made = make(kind, "tea", into=tmp_path, author="Ada")
    jobs = yaml.safe_load((made.folder / ".github/workflows/ci.yml").read_text())["jobs"]
    assert [step["run"] for step in jobs["test"]["steps"] if "run" in step][2:] == [
        "ruff check .",
        "ruff format --check .",
        "mypy",
        *(["chalie lint ."] if kind == "ability" else []),
        "pytest",
    ]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["needs"] == "test"
    uses = [step["uses"] for step in jobs["publish"]["steps"] if "uses" in step]
    assert uses[-1].startswith("pypa/gh-action-pypi-publish@")
    assert "secrets." not in (made.folder / ".github/workflows/ci.yml").read_text()
