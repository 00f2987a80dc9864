"""Every check of the checkout, one session each; `nox -l` lists them.

On a bare machine: `python3 -m venv .venv && .venv/bin/pip install "nox[uv]" && .venv/bin/nox -s tests`.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import nox
from nox.command import CommandFailed

nox.needs_version = ">=2024.4.15"
nox.options.default_venv_backend = "uv"
nox.options.sessions = ["lint", "types", "tests"]

ROOT = Path(__file__).parent
DIST = ROOT / "dist"
PROJECT = nox.project.load_toml("pyproject.toml")

#: what the tests import from the checkout. Abilities stay out: a test that wants one installs it.
HOST = ("-e", ".", "-e", "plugins/chalie-model-static")

#: what embeds the host in a framework, and would bring that framework along.
EMBEDDING = ("chalie-langchain", "chalie-llm", "chalie-openai-agents", "chalie-pydantic-ai")


def group(name: str) -> list[str]:
    """Return the requirements of one dependency group."""
    return nox.project.dependency_groups(PROJECT, name)


def projects() -> list[Path]:
    """Return every folder of the checkout that builds a wheel: the host first."""
    found = [ROOT, *sorted(path.parent for path in (ROOT / "plugins").glob("*/pyproject.toml"))]
    return [*found, ROOT / "skills"]


def uv() -> str:
    """Return the uv that came with nox, else the one on the path."""
    beside = Path(sys.executable).parent / "uv"
    if importlib.util.find_spec("uv") and beside.exists():
        return str(beside)
    return "uv"


def built(session: nox.Session, *only: Path) -> None:
    """Fill dist/ with the wheels of this checkout (or of some of its projects) and nothing else."""
    shutil.rmtree(DIST, ignore_errors=True)
    for project in only or projects():
        session.run(uv(), "build", "--wheel", "--quiet", "--out-dir", str(DIST), str(project), external=True)


def unset(session: nox.Session) -> None:
    """Keep the account's own Chalie out of the session."""
    for name in [name for name in os.environ if name.startswith("CHALIE_")]:
        session.env[name] = None


@nox.session(python=["3.11", "3.12", "3.13"], name="tests-on")
def tests_on(session: nox.Session) -> None:
    """Run the tests on one named Python: `nox -s tests-on-3.13`."""
    run_tests(session)


@nox.session
def tests(session: nox.Session) -> None:
    """Run every test on the Python that runs nox."""
    run_tests(session)


def run_tests(session: nox.Session, *extra: str) -> None:
    session.install(*HOST, *group("test"), *extra)
    unset(session)
    session.run("pytest", "-n", "2", *session.posargs)


@nox.session
def minimums(session: nox.Session) -> None:
    """Run the tests with the oldest versions that pyproject.toml allows."""
    session.install("--resolution", "lowest-direct", *HOST)
    # The tools of the tests come in their newest version, without moving what is under test.
    session.install(*group("test"))
    session.run(uv(), "pip", "list", external=True)
    unset(session)
    session.run("pytest", "-n", "2", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and formatting; `nox -s lint -- --fix` repairs what can be repaired."""
    session.install(*group("lint"))
    fix = "--fix" in session.posargs
    session.run("ruff", "check", *(["--fix"] if fix else []), ".")
    session.run("ruff", "format", *([] if fix else ["--check"]), ".")


@nox.session
def types(session: nox.Session) -> None:
    """Check the types of the host, of every plugin and of what `chalie new` makes, strictly."""
    session.install(*HOST, *group("types"), "httpx")
    session.run("mypy")
    made = Path(session.create_tmp()) / "new"
    shutil.rmtree(made, ignore_errors=True)
    for kind in ("ability", "policy", "skill"):
        session.run(
            "chalie", "new", kind, "river-crossing", "--author", "A", "--into", str(made), silent=True
        )
        with session.chdir(made / f"chalie-{kind}-river-crossing"):
            session.run("mypy")


@nox.session(venv_backend="none")
def wheels(session: nox.Session) -> None:
    """Build the host, every plugin and the skills into dist/."""
    built(session)


@nox.session
def demo(session: nox.Session) -> None:
    """Install host and tools from built wheels and run the main job, with a scripted model and no network."""
    built(session)
    wanted = [(name, path) for name, path in named_wheels() if name not in EMBEDDING]
    session.install("--find-links", str(DIST), *[f"{name} @ {path.as_uri()}" for name, path in wanted])
    unset(session)
    session.run("chalie", "demo", *session.posargs)


def named_wheels() -> list[tuple[str, Path]]:
    """Return (distribution, wheel) for everything in dist/."""
    found = sorted(DIST.glob("*.whl"))
    return [(path.name.split("-")[0].replace("_", "-"), path) for path in found]


#: what each part of the interop session installs besides the host and its tests.
INTEROP = {
    "servers": (),
    "clients": ("fastmcp>=4,<5",),
    "frameworks": (*group("frameworks"), *(f"-eplugins/{name}" for name in EMBEDDING)),
}


@nox.session
def interop(session: nox.Session) -> None:
    """Try the host with MCP servers, clients and frameworks that others wrote: `nox -s interop -- servers`.

    Needs node, npm and git on the path, and the package registries; what it fetches is kept in build/.
    """
    missing = [name for name in ("node", "npm", "git") if shutil.which(name) is None]
    if missing:
        session.error(f"this session needs {', '.join(missing)} on the path")
    parts = [part for part in INTEROP if part in session.posargs] or list(INTEROP)
    more = [word for word in session.posargs if word not in INTEROP]
    session.install(*HOST, *group("test"), *(each for part in parts for each in INTEROP[part]))
    unset(session)
    session.run("pytest", *(f"tests/interop/{part}" for part in parts), *more)
    if "frameworks" in parts:  # what embeds the host has types only where its framework is
        session.run("mypy", *(f"plugins/{name}/src" for name in EMBEDDING), "tests/interop/frameworks")


@nox.session
def bench(session: nox.Session) -> None:
    """Measure the host, then discovery, beside their peers in one run and print the ratios.

    `nox -s bench -- discovery …` measures discovery alone; what follows are its own options.
    """
    built(session, ROOT, ROOT / "plugins" / "chalie-model-static")
    wheel_paths = [str(path) for _, path in named_wheels()]
    session.install("--find-links", str(DIST), *wheel_paths, *group("bench"))
    unset(session)
    alone = session.posargs[:1] == ["discovery"]
    halves = [("discovery.py", session.posargs[1:] if alone else [])]
    if not alone:
        halves.insert(0, ("run.py", session.posargs))
    missed = []
    for name, words in halves:
        try:
            session.run("python", f"tests/benchmarks/{name}", *words)
        except CommandFailed:  # a budget was missed; the other half is measured all the same
            missed.append(name)
    if missed:
        session.error(f"missed or failed: {', '.join(missed)}")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation into build/docs; a warning is an error, and so is a link that leads nowhere."""
    session.install(*group("docs"))
    session.run("sphinx-build", "-EaW", "--keep-going", "-q", "-d", "build/doctrees", "docs", "build/docs")
    session.run("python", "docs/check_site.py", "build/docs")


@nox.session
def model(session: nox.Session) -> None:
    """Train the embedding table of chalie-model-static anew (minutes; only for a new version of it)."""
    folder = ROOT / "plugins" / "chalie-model-static" / "train"
    session.install("-r", str(folder / "requirements.txt"))
    session.run("python", str(folder / "train.py"), *session.posargs)
