"""Keeping the catalogue true to what is installed: builds, here or in a child process, and when to do one."""

from __future__ import annotations

import importlib
import json
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from . import __version__
from .catalogue.build_process import BuildProcess
from .catalogue.footprint import QUIET_S
from .catalogue.generations import Generation, Generations, IndexBuilder
from .catalogue.watch import Watch
from .config import SETTINGS, Config, environment_key, import_paths
from .errors import ChalieError, ConfigError, IndexUnreadable
from .names import OWN_DIST

if TYPE_CHECKING:
    from .catalogue.building import Progress
    from .catalogue.descriptor import EntryPoint, Problem
    from .catalogue.plugins import Plugins
    from .catalogue.snapshot import Snapshot
    from .ledger import Ledger

__all__ = ["Upkeep", "build", "enabled_plugins", "generations_of"]

#: seconds that a first start waits for any generation at all
_FIRST_WAIT_S: Final = 60.0
#: seconds after a failed build before the same state of affairs is tried again
_BACK_OFF_S: Final = 30.0


def generations_of(config: Config, paths: Sequence[str] | None = None) -> Generations:
    """Return the generations of a Python environment.

    Args:
        config: whose home they are in.
        paths: the environment's import path; this process's when left out.
    """
    return Generations(config.home / "generations" / environment_key(paths))


def build(
    config: Config,
    *,
    full: bool = False,
    rebuild: bool = False,
    progress: Progress | None = None,
    paths: Sequence[str] | None = None,
    quiet_s: float = QUIET_S,
) -> Generation:
    """Bring catalogue and indexes up to what is installed, in this process; return the newest generation.

    Only what changed is read. Where nothing did, nothing is published.

    Args:
        config: home, limits and options.
        full: compare the bytes of every file, not only its stamp, and read again what was set aside.
        rebuild: read every package again.
        progress: told (done, total, names still being read).
        paths: the import path to look at; this process's when left out.
        quiet_s: seconds without a change that a distribution must show; 0 for who ran the installer itself.

    Raises:
        ChalieError: another process has been building for minutes.
    """
    from .catalogue.building import Building
    from .catalogue.publishing import build_lock, sweep

    paths = tuple(import_paths() if paths is None else paths)
    generations = generations_of(config, paths)
    with build_lock(generations.root):
        sweep(generations.root)  # a killed build's rubbish, also where nothing is published now
        building = Building(
            config,
            generations,
            paths,
            lambda points: _index_builders(config, points),
            options=_options(config),
            progress=progress or (lambda done, total, reading: None),
        )
        return building.run(full, rebuild, quiet_s)


def _options(config: Config) -> str:
    """Return, as text, what a catalogue depends on besides what is installed."""
    disabled = sorted(name for name, options in config.packages.items() if options.disabled)
    options = {"chalie": __version__, "disabled": disabled, "model": config.discovery.model}
    return json.dumps(options, sort_keys=True)


def _index_builders(
    config: Config, points: Sequence[EntryPoint]
) -> tuple[Sequence[IndexBuilder], Sequence[Problem]]:
    """Return the index builders; without a usable model those that need none, and what to report."""
    from .catalogue.descriptor import Problem
    from .discovery import builders
    from .discovery.embedding import model_folder

    importlib.invalidate_caches()
    try:
        return builders(model_folder(config.discovery.model, points)), ()
    except ChalieError as error:
        problem = Problem("chalie", "", "files", error.message, error.hint or "", quarantined=False)
        return builders(None), (problem,)


def enabled_plugins(
    config: Config, ledger: Ledger, snapshot: Snapshot, environment: str | None = None
) -> Plugins:
    """Import the policies and plugins that a person enabled with exactly the files they have now.

    Args:
        config: its home remembers which modules were imported safely before.
        ledger: what is enabled.
        snapshot: what is installed.
        environment: the Python environment's key; this process's when left out.
    """
    from .catalogue.plugins import PluginLoader, Plugins

    points = [*snapshot.entry_points("chalie.policies"), *snapshot.entry_points("chalie.plugins")]
    if not points:
        return Plugins()
    from .catalogue.installed import Distribution, read

    environment = environment_key() if environment is None else environment
    hashes: dict[str, str] = {}
    for dist in sorted({point.dist for point in points}):
        row = snapshot.distribution(dist)
        found = read(Path(row.path)) if row is not None else None
        if row is None or not isinstance(found, Distribution):
            continue
        try:
            now = found.footprint()
            files_hash = row.files_hash if now.stamp == row.stamp else now.files_hash()
        except Exception:  # the next build says what is wrong with its files
            continue
        if ledger.enabled.is_enabled(dist, files_hash):
            hashes[dist] = files_hash
    enabled = [point for point in points if point.dist in hashes]
    memory = config.home / "generations" / environment / "plugins.json"
    return PluginLoader(enabled, memory=memory, files_hashes=hashes).load()


