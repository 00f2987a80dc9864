"""The map in the code: which room may import which, what the wheels hold, what a start may import."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from chalie.authoring.new import KINDS

from tests.support import wheels as building

ROOT = Path(__file__).resolve().parents[1]
CORE = ROOT / "core" / "chalie"

#: rooms, lowest first; a room imports from the lines above it and, without cycles, from its own line.
LINES = (
    ("errors", "config"),
    ("compact", "names", "schema", "calls", "ability", "result", "hints", "markers", "envelope", "hookspecs"),
    ("ledger",),
    ("catalogue",),
    ("gate",),
    ("discovery",),
    ("dispatch",),
    ("meta", "mcp"),
    ("approvals", "channels", "pins", "search", "turn", "turns", "build", "host"),
    ("authoring", "testing", "cli"),
)
RANK = {room: rank for rank, line in enumerate(LINES) for room in line}

#: what opening a host must not have paid for.
HEAVY = {
    "click",
    "fastmcp",
    "httpx",
    "mcp",
    "model2vec",
    "numpy",
    "rich",
    "tantivy",
    "tokenizers",
    "usearch",
}


def module_name(path: Path) -> str:
    parts = path.relative_to(CORE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(CORE.rglob("*.py"))}


def imports_of(module: str) -> Iterator[tuple[str, int]]:
    """Yield (imported module of ours, line) for every import of a module, inside functions too."""
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "chalie":
                    yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                parts = parts[: len(parts) - node.level + 1]
                base = ".".join([*parts, *([node.module] if node.module else [])])
            if base.split(".")[0] == "chalie":
                for alias in node.names:
                    if alias.name == "__version__":
                        continue  # the one fact that every room may ask the roof for
                    whole = f"{base}.{alias.name}"
                    yield (whole if whole in MODULES else base), node.lineno


def room(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else None


def upward(module: str, imported: str) -> bool:
    """Whether importing `imported` from `module` goes against the order of the rooms."""
    here, there = room(module), room(imported)
    if here is None:
        return False  # the package itself offers names of every room, lazily
    if there is None:
        return True  # the roof is for those outside
    return RANK[there] > RANK[here]


def test_every_room_imports_only_from_the_rooms_below_it() -> None:
    wrong = [
        f"{module}:{line} imports {imported}"
        for module in MODULES
        for imported, line in imports_of(module)
        if upward(module, imported)
    ]
    assert not wrong, "\n".join(wrong)


def test_an_import_against_the_order_would_be_noticed() -> None:
    assert upward("chalie.gate.fold", "chalie.dispatch.run")
    assert upward("chalie.ledger.ledger", "chalie.gate.fold")
    assert not upward("chalie.dispatch.run", "chalie.gate.fold")
    assert upward("chalie.cli.main", "chalie")


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {module: {found for found, _ in imports_of(module)} - {module, "chalie"} for module in MODULES}
    graph["chalie"] = set()
    assert circle(graph) is None


def test_a_circle_would_be_noticed() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a", "b", "c", "a"]
    assert circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) is None


def circle(graph: dict[str, set[str]]) -> list[str] | None:
    """Return one circle of a graph as the nodes along it, or None."""
    done: set[str] = set()

    def walk(node: str, trail: list[str]) -> list[str] | None:
        if node in trail:
            return [*trail[trail.index(node) :], node]
        if node in done:
            return None
        for following in sorted(graph.get(node, ())):
            found = walk(following, [*trail, node])
            if found:
                return found
        done.add(node)
        return None

    for node in sorted(graph):
        found = walk(node, [])
        if found:
            return found
    return None


#: rooms that the map has and that are still to be built.
LATER = frozenset({"mcp"})
#: folders of `tests` that mirror no room.
BESIDE = frozenset({"benchmarks", "interop", "support", "wheels"})


def tracked() -> list[Path]:
    """Return the paths of the checkout's files, below its root; in an unpacked archive all there are."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.stdout:
        return [Path(line) for line in listed.stdout.splitlines() if (ROOT / line).exists()]
    found = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
    built = {"__pycache__", "dist", "build"}
    return [
        path for path in found if not any(part in built or part.startswith(".") for part in path.parts[:-1])
    ]


def children(paths: Iterable[Path], folder: Path, *, folders_only: bool = False) -> set[str]:
    """Return the names of what lies directly in a folder."""
    inside = [path.relative_to(folder) for path in paths if path.is_relative_to(folder)]
    return {path.parts[0] for path in inside if len(path.parts) > 1 or not folders_only}


def test_the_rooms_are_those_of_the_map() -> None:
    found = children(tracked(), Path("core/chalie")) - {"__init__.py", "py.typed"}
    rooms = {name.removesuffix(".py") for name in found}
    assert not rooms - set(RANK), "no rooms of the map"
    assert not set(RANK) - rooms - LATER, "rooms of the map that are not there"


def test_a_stray_room_would_be_noticed() -> None:
    stray = [Path("core/chalie/ledger/ledger.py"), Path("core/chalie/stray/deep/notes.txt"), Path("x.py")]
    assert children(stray, Path("core/chalie")) - set(RANK) == {"stray"}


