"""Import an ability's class, but only from the files that its descriptor was read from."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

from ..errors import ChalieError, DescribeFailed, NotReady
from . import installed
from .descriptor import Descriptor, Problem
from .footprint import Footprint
from .snapshot import Snapshot
from .tables import DistributionRow

if TYPE_CHECKING:
    from ..ability import Ability

__all__ = ["ability_classes", "files_hash", "load"]

#: where a module's own record of the files it was imported from is kept. On the module itself, since it is
#: the module that outlives hosts: two hosts in one process share it, and a fresh process starts without.
_MARK: Final = "__chalie_files_hash__"
_STARTED: Final = time.time()


def ability_classes(value: str) -> list[tuple[str, type[Ability]]]:
    """Import what an entry point names and return (target, class) of its abilities.

    Args:
        value: `module:Class`, or `module` for every ability class defined in that module that is neither
            abstract nor begins with an underscore.

    Raises:
        DescribeFailed: it names no ability. Whatever the package's own code raises goes through.
    """
    from ..ability import Ability

    name = installed.module_of(value)
    attribute = value.partition("[")[0].partition(":")[2].strip()
    found: object = importlib.import_module(name)
    for part in attribute.split(".") if attribute else ():
        found = getattr(found, part)
    if isinstance(found, ModuleType):
        module = f"{name}.{attribute}" if attribute else name
        classes = [
            (f"{module}:{key}", member)
            for key, member in vars(found).items()
            if isinstance(member, type)
            and issubclass(member, Ability)
            and member.__module__ == found.__name__
            and not inspect.isabstract(member)
            and not key.startswith("_")
        ]
        if not classes:
            raise DescribeFailed(
                f"the module {module} defines no ability class (abstract and _private ones do not count)"
            )
        return classes
    if not (isinstance(found, type) and issubclass(found, Ability)):
        raise DescribeFailed(f"{value} is no ability class but {type(found).__name__}")
    if inspect.isabstract(found):
        left = ", ".join(sorted(found.__abstractmethods__))
        raise DescribeFailed(f"{value} lacks {left}")
    return [(f"{name}:{attribute}", found)]


class _Loaded:
    """A class that was loaded before, and what has to be as it was for it to be the one again."""

    __slots__ = ("_module", "_roots", "found")

    def __init__(self, found: type[Ability], imported: list[ModuleType]) -> None:
        self.found = found
        self._module = (found.__module__, sys.modules.get(found.__module__))
        self._roots = [(module.__name__, module) for module in imported]

    def is_there(self, files_hash: str) -> bool:
        """Whether its modules are still imported, and marked as made of these files."""
        name, module = self._module
        if module is None or sys.modules.get(name) is not module:
            return False
        for name, root in self._roots:
            if sys.modules.get(name) is not root or vars(root).get(_MARK) != files_hash:
                return False
        return True


#: (distribution, files hash, target) -> what was loaded; every call of an ability asks for its class.
_LOADED: Final[dict[tuple[str, str, str], _Loaded]] = {}


def load(
    descriptor: Descriptor, snapshot: Snapshot, *, stale: Callable[[str], None] | None = None
) -> type[Ability]:
    """Return an ability's class, importing its module where that has not been done.

    Old code never runs under a new descriptor, nor new code under an old one: before a module is imported the
    files on disk are compared with the catalogue, and afterwards what was imported is.

    Args:
        descriptor: the ability, as the call was admitted with.
        snapshot: the catalogue it comes from.
        stale: told the distribution whose files are not those of the catalogue, so that it is read again.

    Raises:
        NotReady: its files changed, or this process cannot find them; the hint says what to do.
        ChalieError: `quarantined`, where its package is set aside.
        DescribeFailed: the import failed.
    """
    row = _ready(descriptor, snapshot)
    again = _LOADED.get((row.name, row.files_hash, descriptor.target))
    if again is not None and again.is_there(row.files_hash):
        return again.found
    imported = list(_imported(row.roots))
    marks = {vars(module).get(_MARK) for module in imported} - {None}
    if marks and marks != {row.files_hash}:
        raise _restart(row, "changed after this process imported it")
    if marks and descriptor.target.partition(":")[0] in sys.modules:
        found = _class(descriptor, row)
        _LOADED[row.name, row.files_hash, descriptor.target] = _Loaded(found, imported)
        return found
    now = _compared(row, stale)
    if imported and not marks and now.changed > _STARTED:
        # Imported by the program itself, at some time: only if nothing changed since is it this code.
        raise _restart(row, "changed after this program imported it")
    _locate(row)
    found = _class(descriptor, row)
    _mark(row, row.files_hash)
    try:
        _compared(row, stale)
    except NotReady:
        _mark(row, "changed while it was imported")
        raise
    return found


def files_hash(
    descriptor: Descriptor, snapshot: Snapshot, *, stale: Callable[[str], None] | None = None
) -> str:
    """Return the files hash of an ability's package, having compared the files on disk; nothing is imported.

    A worker process runs one state of a package's files: under another hash it is replaced, so that an
    upgrade of an isolated package needs no restart of the host.

    Args:
        descriptor: the ability, as the call was admitted with.
        snapshot: the catalogue it comes from.
        stale: told the distribution whose files are not those of the catalogue, so that it is read again.

    Raises:
        NotReady: its files changed since the descriptor was read.
        ChalieError: `quarantined`, where its package is set aside.
    """
    row = _ready(descriptor, snapshot)
    _compared(row, stale)
    return row.files_hash


def _ready(descriptor: Descriptor, snapshot: Snapshot) -> DistributionRow:
    row = snapshot.distribution(descriptor.dist)
    if row is not None and row.state == "ready":
        return row
    if row is not None and row.state == "quarantined":
        raise ChalieError(
            f"{row.name} is set aside: {row.reason}",
            code="quarantined",
            hint="`chalie doctor` tells how to fix it",
        )
    why = (
        "is not installed any more"
        if row is None or row.state == "missing"
        else f"is not ready: {row.reason}"
    )
    raise NotReady(f"{descriptor.dist} {why}", hint="wait a moment and call it again")


def _imported(roots: Mapping[str, str]) -> Iterator[ModuleType]:
    for root in roots:
        module = sys.modules.get(root)
        if module is not None:
            yield module


def _compared(row: DistributionRow, stale: Callable[[str], None] | None) -> Footprint:
    """Compare a distribution's files on disk with the catalogue: stats first, bytes where they differ."""
    found = installed.read(Path(row.path))
    if isinstance(found, installed.Distribution):
        try:
            now = found.footprint()
            if now.stamp == row.stamp or (
                found.version == row.version and now.files_hash() == row.files_hash
            ):
                return now
            why = "changed since it was read"
        except Exception as error:  # whatever became of its files, they are not those that were read
            why = f"changed since it was read: {installed.unusable(found, error).reason}"
    else:
        why = found.reason if isinstance(found, Problem) else "is not installed any more"
    if stale is not None:
        stale(row.name)
    raise NotReady(f"{row.name} {why}", hint="it is being read again; wait a moment and call it again")