class Upkeep:
    """Keeps a process on the newest generation, and that one true to what is installed.

    Args:
        config: home, limits and options.
        on_published: told (generation id, added, removed) when this process goes over to a new generation;
            both lists hold `distribution:name`, an ability that changed is in both.
        paths: the import path to look at; this process's when left out.
    """

    def __init__(
        self,
        config: Config,
        on_published: Callable[[str, Sequence[str], Sequence[str]], None] | None = None,
        *,
        paths: Sequence[str] | None = None,
    ) -> None:
        self._config = config
        self._on_published = on_published
        self._paths = tuple(import_paths() if paths is None else paths)
        self._generations = generations_of(config, self._paths)
        #: the key of the Python environment looked at; made once, since it asks the disk about every entry
        self.environment = self._generations.root.name
        #: why the last build failed, None where it did not
        self.failure: ChalieError | None = None
        self._lock = threading.RLock()
        self._generation: Generation | None = None
        self._watch: Watch | None = None
        self._child: BuildProcess | None = None
        self._stale = False
        self._failed_at = float("-inf")
        self._settings = _stamp(config.home)

    def current(self) -> Generation:
        """Return the newest generation, after a look at whether anything was installed.

        Where something was, it waits up to `limits.build_wait_s` for it to be read; see `pending` for what is
        still being read afterwards.

        Raises:
            ChalieError: there is no generation yet and none could be built.
        """
        child = self._look()
        if child is not None:
            child.wait(self._config.limits.build_wait_s)
        self._adopt()
        generation = self._generation
        if generation is None:
            generation = self._first()
        return generation

    @property
    def latest(self) -> Generation:
        """The newest generation this process knows, without a look at what is installed."""
        return self._generation or self.current()

    @property
    def pending(self) -> tuple[str, ...]:
        """The distributions that are still being installed or read."""
        child = self._child
        return () if child is None or child.done else child.reading

    @property
    def building(self) -> bool:
        """Whether a build is under way: of packages (see `pending`), or only of what servers list."""
        child = self._child
        return child is not None and not child.done

    def problems(self) -> tuple[Problem, ...]:
        """Return why the last build failed, where it did: what was installed since is not seen."""
        from .catalogue.descriptor import Problem

        error = self.failure
        if error is None:
            return ()
        reason, fix = f"what is installed could not be read: {error.message}", error.hint or "chalie index"
        return (Problem(OWN_DIST, "", "build", reason, fix, quarantined=False),)

    def refresh(self, wait: float | None = None) -> Generation:
        """Look now, wait for the build, and return the newest generation.

        Args:
            wait: seconds; None waits for its end.
        """
        child = self._look()
        if child is not None:
            child.wait(wait)
        return self.current() if self._generation is None else self._adopted()

    def stale(self, dist: str) -> None:
        """Say that a distribution's files are not those of the catalogue; the next look reads it again."""
        self._stale = True

    def rebuild(self) -> None:
        """Say that a file of the generation is damaged; a new one is built at once, in its own process."""
        with self._lock:
            self._stale = True
        self._look()

    def close(self) -> None:
        """Let go of the generation. A build that is under way goes on by itself, for the next one to find."""
        with self._lock:
            self._generation = None
            self._watch = None
            self._child = None

    def _adopted(self) -> Generation:
        self._adopt()
        assert self._generation is not None
        return self._generation

    def _look(self) -> BuildProcess | None:
        """Start a build where anything may have changed; return the one under way."""
        with self._lock:
            if self._child is not None and not self._child.done:
                return self._child
            if self._child is not None:
                self._ended(self._child)
            if self._generation is None or self._generation.damaged:
                self._adopt()
            if not self._due():
                return None
            self._stale = False
            try:
                self._child = BuildProcess(self._config.home, self._paths, self._generations.root)
            except IndexUnreadable as error:
                self._failed(error)
                if self._generation is None:
                    raise
            return self._child

    def _ended(self, child: BuildProcess) -> None:
        self._child = None
        self.failure = None
        if child.error is not None:
            self._failed(child.error)

    def _failed(self, error: ChalieError) -> None:
        self.failure = error
        self._failed_at = time.monotonic()

    def _due(self) -> bool:
        if time.monotonic() - self._failed_at < _BACK_OFF_S and self._generation is not None:
            return False
        if self._generation is None or self._watch is None or self._stale or self._generation.damaged:
            return True
        return self._watch.changed() or self._reconfigured(self._generation)

    def _reconfigured(self, generation: Generation) -> bool:
        """Whether a package was disabled or brought back since, perhaps by another process."""
        before, self._settings = self._settings, _stamp(self._config.home)
        if self._settings == before:
            return False
        try:
            return generation.snapshot.meta("options") != _options(Config.load(self._config.home))
        except ConfigError:
            return False  # half written, or wrong: whoever opens the home next is told

    def _adopt(self) -> None:
        """Go over to the newest generation on disk, where it is another one."""
        with self._lock:
            before = self._generation
            try:
                if before is not None and not before.damaged and self._generations.current_id() == before.id:
                    return
                newest = self._generations.current()
            except IndexUnreadable as error:
                # Nobody can use it, so it is as good as none: a build is started, and until it has ended well
                # this is what is told.
                self.failure = self.failure or error
                self._stale = True
                newest = None
            if newest is None or (before is not None and newest.id == before.id):
                return
            try:
                self._watch = _watch_of(newest)
                if before is None and newest.snapshot.meta("options") != _options(self._config):
                    self._stale = True  # built under other options; later ones are another process's affair
            except IndexUnreadable:
                return
            self._generation = newest
        if before is not None and self._on_published is not None:
            added, removed = _difference(before, newest)
            self._on_published(newest.id, added, removed)

    def _first(self) -> Generation:
        """Wait for a generation where there has been none."""
        deadline = time.monotonic() + _FIRST_WAIT_S
        error: ChalieError | None = None
        while time.monotonic() < deadline:
            child = self._look()
            if child is not None:
                child.wait_for_news()
                error = child.error or error
            self._adopt()
            if self._generation is not None:
                return self._generation
            if error is not None:
                break
        raise error or IndexUnreadable(
            f"nothing installed could be read within {_FIRST_WAIT_S:g} s",
            hint="run `chalie index` to see what takes so long",
        )


