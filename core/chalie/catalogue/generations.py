"""Generations: whole builds of the catalogue and its indexes, published by one rename, read without waiting.

A folder `<root>/<id>/` holds `catalogue.sqlite`, what the index builders wrote, `manifest.json` with the
checksum of every file, and `in-use`, which readers hold shared and a remover exclusively.
`<root>/CURRENT` names the newest.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import secrets
import sqlite3
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from attrs import frozen

from ..errors import IndexUnreadable
from . import files
from .snapshot import Snapshot
from .tables import FILE
from .vectors import VectorStore

__all__ = ["FORMAT", "Generation", "Generations", "IndexBuilder", "Manifest", "VectorStore", "checksum"]

#: the layout of a generation's folder and tables; another number is not read but built anew.
FORMAT: Final = 2
MANIFEST: Final = "manifest.json"
IN_USE: Final = "in-use"
CURRENT: Final = "CURRENT"
LOCK: Final = "build.lock"
#: what the last build's process said on standard error
LOG: Final = "build.log"
_LONGEST_NAME: Final = 256
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_TRIES = 50


class IndexBuilder(Protocol):
    """Writes one index into the folder of a generation that is being built."""

    name: str

    def fingerprint(self) -> str:
        """Return what decides the index besides the catalogue: its format, the model. Cheap."""
        ...

    def build(
        self, snapshot: Snapshot, folder: Path, vectors: VectorStore, previous: Generation | None = None
    ) -> None:
        """Write the index of everything in `snapshot` as files under `folder`.

        Args:
            snapshot: the catalogue being published; its ids are the ones to index.
            folder: the generation's folder; write only files and folders of this builder's own.
            vectors: vectors by content hash, carried over from one generation to the next.
            previous: the generation before, where this builder had the same fingerprint then; to take over
                what did not change.
        """
        ...


@frozen
class Manifest:
    """What a generation says of itself.

    Attributes:
        id: the folder's name.
        created: seconds since the epoch.
        content: digest of the abilities and playbooks the indexes were built from.
        builders: index builder -> its fingerprint.
        counts: as `Snapshot.counts`.
        files: relative path -> (SHA-256 in hex, size in bytes).
    """

    id: str
    created: float
    content: str
    builders: Mapping[str, str]
    counts: Mapping[str, int]
    files: Mapping[str, tuple[str, int]]

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read the manifest in `folder`; `IndexUnreadable` where it is absent, damaged or foreign."""
        path = folder / MANIFEST
        try:
            data: dict[str, Any] = json.loads(files.read_bytes(path))
            if data.pop("format") != FORMAT:
                raise ValueError("it was written by another version of chalie")
            data["files"] = {name: (sha, size) for name, (sha, size) in data["files"].items()}
            return cls(**data)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise _damaged(path, str(error)) from error

    def text(self) -> str:
        """Return the manifest as it is written."""
        plain = {key: getattr(self, key) for key in ("id", "created", "content")}
        plain |= {key: dict(getattr(self, key)) for key in ("builders", "counts", "files")}
        return json.dumps({"format": FORMAT, **plain}, indent=1, sort_keys=True)


class Generation:
    """One published build, held open: its files stay until the last holder lets go.

    Attributes:
        id: names it, e.g. in events.
        path: its folder.
        manifest: checksums, counts and fingerprints.
        snapshot: the catalogue.
        damaged: whether a file failed its check since it was opened.
    """

    def __init__(self, path: Path, manifest: Manifest, snapshot: Snapshot, descriptor: int) -> None:
        self.id = manifest.id
        self.path = path
        self.manifest = manifest
        self.snapshot = snapshot
        self.damaged = False
        self._verified: set[str] = set()
        # Bound to the snapshot, not to this object: a turn may hold only that, and its files must stay.
        self._release = weakref.finalize(snapshot, _release, descriptor, snapshot.connection)

    def verified(self, relpath: str) -> Path:
        """Return the path of a file, or of a folder with all its files, after comparing checksums once.

        Raises:
            IndexUnreadable: it is absent, not in the manifest, or its bytes are not those written.
        """
        target = self.path / relpath
        if relpath in self._verified:
            return target
        names = [n for n in self.manifest.files if n == relpath or n.startswith(relpath.rstrip("/") + "/")]
        if not names:
            self.damaged = True
            raise _damaged(target, "the generation has no such index")
        for name in names:
            self._check(name)
        self._verified.add(relpath)
        return target

    def check(self) -> None:
        """Compare every file with the manifest; `IndexUnreadable` names the first that differs."""
        for name in self.manifest.files:
            self._check(name)

    def _check(self, name: str) -> None:
        wanted, size = self.manifest.files[name]
        path = self.path / name
        try:
            good = path.stat().st_size == size and checksum(path) == wanted
        except OSError as error:
            self.damaged = True
            raise _damaged(path, error.strerror or str(error)) from error
        if not good:
            self.damaged = True
            raise _damaged(path, "its checksum is not the one it was written with")

    def close(self) -> None:
        """Let go of the folder, which may then be removed.

        Done by itself once nothing refers to the snapshot any more; call it only where nobody else can.
        """
        self._release()


