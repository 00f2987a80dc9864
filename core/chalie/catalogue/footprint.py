"""The files of a distribution: which they are, whether they are all there, and what they hash to."""

from __future__ import annotations

import csv
import hashlib
import importlib.machinery
import importlib.util
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from attrs import field, frozen

from . import files
from .tables import Watched

__all__ = ["Footprint", "locate", "take"]

#: seconds of quiet after the last change before a distribution with a RECORD counts as installed
QUIET_S: Final = 2.0
#: the same without a RECORD, where nothing tells whether files are still to come
QUIET_UNRECORDED_S: Final = 10.0
#: files of one unsettled distribution that are looked at each turn
_WATCH_LIMIT: Final = 100
_NEVER: Final = -1
#: digits of the greatest size a file can have (2^63 - 1)
_LONGEST_SIZE: Final = 19


@frozen
class Footprint:
    """What a distribution looks like on disk at one moment.

    Attributes:
        stamp: digest over path, inode, times and size of every file; equal stamps mean nothing was written.
        roots: top-level import name -> the file or folder it is imported from.
        missing: the first file its RECORD names that is absent or of another size; empty when complete.
        changed: when the newest change was made, in seconds since the epoch.
        recorded: whether it has a RECORD.
        files: (label, path) of what the files hash covers, by label.
        watch: the paths to look at each turn: of an editable its defining modules and metadata.
    """

    stamp: str
    roots: dict[str, str] = field(hash=False)
    missing: str
    changed: float
    recorded: bool
    files: tuple[tuple[str, str], ...] = field(repr=False)
    watch: tuple[str, ...] = field(repr=False)

    def settles(self, now: float, quiet_s: float = QUIET_S) -> float | None:
        """Return when it may be read: 0.0 for now, a time, or None while a file is missing.

        Args:
            now: seconds since the epoch.
            quiet_s: seconds without a change that a distribution with a RECORD must show.
        """
        quiet = quiet_s if self.recorded or not quiet_s else max(quiet_s, QUIET_UNRECORDED_S)
        due = self.changed + quiet
        # A time in the future is a clock that was wrong; waiting for it could last for ever.
        if now < due and self.changed <= now + 1.0:
            return due
        return None if self.missing else 0.0

    def files_hash(self) -> str:
        """Return the SHA-256 (hex) over labels and bytes of its files; a missing file counts as absent."""
        digest = hashlib.sha256()
        for label, path in self.files:
            try:
                content = files.hashed(Path(path))
            except OSError:
                content = b"absent"
            digest.update(label.encode("utf-8", "surrogatepass") + b"\0" + content)
        return digest.hexdigest()

    def watched(self, unsettled: bool) -> tuple[Watched, ...]:
        """Return what to look at each turn: of an unsettled distribution everything, within a bound."""
        paths: Iterable[str] = self.watch
        if unsettled:
            paths = [*self.watch, *(path for _, path in self.files)][:_WATCH_LIMIT]
            if self.missing:
                paths = [*paths, self.missing]
        return tuple(watched(path, "unsettled" if unsettled else "editable") for path in dict.fromkeys(paths))


def watched(path: str, kind: str, listing: str = "") -> Watched:
    """Return what a stat says of a path now."""
    try:
        found = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return Watched(path, _NEVER, _NEVER, _NEVER, kind, listing)  # type: ignore[arg-type]
    return Watched(path, found.st_ino, found.st_mtime_ns, found.st_size, kind, listing)  # type: ignore[arg-type]


def take(info: Path, modules: Sequence[str], *, editable: bool, folders: Sequence[str] = ()) -> Footprint:
    """Look at a distribution's files with stats alone; only RECORD and `.pth` files are read.

    Args:
        info: its metadata folder.
        modules: the modules its entry points in our groups name.
        editable: whether its code lies in a working tree.
        folders: where an editable's code may be, besides what its `.pth` files say.
    """
    site = str(info.parent)
    rows, recorded = _record(info)
    look = _Look()
    missing = ""
    prefix = info.name + "/"
    covered: list[tuple[str, str]] = []
    for relative, size in rows:
        path = relative if relative.startswith("/") else f"{site}/{relative}"
        found = look.at(path)
        if found is None or (size is not None and found != size):
            missing = missing or path
        if not relative.startswith(prefix) or relative == prefix + "entry_points.txt":
            covered.append((relative, path))
    # ctime too: uv links files in from its cache with their old times.
    for name in ("", "RECORD", "METADATA", "PKG-INFO", "entry_points.txt", "direct_url.json"):
        look.at(
            f"{info}/{name}" if name else str(info),
            stamp=bool(name),
            changed_by_status=name in ("", "RECORD"),
        )
    places = [*_pth_folders(covered), *folders] if editable else [site]
    roots: dict[str, str] = {}
    watch: list[str] = []
    for module in modules:
        place = locate(module, places) or (_by_finder(module) if editable else None)
        if place is None:
            continue
        roots[place[0]] = place[1]
        if editable:
            watch.extend(_defining(module, *place))
    if editable or not recorded:
        entry_points = f"{info}/entry_points.txt"
        covered = [
            *(row for row in covered if row[1] != entry_points),
            (prefix + "entry_points.txt", entry_points),
        ]
        for path, label in _tree(roots.values()):
            look.at(path)
            covered.append((label, path))
    if editable:
        watch.extend(f"{info}/{name}" for name in ("METADATA", "entry_points.txt", "RECORD"))
        watch.extend(path for _, path in covered if path.endswith((".pth", "SKILL.md")))
    return Footprint(
        stamp=look.stamp(),
        roots=roots,
        missing=missing,
        changed=look.changed,
        recorded=recorded,
        files=tuple(sorted(dict(covered).items())),
        watch=tuple(dict.fromkeys(watch)),
    )


