"""Reading the files of packages: regular ones of a bounded size only, so that none can hold up a scan."""

from __future__ import annotations

import hashlib
import io
import os
import stat
from pathlib import Path
from typing import Final

__all__ = ["METADATA_LIMIT", "facts_of", "hashed", "read_bytes", "read_text"]

#: bytes of a metadata file; the longest RECORDs in use (one line a file) are a few MiB.
METADATA_LIMIT: Final = 64 * 1024 * 1024
#: bytes of one file that is hashed; a model or a compiled library is a few GiB at most.
_HASHED_LIMIT: Final = 16 * 1024**3


def _open(path: Path, limit: int) -> io.BufferedReader:
    """Open a regular file; `ValueError` for what would never end or never begin, `OSError` as usual."""
    # Looked at before it is opened: opening a device can already do something, a pipe waits for its writer.
    _check(path, path.stat(), limit)
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY), "rb")
    try:
        _check(path, os.fstat(file.fileno()), limit)
    except BaseException:
        file.close()
        raise
    return file


def _check(path: Path, found: os.stat_result, limit: int) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(f"{path.name} is a folder")
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"{path.name} is no regular file")
    if found.st_size > limit:
        raise ValueError(f"{path.name} has {found.st_size} bytes, over {limit}")


def read_bytes(path: Path, limit: int = METADATA_LIMIT) -> bytes:
    """Return what a regular file holds.

    Args:
        path: the file.
        limit: bytes it may have.

    Raises:
        OSError: it is absent, or cannot be read.
        ValueError: it is a pipe, a device or the like, or longer than `limit`.
    """
    with _open(path, limit) as file:
        data = file.read(limit + 1)
    if len(data) > limit:  # some file systems give a size of 0 for files that have bytes
        raise ValueError(f"{path.name} has over {limit} bytes")
    return data


def read_text(path: Path, errors: str = "strict") -> str:
    """Return the text of a metadata file, without a byte order mark; raises as `read_bytes` does."""
    return read_bytes(path).decode("utf-8-sig", errors)


def hashed(path: Path) -> bytes:
    """Return the SHA-256 of a regular file's bytes; raises as `read_bytes` does."""
    with _open(path, _HASHED_LIMIT) as file:
        return hashlib.file_digest(file, "sha256").digest()


def facts_of(info: Path) -> tuple[str, str]:
    """Return the name and the version that a metadata folder gives; empty where it does not say.

    Raises:
        OSError: it has no such file, or it cannot be read.
        ValueError: the file is no regular file, too long, or not UTF-8.
    """
    import email.parser

    try:
        text = read_text(info / "METADATA")
    except FileNotFoundError:
        text = read_text(info / "PKG-INFO")
    headers = email.parser.HeaderParser().parsestr(text)
    return str(headers.get("Name") or "").strip(), str(headers.get("Version") or "").strip()
