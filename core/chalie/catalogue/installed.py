"""What is installed: distributions found on the import path one by one; a bad one costs only itself."""

from __future__ import annotations

import hashlib
import json
import os
import re
import urllib.parse
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from ..config import normal_dist
from ..names import OWN_DIST
from . import files, footprint
from .descriptor import EntryPoint, Problem
from .footprint import Footprint
from .interfaces import GROUPS, foreign, unspoken
from .tables import Watched

__all__ = ["GROUPS", "Distribution", "Scan", "listing", "read", "scan", "unusable"]

#: the host's own distribution: its entry points never count
_MENTION: Final = b"chalie."
_MENTION_UTF_16: Final = "chalie.".encode("utf-16-le")
#: what follows the name in a metadata folder's name: the version, and of an egg the Python it is for
_VERSION: Final = re.compile(r"-\d[^-]*$")
_PYTHON_TAG: Final = re.compile(r"-py\d[\d.]*(?:-.*)?\.egg-info$")
#: a metadata folder an installer has renamed out of the way: pip puts `~` for the first letter
_LEFTOVER: Final = re.compile(r"~.*\.(?:dist|egg)-info$", re.DOTALL)
#: what a distribution may be called (PEP 508, "Names"); anything else would also be no part of a command line
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


@frozen
class Distribution:
    """A distribution that has entry points of ours.

    Attributes:
        name: normalised name (PEP 503).
        version: as its metadata says.
        path: its metadata folder.
        editable: whether its code lies in a working tree.
        entry_points: its lines in our groups, in file order; those for interfaces of other hosts too.
        folders: where an editable's code may be.
    """

    name: str
    version: str
    path: Path
    editable: bool
    entry_points: tuple[EntryPoint, ...]
    folders: tuple[str, ...] = ()

    def modules(self) -> tuple[str, ...]:
        """Return the modules its entry points name."""
        return tuple(dict.fromkeys(module_of(point.value) for point in self.entry_points))

    def footprint(self) -> Footprint:
        """Look at its files, with stats."""
        return footprint.take(self.path, self.modules(), editable=self.editable, folders=self.folders)


@frozen
class Scan:
    """One look at the import path.

    Attributes:
        distributions: ours, by name; one per name.
        problems: what could not be read, and what stands twice or half.
        leaving: normalised name -> leftover metadata folder, where an installer has taken the old version
            away and not yet put the new one.
        broken: normalised name -> metadata folder that cannot be read.
        watched: the entries of the import path.
    """

    distributions: tuple[Distribution, ...]
    problems: tuple[Problem, ...]
    leaving: dict[str, Path]
    broken: dict[str, Path]
    watched: tuple[Watched, ...]


def module_of(value: str) -> str:
    """Return the module of an entry point's value (`module:attr [extra]`)."""
    return value.partition("[")[0].partition(":")[0].strip()


def scan(paths: Sequence[str], disabled: Collection[str] = ()) -> Scan:
    """Find the distributions of ours on the import path.

    Args:
        paths: entries of the import path, in order; the first of two distributions of one name counts.
        disabled: normalised names that are not read at all.
    """
    found: dict[str, list[Distribution]] = {}
    problems: list[Problem] = []
    left: list[tuple[Path, str]] = []
    beside: set[str] = set()
    broken: dict[str, Path] = {}
    entries: list[Watched] = []
    seen: set[str] = set()
    for path in paths:
        real = os.path.realpath(path)
        if real in seen or not os.path.isdir(real):  # noqa: PTH112
            continue
        seen.add(real)
        try:
            names = _metadata_folders(real)
        except OSError as error:
            problems.append(_unlisted(real, error))
            names = []
        entries.append(footprint.watched(real, "path", listing(real)))
        for name in names:
            info = Path(real, name)
            if _LEFTOVER.match(name):
                left.append((info, _name_of_leftover(info)))
                continue
            dist = normal_dist(_stem(name))
            if dist in disabled or dist == OWN_DIST:
                beside.add(dist)
                continue
            result = _looked_at(info, dist)
            if isinstance(result, Problem):
                problems.append(result)
                if dist:
                    broken.setdefault(dist, info)
                continue
            beside.add(dist)
            if result is not None and result.name not in disabled and result.name != OWN_DIST:
                found.setdefault(result.name, []).append(result)
    chosen = []
    for name, candidates in sorted(found.items()):
        first, trouble = _choose(name, candidates)
        chosen.append(first)
        problems.extend(trouble)
        problems.extend(unspoken(name, first.entry_points))
    leaving = {}
    for info, name in left:
        if name and name not in beside and name not in disabled:
            leaving[name] = info
        else:
            problems.append(leftover(info, name))
    broken = {name: info for name, info in broken.items() if name not in found}
    return Scan(tuple(chosen), tuple(problems), leaving, broken, tuple(entries))


