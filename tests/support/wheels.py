"""The checkout's own wheels, built once per test run, and environments made from them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from filelock import FileLock

ROOT = Path(__file__).resolve().parents[2]


def projects() -> list[Path]:
    """Return the folders of the checkout that build a wheel: the host, each plugin, the skills."""
    return [
        ROOT,
        *sorted(path.parent for path in (ROOT / "plugins").glob("*/pyproject.toml")),
        *(path.parent for path in [ROOT / "skills" / "pyproject.toml"] if path.exists()),
    ]


def built_once(shared: Path) -> Path:
    """Return a folder with every wheel of the checkout; the first of several test processes builds it."""
    folder = shared / "wheels"
    with FileLock(shared / "wheels.lock"):
        done = folder / ".complete"
        if not done.exists():
            for project in projects():
                build(project, folder)
            done.touch()
    return folder


def build(project: Path, folder: Path) -> None:
    """Build one project's wheel with the build backend of this environment (no network)."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--skip-dependency-check"]
    checked([*command, "--outdir", str(folder), str(project)])


def wheel(folder: Path, dist: str) -> Path:
    """Return the one wheel of a distribution in a folder."""
    found = sorted(folder.glob(f"{dist.replace('-', '_')}-*.whl"))
    assert len(found) == 1, f"expected one wheel of {dist} in {folder}, found {[path.name for path in found]}"
    return found[0]


def install(target: Path, *wheels: Path) -> None:
    """Install wheels into an import folder without their dependencies (this environment has those)."""
    checked([*_uv("pip", "install"), "--no-deps", "--quiet", "--target", str(target), *map(str, wheels)])


def environment(folder: Path, *requirements: str, find_links: Path, pip: bool = False) -> Path:
    """Make a whole virtual environment and return its interpreter; a test run makes at most three.

    Args:
        requirements: what to install, the checkout's own wheels among them.
        find_links: the folder that holds those wheels.
        pip: whether the environment gets pip (made by `venv`) or none (made by uv).
    """
    if pip:
        checked([sys.executable, "-m", "venv", str(folder)])
    else:
        checked([*_uv("venv"), "--quiet", "--python", sys.executable, str(folder)])
    python = folder / "bin" / "python"
    options = ["--quiet", "--python", str(python), "--find-links", str(find_links)]
    checked([*_uv("pip", "install"), *options, *requirements])
    return python


def clean_environment(home: Path, **more: str) -> dict[str, str]:
    """Return an environment for a child process: this one's without Chalie's and Python's own variables."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("CHALIE_", "PYTHON"))}
    kept.pop("VIRTUAL_ENV", None)
    ours = {"CHALIE_HOME": str(home), "HOME": str(home.parent), "NO_COLOR": "1", "COLUMNS": "110"}
    return kept | ours | more


def checked(
    command: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end and fail with its whole output unless it exits 0."""
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=cwd, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\nexit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def _uv(*words: str) -> list[str]:
    return [sys.executable, "-m", "uv", *words]
