"""The place a package is held to the contract in: its host, and the processes that call and import it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import define, field, frozen

from ..catalogue.installed import Distribution, module_of
from ..config import import_paths
from .calling import TIME_LIMIT_S
from .homes import catalogued, open_host

if TYPE_CHECKING:
    from ..catalogue.descriptor import Descriptor
    from ..host import Host

__all__ = ["IMPORT_LIMIT_S", "Bench", "Called", "Fault"]

#: seconds of processor time that the import of a package may take.
IMPORT_LIMIT_S: Final = 0.1
#: imports that are timed before one is taken for slow: the quickest counts.
_TIMED: Final = 3
#: seconds that a process may be silent: longer than any call may take.
_SILENCE_S: Final = 60.0


@frozen
class Fault:
    """A place where a package does not keep the contract.

    Attributes:
        where: the ability, hook, playbook or module.
        what: what is wrong.
        fix: what its author changes.
    """

    where: str
    what: str
    fix: str

    def __str__(self) -> str:
        return f"  - {self.where}: {self.what}\n    fix: {self.fix}"


@frozen
class Called:
    """One call of the contract and how it ended.

    Attributes:
        ability: its name.
        kind, label: as in `arguments.Attempt`.
        status: `success`, `error`, `broken` (no envelope) or `died` (the process ended with it).
        code: the error's code, or None.
        detail: what the trail says of it.
        seconds: how long it took.
    """

    ability: str
    kind: str
    label: str
    status: str
    code: str | None
    detail: str
    seconds: float = 0.0


@define
class Bench:
    """One package and what was found out about it.

    Attributes:
        distribution: the package.
        cache: a folder that the tests of one run share.
        limit_s: seconds that one call may take before it counts as one that hangs.
    """

    distribution: Distribution
    cache: Path
    limit_s: float = TIME_LIMIT_S
    _called: list[Called] | None = field(default=None, init=False)

    @property
    def dist(self) -> str:
        """Its normalised name."""
        return self.distribution.name

    @contextmanager
    def host(self, *, enabled: bool = False) -> Iterator[Host]:
        """Open a host on a fresh home, with the package's policies and plugins enabled or not."""
        with tempfile.TemporaryDirectory(prefix="chalie-contract-", ignore_cleanup_errors=True) as folder:
            home = Path(folder, "home")
            with open_host(home, self.cache, enabled=self.dist if enabled else None) as host:
                yield host

    def abilities(self, host: Host) -> list[Descriptor]:
        """Return its abilities; none where it could not be read."""
        if host.snapshot.state(self.dist) != "ready":
            return []
        return list(host.snapshot.of(self.dist))

    def modules(self) -> list[str]:
        """Return the modules whose import runs code of the package: those of everything but playbooks."""
        values = [point.value for point in self.distribution.entry_points if point.group not in _DATA]
        return list(dict.fromkeys(map(module_of, values)))

    def called(self) -> list[Called]:
        """Return the calls of the contract with their ends; they are made once."""
        if self._called is None:
            self._called = list(self._calls())
        return self._called

    def _calls(self) -> Iterator[Called]:
        known = catalogued(self.cache)
        with tempfile.TemporaryDirectory(prefix="chalie-contract-", ignore_cleanup_errors=True) as folder:
            # deep, so that a path which leads out of it still ends within
            work = Path(folder, "a", "b", "c")
            work.mkdir(parents=True)
            home = Path(folder, "home")
            home.mkdir(mode=0o700)
            home.joinpath("generations").symlink_to(known / "generations")
            task = {"dist": self.dist, "home": str(home), "limit_s": self.limit_s, "paths": _paths()}
            yield from self._conversation(task, home, work)

    def _conversation(self, task: Mapping[str, Any], home: Path, work: Path) -> Iterator[Called]:
        at: dict[str, Any] | None = None
        with tempfile.TemporaryFile() as complaints:
            process = _started("calling", task, work, home, complaints)
            assert process.stdout is not None
            try:
                for line in _lines(process):
                    if "done" in line:
                        return
                    if "ability" in line:
                        at = line
                    elif at is not None:
                        yield Called(**at, **line)
                        at = None
            finally:
                process.kill()
                process.wait()
            complaints.seek(0)
            said = complaints.read().decode("utf-8", "replace").strip().splitlines()[-1:]
        detail = f"exit status {process.returncode}{': ' if said else ''}{''.join(said)[:300]}"
        yield Called(
            **(at or {"ability": "", "kind": "plain", "label": ""}), status="died", code=None, detail=detail
        )

    def watched_import(self) -> Mapping[str, Any]:
        """Return what the import of its modules does (see `importing`)."""
        return self._imported(watched=True)

    def import_seconds(self) -> float:
        """Return the processor time of the quickest of a few imports, each in a process of its own."""
        # the first one compiles the modules, which is paid once and not by every program
        self._imported(watched=False)
        best = float("inf")
        for _ in range(_TIMED):
            best = min(best, float(self._imported(watched=False)["seconds"]))
            if best <= IMPORT_LIMIT_S:
                break
        return best

    def _imported(self, *, watched: bool) -> Mapping[str, Any]:
        roots = list(self.distribution.footprint().roots.values())
        task = {"modules": self.modules(), "paths": _paths(), "roots": roots, "watched": watched}
        with tempfile.TemporaryDirectory(prefix="chalie-contract-", ignore_cleanup_errors=True) as folder:
            home = Path(folder, "home")
            home.mkdir(mode=0o700)
            with tempfile.TemporaryFile() as complaints:
                flags = ("-B",) if watched else ()
                process = _started("importing", task, Path(folder), home, complaints, flags)
                try:
                    said, _ = process.communicate(timeout=_SILENCE_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.communicate()
                    return {"seconds": _SILENCE_S, "seen": [], "failed": f"no end within {_SILENCE_S:g} s"}
        if not said:
            return {"seconds": 0.0, "seen": [], "failed": f"it ended the process ({process.returncode})"}
        found: Mapping[str, Any] = json.loads(said)
        return found


_DATA: Final = frozenset({"chalie.skills", "chalie.models"})


def _paths() -> list[str]:
    """Return the import path that the catalogue was built for: another would be another environment."""
    return list(import_paths())


def _started(
    module: str,
    task: Mapping[str, Any],
    folder: Path,
    home: Path,
    complaints: Any,
    flags: Sequence[str] = (),
) -> subprocess.Popen[bytes]:
    """Start one of the contract's processes, with its task on standard input."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    # An author's own settings (the address of a local service) are passed on; the home is not.
    kept |= {"CHALIE_HOME": str(home), "HOME": str(folder), "TMPDIR": str(folder), "PYTHONPATH": _own()}
    with tempfile.TemporaryFile() as given:
        given.write(json.dumps(task).encode())
        given.seek(0)
        return subprocess.Popen(
            [sys.executable, "-P", *flags, "-m", f"{__package__}.{module}"],
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=complaints,
            cwd=folder,
            env=kept,
            start_new_session=True,
        )


def _own() -> str:
    return str(Path(__file__).parents[2])


def _lines(process: subprocess.Popen[bytes]) -> Iterator[dict[str, Any]]:
    """Yield what a process says until it ends, or has been silent for too long."""
    import selectors

    assert process.stdout is not None
    data = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while selector.select(_SILENCE_S):
            piece = os.read(process.stdout.fileno(), 1 << 16)
            if not piece:
                return
            *whole, data = (data + piece).split(b"\n")
            yield from map(json.loads, whole)