def test_a_room_has_no_rooms_of_its_own() -> None:
    deep = [path for path in tracked() if path.is_relative_to("core/chalie") and len(path.parts) > 4]
    assert deep == []


def test_the_rooms_for_contributors_are_those_of_the_map() -> None:
    text = " ".join((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split())
    for line in LINES[:-1]:
        assert f"`{' '.join(line)}`" in text


def test_the_tests_mirror_the_rooms() -> None:
    found = children(tracked(), Path("tests"), folders_only=True)
    assert found >= BESIDE
    assert found - BESIDE <= set(RANK)


def test_the_folders_are_those_of_the_map() -> None:
    found = {name for name in children(tracked(), Path(), folders_only=True) if not name.startswith(".")}
    assert found == {"core", "docs", "plugins", "skills", "tests"}
    assert children(tracked(), Path("core")) == {"chalie"}


@pytest.mark.parametrize("project", building.projects()[1:], ids=lambda path: path.name)
def test_every_package_has_a_project_file_a_readme_and_tests(project: Path) -> None:
    found = children(tracked(), project.relative_to(ROOT))
    assert found >= {"LICENSE", "README.md", "pyproject.toml", "tests"}


def test_every_folder_of_packages_is_one() -> None:
    assert children(tracked(), Path("plugins")) == {
        project.name for project in building.projects() if project.parent.name == "plugins"
    }


def test_files_are_nouns_of_a_readable_length() -> None:
    files = [
        path for folder in ("core", "plugins", "skills", "tests") for path in (ROOT / folder).rglob("*.py")
    ]
    vague = [
        path for path in files if {"utils", "helpers", "manager", "misc"} & {path.stem, path.parent.name}
    ]
    assert not vague
    most = {"core": 500, "plugins": 480, "skills": 480, "tests": 650}
    long = {
        str(path.relative_to(ROOT)): lines
        for path in files
        if "train" not in path.parts
        and (lines := path.read_text(encoding="utf-8").count("\n")) > most[path.relative_to(ROOT).parts[0]]
    }
    assert not long


def imported_by(code: str, home: Path) -> set[str]:
    """Return the top-level modules that a fresh process has loaded after running some code."""
    tail = "\nimport sys, json\nprint(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    done = building.checked(
        [sys.executable, "-c", code + tail], env=building.clean_environment(home), cwd=home.parent
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_the_package_imports_next_to_nothing(home: Path) -> None:
    found = imported_by("import chalie", home) - imported_by("", home)
    assert found - {"chalie", "__future__"} <= set(sys.stdlib_module_names)
    assert not found & {"asyncio", "sqlite3", "importlib_metadata", "attrs", "attr", "logging"}


def test_the_version_is_answered_before_the_command_line_is_imported(home: Path) -> None:
    found = imported_by("from chalie.cli.main import main\nassert main(['--version']) == 0", home)
    assert not found & (HEAVY | {"attr", "attrs", "asyncio", "sqlite3", "importlib_metadata", "pluggy"})


def test_opening_a_host_imports_no_heavy_library(home: Path) -> None:
    code = "from chalie import Host\nhost = Host.open()\nhost.turn('chat').tools('openai')\nhost.close()"
    assert not imported_by(code, home) & HEAVY


def test_the_guard_sees_a_heavy_library(home: Path) -> None:
    assert "click" in imported_by("import click", home)


#: packages that embed the host in a framework, and bring nothing for the host itself.
EMBEDDING = frozenset({"chalie-langchain", "chalie-llm", "chalie-openai-agents", "chalie-pydantic-ai"})


#: packages of the checkout that new ones are made from; the host's wheel holds them.
TEMPLATES = {kind.template for kind in KINDS.values()}


def names_in(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_the_wheel_of_the_host_holds_the_host_and_nothing_else(wheels: Path) -> None:
    names = names_in(building.wheel(wheels, "chalie"))
    code = {name for name in names if ".dist-info/" not in name}
    templates = {name for name in code if name.startswith("chalie/authoring/templates/")}
    assert code - templates == {
        str(path.relative_to(ROOT / "core"))
        for path in CORE.rglob("*")
        if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in path.parts)
    }
    copied = {
        f"chalie/authoring/templates/{path.relative_to('plugins')}"
        for path in tracked()
        if path.is_relative_to("plugins") and path.parts[1] in TEMPLATES
    }
    assert templates == copied
    meta = {name.split("/", 1)[1] for name in names if ".dist-info/" in name}
    assert {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"} <= meta
    assert "chalie/py.typed" in code


@pytest.mark.parametrize("project", building.projects()[1:], ids=lambda path: path.name)
def test_every_other_wheel_declares_what_it_brings_and_leaves_its_tests_at_home(
    wheels: Path, project: Path
) -> None:
    import tomllib

    dist = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"]
    wheel = building.wheel(wheels, dist)
    names = names_in(wheel)
    assert not [name for name in names if "tests/" in name or "train/" in name or name.endswith(".pyc")]
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    with zipfile.ZipFile(wheel) as archive:
        points = [archive.read(name).decode() for name in names if name.endswith("/entry_points.txt")]
        assert any("[chalie." in text for text in points) is (dist not in EMBEDDING)
    assert wheel.stat().st_size <= 16 * 2**20
