"""The documentation against the code: made pages are current, links lead somewhere, blocks run."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import packages, pages
from tests.support import wheels as building

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)]+)\)")


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")) if kind == language]


@pytest.mark.parametrize("file", sorted(pages.pages()))
def test_a_page_made_from_the_code_is_current(file: str) -> None:
    assert (ROOT / "docs" / file).read_text(encoding="utf-8") == pages.pages()[file], (
        "run: python tests/support/pages.py"
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    for link in LINK.findall(text):
        target, _, anchor = link.partition("#")
        if target.startswith("http"):
            continue
        found = (page.parent / target) if target else page
        assert found.exists(), f"{page.name} links to {link}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", found.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {heading.lower().replace(" ", "-") for heading in headings}, link


def shell_lines() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for block in blocks(page, "sh"):
            for line in block.splitlines():
                yield page.name, line


def test_every_chalie_line_of_the_documentation_is_one_the_command_line_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shlex

    import click
    from chalie.cli.program import program

    monkeypatch.chdir(tmp_path)
    seen = 0
    for page, line in shell_lines():
        words = shlex.split(line, comments=True)
        for word in words:  # a line may read a file that the one before it wrote
            if word.endswith(".json"):
                (tmp_path / word).touch()
        at = next((at for at, word in enumerate(words) if word.endswith("chalie")), None)
        if at is None or "install" in words[:at]:
            continue
        context = click.Context(program, info_name="chalie")
        command: click.Command | None = program
        rest = words[at + 1 :]
        while isinstance(command, click.Group) and rest:
            command, rest = command.get_command(context, rest[0]), rest[1:]
        assert command is not None, f"{page}: {line}"
        command.make_context(command.name, list(rest), parent=context)
        seen += 1
    assert seen >= 10


def test_every_nox_line_of_the_documentation_names_a_session() -> None:
    sessions = set(re.findall(r"^def (\w+)\(session", (ROOT / "noxfile.py").read_text(), re.MULTILINE))
    named = [word for _, line in shell_lines() for word in re.findall(r"nox -s (\w+)", line)]
    assert {"demo", "tests", "wheels"} <= set(named) <= sessions


def test_the_readme_gives_the_two_lines_that_do_their_own_set_up() -> None:
    head = 'python3 -m venv .venv && .venv/bin/pip install "nox[uv]" && .venv/bin/nox -s'
    lines = blocks(ROOT / "README.md", "sh")[0].splitlines()
    assert lines == [f"{head} demo", f"{head} tests"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_configuration_blocks_are_toml_that_the_host_takes(page: Path, tmp_path: Path) -> None:
    import tomllib

    from chalie.config import Config

    for block in blocks(page, "toml"):
        written = tomllib.loads(block)
        if "project" in written:
            continue
        home = tmp_path / "home"
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(block)
        Config.load(home)


#: pages whose code needs a framework, run where those are installed: tests/interop/frameworks.
ELSEWHERE = {f"use-with-{name}.md" for name in ("langchain", "llm", "openai-agents", "pydantic-ai")}


def code_pages() -> list[Path]:
    return [page for page in PAGES if blocks(page, "python") and page.name not in ELSEWHERE]


@pytest.mark.parametrize("page", code_pages(), ids=lambda page: page.name)
def test_the_python_of_a_page_runs_from_top_to_bottom(page: Path, tmp_path: Path) -> None:
    """Each block runs in a process of its own, with the packages that the pages speak of installed."""
    site = tmp_path / "site"
    for name in ("dice", "weather"):
        packages.install(site, packages.ability_package(name))
    packages.install(site, water_the_plants())
    home = tmp_path / "home"
    for block in blocks(page, "python"):
        building.checked(
            [sys.executable, "-c", block],
            env=building.clean_environment(home, PYTHONPATH=str(site)),
            cwd=tmp_path,
        )


def water_the_plants() -> packages.Package:
    """Return the package of playbooks that its page makes."""
    import tomllib

    page = ROOT / "docs" / "writing-a-skill.md"
    project = tomllib.loads(blocks(page, "toml")[0])["project"]
    folder = "chalie_skill_water_the_plants"
    files = {f"{folder}/__init__.py": "", f"{folder}/water-the-plants/SKILL.md": blocks(page, "markdown")[0]}
    return packages.Package(project["name"], files, project["entry-points"])


def test_the_playbook_of_its_page_is_read_and_found_as_the_page_says(
    home: Path, site: Path, tmp_path: Path
) -> None:
    import shlex

    from chalie.testing.homes import open_host

    packages.install(site, water_the_plants())
    lines = blocks(ROOT / "docs" / "writing-a-skill.md", "sh")[1].splitlines()
    (find,) = [shlex.split(line) for line in lines if line.startswith("chalie find --skills")]
    with open_host(home, tmp_path) as host:
        assert not [problem for problem in host.problems() if problem.phase == "playbook"]
        for entry in (find[3], "water the plants"):
            assert host.find([entry], "playbook").hits[0].item.name == "water-the-plants", entry


def test_the_abilities_of_the_pages_are_described_without_a_complaint(tmp_path: Path) -> None:
    from chalie.ability import Ability, facts

    found = []
    for page in code_pages():
        for block in blocks(page, "python"):
            if "(Ability)" in block:
                scope: dict[str, object] = {"__name__": "shown"}
                exec(compile(block, str(page), "exec"), scope)
                found += [each for each in scope.values() if isinstance(each, type) and each is not Ability]
    abilities = [each() for each in found if issubclass(each, Ability)]
    assert {ability.name() for ability in abilities} == {"dice", "loans", "notes", "roller"}
    for ability in abilities:
        facts(ability, dist="shown", dist_version="1", target="shown:Shown")
        assert 6 <= len(ability.examples()) <= 8


def test_the_policy_of_its_page_decides_as_the_page_says(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Made a package, enabled, and trusted, as the page has it."""
    import tomllib

    from chalie.cli.main import main
    from chalie.config import Config
    from chalie.ledger import Ledger

    page = ROOT / "docs" / "writing-a-policy.md"
    project = tomllib.loads(blocks(page, "toml")[0])
    site = tmp_path / "site"
    packages.install(site, packages.ability_package("looker", facts={"side_effect": packages.READ}))
    wiper = packages.ability_package("wiper", facts={"side_effect": packages.Raw("SideEffect.DESTRUCTIVE")})
    packages.install(site, wiper)
    policy = packages.Package(
        dist=project["project"]["name"],
        files={"chalie_policy_careful.py": blocks(page, "python")[0]},
        entry_points=project["project"]["entry-points"],
    )
    packages.install(site, policy)
    monkeypatch.syspath_prepend(str(site))

    def ends(*words: str) -> str:
        assert main(list(words)) == 0
        return capsys.readouterr().out.rstrip().rsplit("\n", 1)[-1]

    ends("index")
    config = Config.load(home)
    with Ledger.open(config.ledger_path) as ledger:
        monkeypatch.setenv("CHALIE_APPROVER_TOKEN", token := ledger.approvers.add("phone", by="test"))
    said = []
    for step in ((), ("enable", policy.dist), ("trust", policy.dist)):
        if step:
            monkeypatch.setenv("CHALIE_APPROVER_TOKEN", token)
            ends(*step)
        said.append((ends("explain", "looker"), ends("explain", "wiper")))
    assert said == [("= ask", "= ask"), ("= ask", "= deny"), ("= allow", "= deny")]