class Generations:
    """The generations of one environment, under `<home>/generations/<environment key>/`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def current_id(self) -> str | None:
        """Return the id of the newest generation, None where there is none yet."""
        try:
            name = files.read_bytes(self.root / CURRENT, _LONGEST_NAME).decode("ascii").strip()
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise _damaged(self.root / CURRENT, str(error)) from error
        if name and not _NAME.fullmatch(name):
            raise _damaged(self.root / CURRENT, "it names no generation")
        return name or None

    def make(self) -> None:
        """Make the folder, where builds and what they say go.

        It is the host's alone and can be built again, so what stands in its place and is no folder, or is one
        where a file belongs, is renamed and not removed.

        Raises:
            IndexUnreadable: it cannot be made, for want of rights or room.
        """
        try:
            for folder in (self.root.parent, self.root):
                if os.path.lexists(folder) and not folder.is_dir():
                    _rename_aside(folder)
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name in (LOCK, LOG):
                if (self.root / name).is_dir():
                    _rename_aside(self.root / name)
        except OSError as error:
            raise unwritable(self.root, error) from error

    def current(self) -> Generation | None:
        """Open the newest generation, None where none was published yet. Never waits for a builder.

        Raises:
            IndexUnreadable: what CURRENT names is absent or damaged.
        """
        for _ in range(_TRIES):
            name = self.current_id()
            if name is None:
                return None
            generation = self._open(name)
            if generation is not None:
                return generation
            if self.current_id() == name:
                raise _damaged(self.root / name, "the folder is gone")
        raise _damaged(self.root, "generations are replaced faster than they can be opened")

    def _open(self, name: str) -> Generation | None:
        folder = self.root / name
        try:
            descriptor = os.open(folder / IN_USE, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            # It may have been removed between the two lines above: then this lock guards nothing.
            if (folder / IN_USE).stat().st_ino != os.fstat(descriptor).st_ino:
                raise BlockingIOError
            manifest = Manifest.read(folder)
            size = (folder / FILE).stat().st_size
            if size != manifest.files.get(FILE, ("", -1))[1]:
                raise _damaged(folder / FILE, "its size is not the one it was written with")
            return Generation(folder, manifest, Snapshot.open(folder / FILE), descriptor)
        except (BlockingIOError, FileNotFoundError):
            os.close(descriptor)
            return None
        except OSError as error:
            os.close(descriptor)
            raise _damaged(folder, str(error)) from error
        except BaseException:
            os.close(descriptor)
            raise


def checksum(path: Path) -> str:
    """Return the SHA-256 (hex) of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _release(descriptor: int, connection: sqlite3.Connection) -> None:
    connection.close()
    os.close(descriptor)


def unwritable(root: Path, error: OSError) -> IndexUnreadable:
    """Return the error for a catalogue that cannot be written."""
    return IndexUnreadable(
        f"the catalogue in {root} cannot be written: {error}",
        hint="make it writable for this user and see that there is room, or name another home in CHALIE_HOME",
    )


def _rename_aside(path: Path) -> None:
    path.rename(path.with_name(f"{path.name}.aside-{secrets.token_hex(3)}"))


def _damaged(path: Path, why: str) -> IndexUnreadable:
    return IndexUnreadable(f"{path} cannot be used: {why}", hint="run `chalie index` to build it again")
