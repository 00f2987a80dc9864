"""Where the workspace is, and where a path in it really leads."""

from __future__ import annotations

import functools
import os
import stat
from typing import Final

from attrs import frozen

from .refusal import Refused

__all__ = ["VARIABLE", "Place", "named", "resolve", "roots"]

#: the environment variable that names the workspace's folders, separated as in PATH.
VARIABLE: Final = "CHALIE_WORKSPACE_ROOTS"

#: where the host was started; a program that changes its folder later does not move the workspace.
_STARTED_IN: Final = os.getcwd()  # noqa: PTH109  (a text is all that is wanted)
_MOST_LINKS: Final = 40
_HINT: Final = f"set {VARIABLE} to the folders it may work in"


@frozen
class Place:
    """Where a path leads once every link on the way is followed.

    Attributes:
        asked: the path as it was given.
        root: the real path of the workspace folder it lies in.
        parts: the names below that folder, none of them a link when looked at.
    """

    asked: str
    root: str
    parts: tuple[str, ...]

    @property
    def path(self) -> str:
        """The absolute path."""
        return "/".join((self.root.rstrip("/"), *self.parts)) or "/"

    @property
    def shown(self) -> str:
        """The path from the workspace's first folder, else the absolute one: what results call it."""
        if self.root == roots()[0]:
            return "/".join(self.parts) or "."
        return self.path


def roots() -> tuple[str, ...]:
    """Return the real paths of the workspace's folders; relative paths start at the first.

    Raises:
        Refused: `no-workspace` where none is usable.
    """
    return _roots(os.environ.get(VARIABLE, ""))


@functools.lru_cache(maxsize=8)
def _roots(value: str) -> tuple[str, ...]:
    given = [folder for folder in value.split(os.pathsep) if folder]
    for folder in given:
        if not folder.startswith("/"):
            raise Refused(
                f"{VARIABLE} names {folder}, which is not absolute", code="no-workspace", hint=_HINT
            )
    if not given:
        if _STARTED_IN == "/":
            # a service is started there: nobody has said that the whole machine is the workspace
            raise Refused("there is no workspace: the host was started in /", code="no-workspace", hint=_HINT)
        given = [_STARTED_IN]
    found = tuple(dict.fromkeys(os.path.realpath(folder) for folder in given))
    missing = [folder for folder in found if not os.path.isdir(folder)]  # noqa: PTH112
    if missing:
        raise Refused(f"the workspace folder {missing[0]} is not there", code="no-workspace", hint=_HINT)
    return found


def resolve(asked: str, base: str | None = None, *, follow_last: bool = True) -> Place:
    """Follow a path to where it really leads, and refuse it where that is outside the workspace.

    What is not there yet resolves as far as its folders are.

    Args:
        asked: absolute, or relative to `base`.
        base: the real path of a folder; default: the workspace's first folder.
        follow_last: whether a link in the last place is followed.

    Raises:
        Refused: `outside-workspace`, `invalid-path` or `no-workspace`.
    """
    folders = roots()
    if not asked or "\0" in asked or asked[0] == "~":
        reason = (
            "starts with ~, which only a shell expands" if asked[:1] == "~" else "is empty or holds a NUL"
        )
        raise Refused(f"the path {asked!r} {reason}", code="invalid-path", hint="write the path out")
    try:
        asked.encode()
    except UnicodeEncodeError:
        raise Refused(
            f"the path {asked!r} is no text", code="invalid-path", hint="pass valid Unicode"
        ) from None
    path = _followed(folders[0] if base is None else base, asked, follow_last)
    for root in folders:
        if path == root:
            return Place(asked, root, ())
        if path.startswith(root + "/") or root == "/":
            return Place(asked, root, tuple(part for part in path[len(root) :].split("/") if part))
    leads = "" if path == asked else f", which leads to {path},"
    raise Refused(
        f"{asked}{leads} is outside the workspace",
        code="outside-workspace",
        hint=f"work below {' or '.join(folders)}; a person widens it with {VARIABLE}",
    )


def named(asked: str) -> str:
    """Return the absolute path that a path names, whatever links there are: it depends on the words alone."""
    path = os.path.normpath(os.path.join(roots()[0], asked))  # noqa: PTH118
    return "/" + path.lstrip("/")


def _followed(base: str, asked: str, follow_last: bool) -> str:
    """Return the absolute path without links and `..`, as the system itself would walk it."""
    path = "/" if asked[0] == "/" else base
    todo = [part for part in reversed(asked.split("/")) if part and part != "."]
    links = 0
    there = True  # nothing below a missing folder can be a link
    while todo:
        part = todo.pop()
        if part == "..":
            path = os.path.dirname(path)  # noqa: PTH120
            there = True
            continue
        step = f"/{part}" if path == "/" else f"{path}/{part}"
        if there and (todo or follow_last):
            try:
                linked = stat.S_ISLNK(os.lstat(step).st_mode)
            except OSError:
                linked = there = False
            if linked:
                links += 1
                if links > _MOST_LINKS:
                    raise Refused(f"{asked} is a circle of links", code="invalid-path")
                target = os.readlink(step)  # noqa: PTH115
                path = "/" if target.startswith("/") else path
                todo += [name for name in reversed(target.split("/")) if name and name != "."]
                continue
        path = step
    return path