def _locate(row: DistributionRow) -> None:
    """Refuse a distribution whose modules this process would import from elsewhere than they were read."""
    importlib.invalidate_caches()
    for root, path in row.roots.items():
        try:
            spec = importlib.util.find_spec(root)
        except (ImportError, ValueError):
            spec = None
        if spec is None:
            raise _restart(row, "was installed in a place this process does not import from")
        places = list(spec.submodule_search_locations or ()) or [spec.origin or ""]
        if os.path.realpath(path) not in map(os.path.realpath, places):
            raise NotReady(
                f"{row.name} is in {path}, but this process would import {root} from {places[0]}",
                hint=f"rename or remove {places[0]}",
            )


def _class(descriptor: Descriptor, row: DistributionRow) -> type[Ability]:
    from ..ability import Ability

    module, _, name = descriptor.target.partition(":")
    try:
        found: object = sys.modules.get(module) or importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:
        raise DescribeFailed(
            f"{descriptor.target} of {row.name} cannot be imported ({type(error).__name__}: {error})",
            hint=f"chalie doctor; or set it aside: chalie disable {row.name}",
        ) from error
    if not (isinstance(found, type) and issubclass(found, Ability)):
        raise DescribeFailed(f"{descriptor.target} of {row.name} is no ability class", hint="chalie index")
    return found


def _mark(row: DistributionRow, mark: str) -> None:
    for module in _imported(row.roots):
        setattr(module, _MARK, mark)


def _restart(row: DistributionRow, why: str) -> NotReady:
    return NotReady(f"{row.name} {why}", hint="restart this program to use the installed version")
