"""Opening below a workspace folder one name at a time, so that a link put there meanwhile leads nowhere.

A path was resolved before; between that and the opening another process may have swapped a folder for a
link. So each name is opened relative to the folder before it and never through a link.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from typing import Final

from .refusal import Refused
from .roots import Place

__all__ = ["folder", "open_file", "open_folder", "parent", "read_whole", "replace"]

_SAFE: Final = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NOCTTY
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | _SAFE
#: a file larger than this is not edited or delivered: it would be held in memory.
WHOLE: Final = 32 * 1024 * 1024


def open_folder(place: Place, parts: tuple[str, ...], *, make: bool = False) -> int:
    """Open a folder of the workspace; the caller closes it.

    Args:
        place: whose root to start at.
        parts: the names to walk.
        make: whether missing folders are made.

    Raises:
        Refused: something is missing, is no folder, is a link now, or may not be entered.
    """
    try:
        here = os.open(place.root, _FOLDER)
    except OSError as error:
        raise refused(place.root, error) from None
    for part in parts:
        try:
            here = _step(here, part, make)
        except OSError as error:
            raise refused(place.asked, error, part) from None
    return here


def _step(here: int, part: str, make: bool) -> int:
    """Go one folder deeper; `here` is closed whatever happens."""
    try:
        try:
            return os.open(part, _FOLDER, dir_fd=here)
        except FileNotFoundError:
            if not make:
                raise
        with contextlib.suppress(FileExistsError):
            os.mkdir(part, dir_fd=here)
        return os.open(part, _FOLDER, dir_fd=here)
    except NotADirectoryError:
        mode = os.stat(part, dir_fd=here, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            raise OSError(errno.ELOOP, "is a link") from None
        raise
    finally:
        os.close(here)


@contextlib.contextmanager
def folder(place: Place) -> Iterator[int]:
    """Open the folder that a place is."""
    opened = open_folder(place, place.parts)
    try:
        yield opened
    finally:
        os.close(opened)


@contextlib.contextmanager
def parent(place: Place, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """Open the folder that a place lies in; give it and the place's own name.

    Raises:
        Refused: the place is a workspace folder itself, or its folder cannot be opened.
    """
    if not place.parts:
        raise Refused(
            f"{place.asked} is a workspace folder itself", code="not-a-file", hint="name a file in it"
        )
    opened = open_folder(place, place.parts[:-1], make=make)
    try:
        yield opened, place.parts[-1]
    finally:
        os.close(opened)


def open_file(place: Place) -> tuple[int, os.stat_result]:
    """Open a regular file for reading; the caller closes it.

    Raises:
        Refused: it is missing, is no regular file (a device or a pipe could block), or may not be read.
    """
    with parent(place) as (where, name):
        try:
            opened = os.open(name, os.O_RDONLY | os.O_NONBLOCK | _SAFE, dir_fd=where)
        except OSError as error:
            raise refused(place.asked, error) from None
    facts = os.fstat(opened)
    if not stat.S_ISREG(facts.st_mode):
        os.close(opened)
        kind = "a folder" if stat.S_ISDIR(facts.st_mode) else "no regular file"
        hint = "list it with file_list" if stat.S_ISDIR(facts.st_mode) else None
        raise Refused(f"{place.asked} is {kind}", code="not-a-file", hint=hint)
    return opened, facts


def read_whole(place: Place, limit: int = WHOLE) -> tuple[bytes, os.stat_result]:
    """Return a regular file's bytes.

    Raises:
        Refused: as `open_file`, or `too-large`.
    """
    opened, facts = open_file(place)
    with os.fdopen(opened, "rb") as file:
        data = file.read(limit + 1) if facts.st_size <= limit else b""
    if facts.st_size > limit or len(data) > limit:
        raise Refused(
            f"{place.asked} has {facts.st_size} bytes, over {limit}",
            code="too-large",
            hint="work on it in parts",
        )
    return data, facts


def replace(
    place: Place, data: bytes, *, only_new: bool = False, unchanged: os.stat_result | None = None
) -> bool:
    """Put a file in place whole, or not at all; return whether it was not there before.

    A second name of the same file (a hard link) keeps the old content: nothing outside is written through it.

    Args:
        place: where; missing folders are made.
        data: the content.
        only_new: refuse where something is there already.
        unchanged: refuse where the file is no longer the one with these facts.

    Raises:
        Refused: `exists`, `changed-meanwhile`, `not-a-file`, or the system's own reason.
    """
    with parent(place, make=True) as (where, name):
        before = _facts(where, name)
        if before is not None and only_new:
            raise Refused(f"{place.asked} is there already", code="exists", hint="pass if_exists=overwrite")
        if before is not None and not stat.S_ISREG(before.st_mode):
            raise Refused(f"{place.asked} is no regular file", code="not-a-file")
        if unchanged is not None and (before is None or _identity(before) != _identity(unchanged)):
            raise Refused(
                f"{place.asked} was changed by somebody else meanwhile",
                code="changed-meanwhile",
                hint="read it again, then edit",
            )
        aside = f".{secrets.token_hex(8)}.chalie-new"
        try:
            _write(where, aside, data, before)
            if only_new:
                os.link(aside, name, src_dir_fd=where, dst_dir_fd=where, follow_symlinks=False)
                os.unlink(aside, dir_fd=where)
            else:
                os.rename(aside, name, src_dir_fd=where, dst_dir_fd=where)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(aside, dir_fd=where)
            raise refused(place.asked, error) from None
    return before is None


def _write(where: int, aside: str, data: bytes, before: os.stat_result | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE
    opened = os.open(aside, flags, 0o666 if before is None else 0o600, dir_fd=where)
    with os.fdopen(opened, "wb") as file:
        file.write(data)
        file.flush()
        if before is not None:
            with contextlib.suppress(OSError):  # only the superuser can give a file away
                os.fchown(opened, before.st_uid, before.st_gid)
            os.fchmod(opened, stat.S_IMODE(before.st_mode) & 0o777)
        os.fsync(opened)


def _facts(where: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=where, follow_symlinks=False)
    except OSError:
        return None


def _identity(facts: os.stat_result) -> tuple[int, int, int, int]:
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns


def refused(asked: str, error: OSError, part: str | None = None) -> Refused:
    """Return an operating system's refusal in the words of the workspace."""
    at = f" (at {part})" if part else ""
    if error.errno == errno.ENOENT:
        return Refused(f"{asked} is not there{at}", code="no-such-file", hint="look with file_list")
    if error.errno == errno.ELOOP:
        return Refused(
            f"{asked} became a link{at} after it was checked", code="outside-workspace", hint="do not retry"
        )
    if error.errno == errno.EEXIST:
        return Refused(f"{asked} is there already", code="exists", hint="pass if_exists=overwrite")
    if error.errno == errno.ENOTDIR:
        return Refused(
            f"{asked}: a part of it is no folder{at}", code="no-such-file", hint="look with file_list"
        )
    return Refused(f"{asked}{at}: {os.strerror(error.errno or 0)}", code="not-possible")