def read(info: Path) -> Distribution | Problem | None:
    """Read one distribution from its metadata folder; None where it has no entry points of ours."""
    return _looked_at(info, normal_dist(_stem(info.name)))


def listing(folder: str) -> str:
    """Return a digest of the metadata folders and `.pth` files of a folder, and of when they were written.

    Files that come and go beside them (compiled modules) leave it as it is.
    """
    lines = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith((".dist-info", ".egg-info", ".pth", ".egg-link")):
                    lines.append(f"{entry.name} {_written(entry)}")
    except OSError:
        return ""
    return hashlib.sha256("\n".join(sorted(lines)).encode("utf-8", "surrogatepass")).hexdigest()


def _written(entry: os.DirEntry[str]) -> str:
    """Return which file an entry is and when it was written; of a link that leads nowhere, the link's."""
    for follow in (True, False):
        try:
            stat = entry.stat(follow_symlinks=follow)
        except OSError:
            continue
        return f"{stat.st_ino} {stat.st_mtime_ns}"
    return "unknown"


def _metadata_folders(folder: str) -> list[str]:
    """Return the names of the metadata folders in a folder, and of links that nobody can follow."""
    with os.scandir(folder) as entries:
        return sorted(e.name for e in entries if e.name.endswith((".dist-info", ".egg-info")) and _is_dir(e))


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir() or (entry.is_symlink() and not os.path.exists(entry.path))  # noqa: PTH110
    except OSError:
        return True  # a link to itself: reading it says so


def _stem(folder_name: str) -> str:
    """Return the name part of `name-version.dist-info` (an egg-info may leave out the version).

    It is a guess, which the metadata inside overrules: some tools leave the hyphens in a name, so the version
    is what follows the last one before a digit. Empty for what names nothing.
    """
    stem = _VERSION.sub("", _PYTHON_TAG.sub(".egg-info", folder_name).rpartition(".")[0])
    return stem if _NAME.fullmatch(stem) else ""


def _looked_at(info: Path, dist: str) -> Distribution | Problem | None:
    """Read a metadata folder whatever state it is in; what is wrong with it becomes a `Problem`."""
    try:
        return _read(info, dist)
    except Exception as error:
        # importlib-metadata raises many kinds for damaged metadata; each must cost this folder only.
        return _unreadable(info, dist, f"its metadata cannot be read ({type(error).__name__}: {error})")


def _read(info: Path, dist: str) -> Distribution | Problem | None:
    try:
        points = files.read_bytes(info / "entry_points.txt")
    except FileNotFoundError:
        if dist and ((info / "METADATA").exists() or (info / "PKG-INFO").exists()):
            return None
        if not info.exists():
            if info.is_symlink():
                return _unreadable(info, dist, "it is a link that leads nowhere")
            return None  # gone since the folder was listed
        return _unreadable(info, dist, "the folder has no METADATA, as an interrupted uninstall leaves it")
    if _MENTION_UTF_16 in points:
        raise ValueError("entry_points.txt is UTF-16, which no installer writes; it is to be UTF-8")
    if _MENTION not in points:
        return None
    name, version = files.facts_of(info)
    if not name or not version:
        return _unreadable(info, dist, "its METADATA has no Name or no Version")
    if not _NAME.fullmatch(name):
        return _unreadable(info, dist, f"its METADATA has the Name {name[:80]!r}, which is none")
    dist = normal_dist(name)
    lines = _entry_points(dist, points.decode("utf-8-sig"))
    if not lines:
        return None
    url = _direct_url(info)
    editable = bool(url.get("dir_info", {}).get("editable")) or info.name.endswith(".egg-info")
    return Distribution(dist, version, info, editable, lines, _folders(info, url) if editable else ())


def _direct_url(info: Path) -> dict[str, Any]:
    try:
        url = json.loads(files.read_bytes(info / "direct_url.json"))
    except FileNotFoundError:
        return {}
    if not isinstance(url, dict) or not isinstance(url.get("dir_info", {}), dict):
        raise ValueError("direct_url.json does not hold what it should")
    return url