class _Look:
    """Stats, and the digest of what they said."""

    def __init__(self) -> None:
        self.changed = 0.0
        self._lines: dict[str, str] = {}

    def at(self, path: str, *, stamp: bool = True, changed_by_status: bool = False) -> int | None:
        """Stat a path; return its size, None where it is absent."""
        try:
            found = os.stat(path)  # noqa: PTH116
        except (OSError, ValueError):
            self._lines[path] = "absent"
            return None
        self.changed = max(self.changed, found.st_mtime, found.st_ctime if changed_by_status else 0.0)
        if stamp:
            # The status time too: an edit can put size and modification time back, but not that. It also
            # changes where nothing was written (another link to the file); then the bytes are compared.
            times = f"{found.st_mtime_ns} {found.st_ctime_ns}"
            self._lines[path] = f"{found.st_ino} {times} {found.st_size}"
        return found.st_size

    def stamp(self) -> str:
        text = "\n".join(f"{path} {line}" for path, line in sorted(self._lines.items()))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _record(info: Path) -> tuple[list[tuple[str, int | None]], bool]:
    """Return (path, size) of RECORD's lines, without compiled files, and whether there is a RECORD."""
    try:
        text = files.read_text(info / "RECORD", "surrogateescape")
    except OSError:
        return [], False
    rows: list[tuple[str, int | None]] = []
    try:
        for line in csv.reader(text.splitlines()):
            # Compiled files come and go with every interpreter; RECORD itself carries no size.
            if not line or not line[0] or "\0" in line[0] or line[0].endswith((".pyc", ".dist-info/RECORD")):
                continue
            rows.append((line[0], _size(line[2] if len(line) > 2 else "")))
    except csv.Error:
        return [], False
    return rows, bool(rows)


def _size(text: str) -> int | None:
    """Return a size that RECORD gives; of one that no file can have a number that none has."""
    if not text.isdecimal():
        return None
    return int(text) if len(text) <= _LONGEST_SIZE else _NEVER


def locate(module: str, folders: Sequence[str]) -> tuple[str, str] | None:
    """Find what a module is imported from, without importing: the outermost package that is no namespace.

    Args:
        module: dotted name.
        folders: where to look, in order.

    Returns:
        (import name, file or folder), or None.
    """
    name = ""
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        below: list[str] = []
        for folder in folders:
            base = f"{folder}/{part}"
            if os.path.isfile(f"{base}/__init__.py"):  # noqa: PTH113
                return name, base
            for suffix in importlib.machinery.all_suffixes():
                if os.path.isfile(base + suffix):  # noqa: PTH113
                    return name, base + suffix
            if os.path.isdir(base):  # noqa: PTH112
                below.append(base)
        folders = below
    return (name, folders[0]) if folders else None


def _by_finder(module: str) -> tuple[str, str] | None:
    """Ask this process's import machinery for an editable that has a finder instead of a path line.

    Looking for a top-level name imports nothing of it.
    """
    top = module.partition(".")[0]
    try:
        spec = importlib.util.find_spec(top)
    except Exception:
        return None
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return top, next(iter(spec.submodule_search_locations))
    return (top, spec.origin) if spec.origin else None


def _defining(module: str, root_name: str, root: str) -> Iterator[str]:
    """Yield the files that define a module: its own, and each package's above it up to the root."""
    if not os.path.isdir(root):  # noqa: PTH112
        yield root
        return
    yield f"{root}/__init__.py"
    base = root
    for part in module[len(root_name) :].strip(".").split("."):
        if not part:
            return
        base = f"{base}/{part}"
        yield f"{base}/__init__.py" if os.path.isdir(base) else f"{base}.py"  # noqa: PTH112


def _pth_folders(rows: Iterable[tuple[str, str]]) -> list[str]:
    folders = []
    for _, path in rows:
        if path.endswith(".pth"):
            try:
                lines = files.read_text(Path(path), "replace").splitlines()
            except (OSError, ValueError):
                continue
            folders += [line.strip() for line in lines if line.strip().startswith("/")]
    return folders


def _tree(roots: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield (path, label) of the Python and playbook files under each root."""
    for root in roots:
        above = os.path.dirname(root)  # noqa: PTH120
        if not os.path.isdir(root):  # noqa: PTH112
            yield root, root[len(above) + 1 :]
            continue
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(f for f in folders if f != "__pycache__" and not f.startswith("."))
            for name in sorted(names):
                if name.endswith((".py", ".md")):
                    path = f"{folder}/{name}"
                    yield path, path[len(above) + 1 :]
