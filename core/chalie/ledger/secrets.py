"""Secret arguments of calls that wait: whole argument sets in files of their own, outside the database."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ..errors import LedgerUnavailable

__all__ = ["Secrets"]

_KEY: Final = "key"
#: seconds after which a file that no hold names was left by a process that died before it stored the hold.
_ORPHAN_S: Final = 3600.0


class Secrets:
    """Files of mode 0600 in a folder of mode 0700, each erased when its hold has ended.

    Args:
        folder: where they are; made when the first one is kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, data: bytes) -> str:
        """Keep bytes and return what they are found by; they are on the disk when this returns.

        Raises:
            LedgerUnavailable: they cannot be written.
        """
        reference = os.urandom(8).hex()
        self._write(reference, data)
        return reference

    def get(self, reference: str) -> bytes | None:
        """Return what was kept, or None where it is gone."""
        try:
            return (self._folder / reference).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable(error) from error

    def erase(self, reference: str | None) -> None:
        """Erase one, overwritten first; what cannot be erased now is when the ledger is next looked over."""
        if reference is None:
            return
        path = self._folder / reference
        with contextlib.suppress(OSError):
            size = path.stat().st_size
            with path.open("r+b") as file:
                file.write(b"\0" * size)
            path.unlink()

    def sweep(self, states: Mapping[str, bool]) -> int:
        """Erase what is not needed any more; return how many.

        Args:
            states: reference -> whether its hold still needs it, for every reference that a hold names.
        """
        erased = 0
        with contextlib.suppress(FileNotFoundError):
            for path in list(self._folder.iterdir()):
                if path.name.startswith(_KEY) or states.get(path.name):
                    continue
                with contextlib.suppress(OSError):
                    if path.name in states or time.time() - path.stat().st_mtime > _ORPHAN_S:
                        self.erase(path.name)
                        erased += 1
        return erased

    def key(self) -> bytes:
        """Return the home's own random key: by a plain hash a short secret could be guessed.

        Raises:
            LedgerUnavailable: it cannot be read or written.
        """
        path = self._folder / _KEY
        try:
            with contextlib.suppress(FileNotFoundError):
                return path.read_bytes()
            made = f"{_KEY}-{os.urandom(8).hex()}"
            self._write(made, os.urandom(32))
            with contextlib.suppress(FileExistsError):  # another process was first
                os.link(self._folder / made, path)
            (self._folder / made).unlink()
            return path.read_bytes()
        except OSError as error:
            raise self._unusable(error) from error

    def _write(self, name: str, data: bytes) -> None:
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            file = os.open(self._folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                left = data
                while left:
                    left = left[os.write(file, left) :]
                os.fsync(file)
            finally:
                os.close(file)
            folder = os.open(self._folder, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: OSError) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"{self._folder} cannot be used: {error.strerror or error}",
            hint=f"make {self._folder.parent} writable for this account, or set CHALIE_HOME",
        )
