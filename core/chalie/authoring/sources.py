"""Where lint takes abilities from: what is installed, a project's folder, a catalogue's file."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..calls import SideEffect
from ..catalogue.descriptor import Descriptor, EntryPoint, Problem
from ..catalogue.installed import Distribution, read
from ..config import import_paths, normal_dist
from ..errors import ConfigError, DescribeFailed
from .finding import Subject
from .lint import Package
from .settings import Settings, load

if TYPE_CHECKING:
    from ..catalogue.snapshot import Snapshot

__all__ = ["catalogue_file", "installed", "project"]

_GROUP: Final = "chalie.abilities"
_PROJECT: Final = "pyproject.toml"
#: a file of tools is a catalogue, and no archive.
_LARGEST: Final = 64 * 2**20
#: classes that other catalogues have, as the nearest of ours.
_KIN: Final[Mapping[str, SideEffect]] = {
    "none": SideEffect.COMPUTATION,
    "workspace_write": SideEffect.WRITE,
    "state_change": SideEffect.WRITE,
    "site_publish": SideEffect.EXTERNAL_WRITE,
    "publish": SideEffect.EXTERNAL_WRITE,
}


def installed(snapshot: Snapshot, dists: Iterable[str], settings: Path | None = None) -> list[Package]:
    """Return installed packages, from the catalogue; nothing of them is imported.

    Args:
        snapshot: the catalogue.
        dists: which ones, by normalised name.
        settings: a pyproject.toml to go by; default: that of an editable's project, else none.
    """
    found = []
    for dist in dists:
        row = snapshot.distribution(dist)
        abilities = snapshot.of(dist)
        if row is None or not abilities:
            continue
        folder = _editable(Path(row.path)) if row.editable else None
        file = settings or (folder / _PROJECT if folder else None)
        given = load(file) if file else Settings()
        found.append(Package(dist, tuple(Subject(item) for item in abilities), given, folder))
    return found


def _editable(info: Path) -> Path | None:
    """Return the project folder of an editable distribution."""
    one = read(info)
    if not isinstance(one, Distribution):
        return None
    return next((Path(each) for each in reversed(one.folders) if Path(each, _PROJECT).is_file()), None)


def project(folder: Path, *, limit_s: float, settings: Path | None = None) -> Package:
    """Return the package of a project's folder, described in a process of its own.

    Args:
        folder: it has a pyproject.toml.
        limit_s: seconds that describing may take.
        settings: another pyproject.toml to go by.

    Raises:
        ConfigError: the folder is no project that brings a host anything.
        DescribeFailed: its abilities could not be read.
    """
    from ..catalogue.describe import describe

    one = _distribution(folder)
    if not one.entry_points:
        return Package(one.name, (), load(settings or folder / _PROJECT), folder)
    for outcome in describe([one], limit_s=limit_s, paths=import_paths(), folders={one.name: one.folders}):
        if isinstance(outcome, Problem):
            raise DescribeFailed(f"{one.name}: {outcome.reason}", hint=outcome.fix)
        if outcome is not None:
            subjects = tuple(Subject(item) for item in outcome.abilities)
            return Package(one.name, subjects, load(settings or folder / _PROJECT), folder)
    raise DescribeFailed(f"{one.name} could not be described")


def _distribution(folder: Path) -> Distribution:
    path = folder / _PROJECT
    try:
        data = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(
            f"{folder} has no {_PROJECT}, so it is no project", hint="name the project's folder"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    about = data.get("project")
    name = about.get("name") if isinstance(about, Mapping) else None
    if not isinstance(about, Mapping) or not isinstance(name, str):
        raise ConfigError(f"{path} has no [project] with a name")
    points = about.get("entry-points")
    lines = points.get(_GROUP) if isinstance(points, Mapping) else None
    others = isinstance(points, Mapping) and any(str(group).startswith("chalie.") for group in points)
    if not isinstance(lines, Mapping) or not lines:
        if not others:
            raise ConfigError(
                f"{path} brings no abilities: it has no entry point in {_GROUP}",
                hint=f'write [project.entry-points."{_GROUP}"]',
            )
        lines = {}  # policies or playbooks alone: there is nothing here for lint to look at
    dist = normal_dist(name)
    entries = tuple(EntryPoint(dist, _GROUP, str(key), str(value)) for key, value in lines.items())
    version = about.get("version")
    real = folder.resolve()
    folders = (str(real / "src"), str(real))
    return Distribution(dist, version if isinstance(version, str) else "0", path, True, entries, folders)


def catalogue_file(path: Path, settings: Path | None = None) -> Package:
    """Return the tools of a catalogue's file: what `chalie catalogue build` writes, or a list of tools.

    A file of the second kind is a JSON object with `tools` (or `abilities`), each with a name, a summary or
    description, and optionally namespace, examples, parameters (a JSON Schema, or names), actions, and a
    class (`side_effect` or `sideEffectClass`). What it does not tell is not judged.

    Raises:
        ConfigError: it is neither, naming the tool that is wrong.
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise ConfigError(f"{path} is larger than {_LARGEST >> 20} MiB, so it is no catalogue")
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} cannot be read as JSON: {error}") from error
    tools = data.get("abilities", data.get("tools")) if isinstance(data, Mapping) else None
    if not isinstance(tools, list) or not tools:
        raise ConfigError(f"{path} has no list `tools` or `abilities`, or an empty one")
    subjects = tuple(_subject(path, number, tool) for number, tool in enumerate(tools))
    return Package("", subjects, load(settings) if settings else Settings())