def _stamp(home: Path) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for name in SETTINGS:
        try:
            status = (home / name).stat()
        except OSError:
            found.append((0, 0))
        else:
            found.append((status.st_mtime_ns, status.st_size))
    return tuple(found)


def _watch_of(generation: Generation) -> Watch:
    snapshot = generation.snapshot
    due = snapshot.meta("due")
    memory = generation.path.parent / "looked.json"
    return Watch(snapshot.watched(), snapshot.editables(), float(due) if due else None, memory=memory)


def _difference(before: Generation, after: Generation) -> tuple[list[str], list[str]]:
    try:
        old, new = before.snapshot.keys(), after.snapshot.keys()
    except IndexUnreadable:
        return [], []
    added = [key for key, digest in new.items() if old.get(key) != digest]
    removed = [key for key, digest in old.items() if new.get(key) != digest]
    return added, removed


def main(stdin: IO[bytes], stdout: IO[bytes]) -> int:
    """Build as a child process: a task in JSON on standard input, what happens as lines of JSON out."""
    task = json.loads(stdin.read())

    def tell(line: Mapping[str, Any]) -> None:
        try:
            stdout.write(json.dumps(line).encode() + b"\n")
            stdout.flush()
        except OSError:
            pass  # the process that started this one is gone; what is built is for the next

    def progress(done: int, total: int, reading: Sequence[str]) -> None:
        tell({"reading": list(reading), "done": done, "total": total})

    try:
        config = Config.load(Path(task["home"]))
        build(config, paths=task["paths"], progress=progress)
    except ChalieError as error:
        tell({"error": error.message, "hint": error.hint})
        return 1
    except OSError as error:
        tell(
            {
                "error": f"the catalogue cannot be written: {error}",
                "hint": "make room, or see the home's mode",
            }
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.stdin.buffer, sys.stdout.buffer))