def _entry_points(dist: str, text: str) -> tuple[EntryPoint, ...]:
    """Return the lines in our groups, in any version. Other groups' are not looked at: not ours to judge."""
    import importlib_metadata

    points: list[EntryPoint] = []
    group = ""
    for number, line in enumerate(map(str.strip, text.splitlines()), start=1):
        if not line or line.startswith(("#", ";")):
            continue
        if line.startswith("["):
            group = line.strip("[] ")
            continue
        if group not in GROUPS and not foreign(group):
            continue
        name, equals, value = map(str.strip, line.partition("="))
        point = importlib_metadata.EntryPoint(name=name, group=group, value=value)
        try:
            good = bool(equals and name and point.module)
        except (ValueError, AttributeError, AssertionError):  # importlib-metadata 8 and 9 raise the others
            good = False
        if not good:
            raise ValueError(
                f"line {number} of entry_points.txt is not `name = module:attribute`: {line[:80]!r}"
            )
        entry = EntryPoint(dist, group, name, value)
        if entry not in points:
            points.append(entry)
    return tuple(points)


def _folders(info: Path, url: dict[str, Any]) -> tuple[str, ...]:
    """Return where an editable's code may be: the project folder and its `src`, or beside its egg-info."""
    if info.name.endswith(".egg-info"):
        return (str(info.parent),)
    parts = urllib.parse.urlsplit(url.get("url", ""))
    if parts.scheme != "file":
        return ()
    project = urllib.parse.unquote(parts.path)
    return (f"{project}/src", project)


def _choose(name: str, candidates: list[Distribution]) -> tuple[Distribution, Iterator[Problem]]:
    """Return the distribution that counts, and what to say of the others.

    On different entries of the import path the first one is what Python imports. On one entry both describe
    the same code, so the complete one is right, and of two complete ones the newer.
    """
    same = [one for one in candidates if one.path.parent == candidates[0].path.parent]
    if len(same) > 1:
        from packaging.version import InvalidVersion, Version

        def rank(one: Distribution) -> tuple[bool, Any]:
            try:
                version = Version(one.version)
            except InvalidVersion:
                version = Version("0")
            return (_complete(one), version)

        same.sort(key=rank, reverse=True)
    first = same[0]
    return first, (
        _twice(first, one) for one in candidates if one is not first and one.version != first.version
    )


def _complete(one: Distribution) -> bool:
    try:
        return not one.footprint().missing
    except Exception:  # `changes.compare` says what is wrong with it
        return False


def _twice(first: Distribution, other: Distribution) -> Problem:
    counts, ignored = f"{first.version} in {first.path}", f"{other.version} in {other.path}"
    return Problem(
        dist=first.name,
        entry_point="",
        phase="scan",
        reason=f"installed twice: {counts} counts, {ignored} does not",
        fix=f"remove {other.path}, or reinstall: python -m pip install --force-reinstall {first.name}",
        quarantined=False,
    )


def _name_of_leftover(info: Path) -> str:
    try:
        return normal_dist(files.facts_of(info)[0])
    except (OSError, ValueError):
        return ""


def leftover(info: Path, name: str) -> Problem:
    return Problem(
        dist=name or str(info),
        entry_point="",
        phase="scan",
        reason=f"{info} is what an interrupted install or uninstall left behind",
        fix=f"rm -r {_quoted(info)}",
        quarantined=False,
    )


def _quoted(path: Path) -> str:
    """Return a path as a shell takes it, whatever bytes it has."""
    name = str(path)
    if name.isprintable() and "'" not in name:
        return f"'{name}'"
    # ANSI-C quoting (POSIX.1-2024, 2.2.4): the one form that names bytes which are no text
    plain = (chr(b) if 32 <= b < 127 and b not in b"\\'" else f"\\x{b:02x}" for b in os.fsencode(path))
    return f"$'{''.join(plain)}'"


def unusable(one: Distribution, error: Exception) -> Problem:
    """Return what to report of a distribution whose files made a step fail in a way nobody foresaw."""
    said = " ".join(str(error).split())[:300]
    return _unreadable(one.path, one.name, f"its files cannot be read ({type(error).__name__}: {said})")


def _unlisted(folder: str, error: OSError) -> Problem:
    return Problem(
        dist=folder,
        entry_point="",
        phase="scan",
        reason=f"{folder} is on the import path but cannot be listed: {error.strerror}",
        fix=f"let this user read it: chmod u+rx '{folder}'",
        quarantined=False,
    )


def _unreadable(info: Path, dist: str, why: str) -> Problem:
    fix = f"python -m pip install --force-reinstall {dist}" if dist else f"rm -r {_quoted(info)}"
    reason = f"{info}: {why}"
    return Problem(dist=dist or str(info), entry_point="", phase="metadata", reason=reason, fix=fix)
