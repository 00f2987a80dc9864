"""The package under test: what is installed of it, or its project folder where it is not installed."""

from __future__ import annotations

import json
import re
import sys
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from attrs import field, frozen

from ..catalogue.installed import Distribution, scan
from ..config import import_paths, normal_dist
from ..errors import ChalieError

__all__ = ["Project", "project_above", "site_of", "subject"]

_FILE: Final = "pyproject.toml"
#: seconds that written metadata looks old, so that it counts as settled at once
_AGE_S: Final = 3600.0


@frozen
class Project:
    """A project folder with entry points of ours.

    Attributes:
        folder: where its `pyproject.toml` is.
        dist: its normalised name.
        version: as the file says; `0` where it is dynamic.
        entry_points: group -> name -> value.
        sources: the folders its code is imported from.
    """

    folder: Path
    dist: str
    version: str
    entry_points: Mapping[str, Mapping[str, str]] = field(hash=False)
    sources: tuple[Path, ...]


def project_above(path: Path) -> Project | None:
    """Return the project that a file belongs to: the nearest `pyproject.toml` above that names entry points.

    Returns:
        None where the nearest one brings nothing for Chalie, or cannot be read.
    """
    for folder in path.absolute().parents:
        if (folder / _FILE).is_file():
            return _read(folder)
    return None


def _read(folder: Path) -> Project | None:
    try:
        whole = tomllib.loads((folder / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    project = whole.get("project")
    if not isinstance(project, dict):
        return None
    points, name = project.get("entry-points"), project.get("name")
    if not isinstance(name, str) or not isinstance(points, dict):
        return None
    ours = {group: lines for group, lines in points.items() if group.startswith("chalie.")}
    if not ours:
        return None
    return Project(folder, normal_dist(name), str(project.get("version", "0")), ours, _sources(folder, whole))


def _sources(folder: Path, whole: Mapping[str, Any]) -> tuple[Path, ...]:
    """Return where the code is: the folders above what the wheel packs, else `src`, else the project."""
    found: Any = whole
    for key in ("tool", "hatch", "build", "targets", "wheel", "packages"):
        found = found.get(key) if isinstance(found, dict) else None
    if isinstance(found, list) and found:
        return tuple(dict.fromkeys((folder / str(package)).parent for package in found))
    return (folder / "src",) if (folder / "src").is_dir() else (folder,)


def site_of(project: Project, folder: Path) -> tuple[str, ...]:
    """Write what an editable install of a project would, into a folder; return the import path to add.

    Nothing is built: the project's file says all there is to know.
    """
    import os

    dist = re.sub(r"[-_.]+", "_", project.dist)
    info = folder / f"{dist}-{project.version}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    points = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in lines.items()) + "\n"
        for group, lines in project.entry_points.items()
    )
    link = {"url": project.folder.resolve().as_uri(), "dir_info": {"editable": True}}
    written = {
        info / "METADATA": f"Metadata-Version: 2.1\nName: {project.dist}\nVersion: {project.version}\n",
        info / "entry_points.txt": points,
        info / "direct_url.json": json.dumps(link),
        folder / f"_{dist}.pth": "".join(f"{source}\n" for source in project.sources),
    }
    rows = [f"{path.relative_to(folder)},,{len(text.encode())}" for path, text in written.items()]
    written[info / "RECORD"] = "\n".join([*rows, f"{info.name}/RECORD,,"]) + "\n"
    then = time.time() - _AGE_S
    for path, text in written.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            os.utime(path, (then, then))
    os.utime(info, (then, then))
    return (str(folder), *map(str, project.sources))


def subject(dist: str) -> Distribution:
    """Return an installed distribution of ours.

    Raises:
        ChalieError: `unknown-package`: it is not installed here, or brings nothing for Chalie.
    """
    name = normal_dist(dist)
    for found in scan(import_paths()).distributions:
        if found.name == name:
            return found
    raise ChalieError(
        f"{name} is not installed in {sys.prefix}, and no project of that name stands above its tests",
        code="unknown-package",
        hint="python -m pip install --editable .",
    )
