"""The tutorial, done as it says: what it types is run, what it writes is used, what it shows is compared."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import wheels as building

PAGE = Path(__file__).resolve().parents[1] / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: `path`: at the end of the paragraph above a block: the file that the block is.
FILE = re.compile(r"`([^`]+)`:\s*\Z")
#: what is typed and is not Chalie's: an environment is there already, and what checks style is not in it.
OTHERS = {"python3", ".", "python", "ruff", "mypy"}


def steps() -> Iterator[tuple[str, str, str]]:
    """Yield (kind, text, the text between it and the block before) of each block."""
    text, end = PAGE.read_text(encoding="utf-8"), 0
    for block in BLOCK.finditer(text):
        yield block[1], block[2], text[end : block.start()]
        end = block.end()


def typed(text: str) -> Iterator[tuple[str, str]]:
    """Yield each line that is typed in a block, and what is shown below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, _, shown = part.partition("\n")
        yield line, shown


class Author:
    """Somebody who does what the page says, at a terminal of their own."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        from chalie.config import Config
        from chalie.ledger import Ledger

        self._monkeypatch, self._capfd, self._site = monkeypatch, capfd, folder / "site"
        with Ledger.open(Config.load().ledger_path) as ledger:
            self._token = ledger.approvers.add("ada", by="test")
        monkeypatch.setenv("LOGNAME", "ada")
        (folder / "work").mkdir()
        monkeypatch.chdir(folder / "work")
        self.ran: list[str] = []

    def types(self, line: str) -> tuple[int, str]:
        """Do one line; return its exit code and what it printed."""
        words = shlex.split(line, comments=True)
        if words[0] == "cd":
            self._monkeypatch.chdir(words[1])
        elif words[0] == "pytest":
            return self._tests()
        elif words[0] == "chalie":
            self.ran.append(words[1])
            return self._chalie(words[1:])
        else:
            assert words[0] in OTHERS, line
        return 0, ""

    def _chalie(self, words: list[str]) -> tuple[int, str]:
        from chalie.cli.main import main

        if words[0] == "install":
            if "--editable" not in words:  # a wheel that the line before builds: tests/wheels installs those
                return 0, ""
            words = ["enable", "--installed", self._installed(Path(words[-1]))]
        elif words[0] == "call":
            words = [*words, "--yes"]
        self._monkeypatch.setenv("CHALIE_APPROVER_TOKEN", self._token)
        self._capfd.readouterr()
        code = main(words)
        return code, self._capfd.readouterr().out

    def _installed(self, folder: Path) -> str:
        """Install a project in place, as pip would, and return its distribution's name."""
        from chalie.testing.project import project_above, site_of

        project = project_above(folder.resolve() / "pyproject.toml")
        assert project is not None, folder
        self._site.mkdir(exist_ok=True)
        for entry in site_of(project, self._site):
            self._monkeypatch.syspath_prepend(entry)
        return project.dist

    def _tests(self) -> tuple[int, str]:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
        environment = building.clean_environment(Path(os.environ["CHALIE_HOME"]))
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        return done.returncode, done.stdout + done.stderr


def test_the_tutorial_does_what_it_says(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    author = Author(tmp_path, monkeypatch, capfd)
    written, compared, tested = [], 0, ""
    for kind, text, before in steps():
        if kind == "python":
            named = FILE.search(before)
            assert named, f"the page does not say which file this is:\n{text}"
            assert Path(named[1]).exists(), f"chalie new made no {named[1]}"
            Path(named[1]).write_text(text, encoding="utf-8")
            written.append(named[1])
        elif kind == "sh":
            for line in text.splitlines():
                code, out = author.types(line)
                assert code == 0, f"{line}\n{out}"
                tested = out if line == "pytest" else tested
        elif kind == "console":
            for line, shown in typed(text):
                assert author.types(line)[1] == shown, line
                compared += 1
    assert "10 passed" in tested, tested
    assert written == ["src/chalie_ability_loans/ability.py", "tests/test_loans.py"]
    assert compared == 3
    assert {"new", "install", "find", "call", "trail", "show", "explain", "lint", "skills"} <= set(author.ran)


def test_the_first_success_takes_ten_lines() -> None:
    assert len(next(steps())[1].splitlines()) == 10


def test_the_files_that_the_tutorial_lists_are_those_that_are_made(tmp_path: Path) -> None:
    from chalie.authoring.new import make

    made = make("ability", "loans", into=tmp_path, author="Ada")
    (listing,) = [
        text for kind, text, _ in steps() if kind == "text" and text.startswith("chalie-ability-loans/")
    ]
    for line in listing.splitlines()[1:]:
        assert line.split()[0] in made.files


def test_what_the_contract_says_of_a_poor_example_is_what_the_tutorial_shows(
    home: Path, tmp_path: Path, site: Path
) -> None:
    from chalie.testing.homes import open_host

    from tests.support import packages

    poor, good = "where is it now", "what have I lent to people"
    assert f"the example '{poor}' finds nothing" in PAGE.read_text(encoding="utf-8")
    source = next(text for kind, text, _ in steps() if kind == "python")
    module = {"chalie_ability_loans.py": source.replace(good, poor)}
    points = {packages.GROUP: {"loans": "chalie_ability_loans"}}
    packages.install(site, packages.Package("chalie-ability-loans", module, points))
    with open_host(home, tmp_path) as host:
        assert poor in host.snapshot.of("chalie-ability-loans")[0].examples
        assert not host.find([poor]).hits