def _subject(path: Path, number: int, tool: object) -> Subject:
    if not isinstance(tool, Mapping) or not isinstance(tool.get("name"), str) or not tool["name"]:
        raise ConfigError(f"{path}: tools[{number}] has no name")
    name, whose = tool["name"], f"{path}: tools[{number}] ({tool['name']})"
    summary = tool.get("summary") or tool.get("description")
    if not isinstance(summary, str):
        raise ConfigError(f"{whose} has no summary, a text")
    parameters, typed = _parameters(whose, tool.get("parameters") or {})
    actions, effect = _classes(whose, tool)
    namespace = tool.get("namespace") or name.partition("_")[0]
    tooltip = tool.get("search_tooltip") or tool.get("searchTooltip") or ""
    descriptor = Descriptor(
        dist=str(tool.get("package") or tool.get("dist") or ""),
        dist_version=str(tool.get("package_version") or ""),
        target="",
        name=name,
        summary=summary,
        examples=_texts(whose, "examples", tool.get("examples") or ()),
        search_tooltip=str(tooltip),
        parameters=parameters,
        namespace=str(namespace),
        version=str(tool.get("version") or ""),
        discoverable=tool.get("discoverable") is not False,
        actions=actions,
        side_effect=effect or SideEffect.WRITE,
    )
    return Subject(descriptor, typed=typed, classed=effect is not None or bool(actions))


def _parameters(whose: str, given: Any) -> tuple[Mapping[str, Any], bool]:
    """Return the schema, and whether it tells the types."""
    if isinstance(given, Mapping):
        return given, True
    if not isinstance(given, list):
        raise ConfigError(f"{whose}: parameters is neither a JSON Schema nor a list of parameters")
    properties = {}
    for parameter in given:
        known = parameter if isinstance(parameter, Mapping) else {"name": parameter}
        properties[str(known.get("name", ""))] = {"description": str(known.get("description") or "")}
    return {"type": "object", "properties": properties}, False


def _classes(whose: str, tool: Mapping[str, Any]) -> tuple[dict[str, SideEffect], SideEffect | None]:
    given = tool.get("actions") or {}
    actions = {}
    if isinstance(given, Mapping):
        actions = {str(action): _effect(whose, effect) for action, effect in given.items()}
    elif not isinstance(given, list):
        raise ConfigError(f"{whose}: actions is neither a table nor a list")
    effect = tool.get("side_effect", tool.get("sideEffectClass"))
    return actions, None if effect is None else _effect(whose, effect)


def _effect(whose: str, given: object) -> SideEffect:
    if isinstance(given, str) and given in _KIN:
        return _KIN[given]
    try:
        return SideEffect(given)  # type: ignore[arg-type]
    except ValueError:
        known = ", ".join(effect.value for effect in SideEffect)
        raise ConfigError(f"{whose} has the class {given!r}; it may be {known}") from None


def _texts(whose: str, fact: str, given: Any) -> tuple[str, ...]:
    if (
        not isinstance(given, Sequence)
        or isinstance(given, str)
        or not all(isinstance(x, str) for x in given)
    ):
        raise ConfigError(f"{whose}: {fact} is no list of texts")
    return tuple(given)
