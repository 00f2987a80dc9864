"""The write side of generations: built aside, published by one rename and one pointer, under one file lock.

A builder may be killed at any moment: until `CURRENT` is replaced nobody looks at what it wrote, and the next
builder clears it away. The lock is the operating system's, so it ends with the process that held it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from ..errors import ChalieError, IndexUnreadable
from . import tables
from .descriptor import Problem
from .generations import (
    CURRENT,
    IN_USE,
    LOCK,
    MANIFEST,
    Generation,
    Generations,
    IndexBuilder,
    Manifest,
    checksum,
    unwritable,
)
from .snapshot import Snapshot
from .tables import Contents
from .vectors import VectorStore

__all__ = ["build_lock", "publish", "sweep"]

_ASIDE: Final = "building-"
_GOING: Final = "removing-"


@contextlib.contextmanager
def build_lock(root: Path, timeout_s: float = 600.0) -> Iterator[None]:
    """Hold the right to publish in this environment; other builders wait, readers do not.

    Raises:
        IndexUnreadable: nothing can be written there, now or while the lock is held.
        ChalieError: another builder has held it all the time.
    """
    import filelock

    Generations(root).make()
    try:
        with filelock.FileLock(root / LOCK, timeout=timeout_s):
            yield
    except filelock.Timeout as error:
        raise ChalieError(
            f"another process has been building in {root} for {timeout_s:g} s",
            code="not-ready",
            hint="wait for it, or end it; the lock goes with the process",
        ) from error
    except OSError as error:
        raise unwritable(root, error) from error


def publish(
    generations: Generations,
    contents: Contents,
    builders: Sequence[IndexBuilder],
    *,
    meta: Mapping[str, str] | None = None,
    previous: Generation | None = None,
    borrow: Sequence[Path] = (),
    anew: bool = False,
) -> Generation:
    """Build a generation aside, make it the current one and open it. The caller holds `build_lock`.

    Args:
        generations: where to publish.
        contents: what the catalogue holds.
        builders: write the indexes. One that fails costs its index only: the problem is on the catalogue,
            and a search says which rung is missing.
        meta: small facts kept with the catalogue.
        previous: the generation this one follows; its indexes are taken over where they would come out the
            same, its vectors where they are asked for.
        borrow: further catalogues whose vectors may be used.
        anew: whether no index is taken over, nor anything of one but vectors.
    """
    root = generations.root
    name = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(3)}"
    folder = root / (_ASIDE + name)
    folder.mkdir(mode=0o700, parents=True)
    try:
        content = tables.write(folder / tables.FILE, contents, meta or {})
        own = [previous.path / tables.FILE] if previous is not None else []
        vectors = VectorStore([*own, *borrow])
        fingerprints = _write_indexes(folder, content, builders, None if anew else previous, vectors)
        vectors.save(folder / tables.FILE)
        with contextlib.closing(Snapshot.open(folder)) as snapshot:
            counts = snapshot.counts()
        manifest = Manifest(name, time.time(), content, fingerprints, counts, _files(folder))
        (folder / MANIFEST).write_text(manifest.text())
        (folder / IN_USE).touch()
        _sync(folder)
        folder.rename(root / name)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    _point(root, name)
    sweep(root)
    opened = generations.current()
    if opened is None:
        raise IndexUnreadable(f"{root}: what was just published is gone", hint="run `chalie index`")
    return opened


def _write_indexes(
    folder: Path,
    content: str,
    builders: Sequence[IndexBuilder],
    previous: Generation | None,
    vectors: VectorStore,
) -> dict[str, str]:
    """Write every index; return the builders' fingerprints, of a failed one empty: it is tried again."""
    fingerprints = {builder.name: builder.fingerprint() for builder in builders}
    if previous is not None and previous.manifest.content == content:
        same = dict(previous.manifest.builders) == fingerprints
        if same and _copied(previous, folder):
            vectors.keep_all()
            return fingerprints
    for builder in builders:
        before = set(folder.iterdir())
        # Closed before the vectors are written: it reads the file as one that never changes.
        with contextlib.closing(Snapshot.open(folder)) as snapshot:
            try:
                builder.build(snapshot, folder, vectors, _alike(previous, builder.name, fingerprints))
            except Exception as error:
                _note_failure(folder, builder.name, error)
                fingerprints[builder.name] = ""
                _clear(folder, before)
    return fingerprints


def _alike(previous: Generation | None, name: str, fingerprints: Mapping[str, str]) -> Generation | None:
    """Return the generation before where its index was made the same way."""
    same = previous is not None and previous.manifest.builders.get(name) == fingerprints[name]
    return previous if same else None


def _note_failure(folder: Path, builder: str, error: Exception) -> None:
    text = " ".join(str(error).split())[:300]
    hint = getattr(error, "hint", None)
    reason = f"the {builder} index could not be built ({type(error).__name__}: {text})"
    tables.add_problem(
        folder / tables.FILE,
        Problem("chalie", "", "files", reason, hint or "chalie index", quarantined=False),
    )


def _copied(previous: Generation, folder: Path) -> bool:
    """Take over the indexes of a generation with the same content; False where one is damaged."""
    try:
        for name in previous.manifest.files:
            if name != tables.FILE:
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(previous.verified(name), target)
    except (OSError, IndexUnreadable):
        _clear(folder, {folder / tables.FILE})
        return False
    return True


def _clear(folder: Path, keep: set[Path]) -> None:
    """Remove what half an index left."""
    for entry in set(folder.iterdir()) - keep:
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _names(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def _files(folder: Path) -> dict[str, tuple[str, int]]:
    return {name: (checksum(folder / name), (folder / name).stat().st_size) for name in _names(folder)}


def _sync(folder: Path) -> None:
    """Bring what was written to the disk before anything points at it."""
    for name in _names(folder):
        with (folder / name).open("rb") as file:
            os.fsync(file.fileno())


def _point(root: Path, name: str) -> None:
    aside = root / f"{CURRENT}.new"
    for path in (aside, root / CURRENT):
        if path.is_dir() and not path.is_symlink():
            path.rename(root / f"{_GOING}{path.name}-{secrets.token_hex(3)}")
    with aside.open("w", encoding="ascii") as file:
        file.write(name + "\n")
        file.flush()
        os.fsync(file.fileno())
    aside.replace(root / CURRENT)


def sweep(root: Path) -> None:
    """Remove what killed builders left, and generations nobody has open. The caller holds `build_lock`.

    Where nothing tells which generation is the newest, all are left until the next one is published.
    """
    known = True
    current = None
    try:
        current = Generations(root).current_id()
    except IndexUnreadable:
        known = False
    for entry in list(root.iterdir()):
        if not entry.is_dir() or entry.name == current:
            continue
        if entry.name.startswith((_ASIDE, _GOING)):
            shutil.rmtree(entry, ignore_errors=True)
        elif known:
            _remove_unused(root, entry)


def _remove_unused(root: Path, folder: Path) -> None:
    try:
        descriptor = os.open(folder / IN_USE, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        shutil.rmtree(folder, ignore_errors=True)
        return
    except OSError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Renamed first: a reader that finds the old name gone looks at CURRENT again.
        going = root / (_GOING + folder.name)
        folder.rename(going)
        shutil.rmtree(going, ignore_errors=True)
    except OSError:
        pass  # a reader has it open; a later builder removes it
    finally:
        os.close(descriptor)
