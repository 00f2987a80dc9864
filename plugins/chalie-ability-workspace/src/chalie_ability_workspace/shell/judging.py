"""Which action a command is: the mildest one that everything in it is known to stay within."""

from __future__ import annotations

import functools
import os
import re
import stat
from collections.abc import Callable, Sequence
from typing import Final

from ..guarded import mentions_protected, moved, protected, secret
from ..refusal import AlwaysAsk, Refused
from ..roots import Place, resolve, roots
from .grammar import outline
from .options import Form, Parsed
from .running import PATH
from .table import FIND, INSTALLERS, NETWORK, READERS, SED_SCRIPT, WRITERS
from .words import Command, Redirect, split

__all__ = ["ACTIONS", "LONGEST", "judge"]

#: mildest first; each covers the ones before it.
ACTIONS: Final = ("read", "write", "network", "install", "destructive")
#: characters; nobody reads a longer command before saying yes to it.
LONGEST: Final = 8192
#: folders a command may be in after its `cd`s: each may have failed, so all of them count.
_MOST_FOLDERS: Final = 4
#: files and folders that are looked at below one that `grep -r` reads.
_MOST_BELOW: Final = 20_000

# Control characters but tab and line break, surrogates, and what turns or hides text on a screen.
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


class _NotKnown(Exception):
    """A command, option or path that no table covers."""


def judge(command: str, base: str) -> str:
    """Return which of `ACTIONS` a command is.

    Parsing grants nothing. A command is milder than `destructive` only where each of its parts stands in a
    closed table with only listed options, every word is literal, every path leads into the workspace, and a
    shell's grammar sees the same commands in it.

    Args:
        command: what `bash -c` would get.
        base: the real path of the folder it starts in.

    Raises:
        AlwaysAsk: it cannot be parsed or shown, or speaks of a place that no standing permission covers.
    """
    if not command.strip() or len(command) > LONGEST:
        raise AlwaysAsk(f"a command has 1 to {LONGEST} characters")
    if _UNSEEN.search(command):
        raise AlwaysAsk("it holds characters that cannot be seen, NUL or carriage return among them")
    seen = outline(command)
    commands = split(command)
    if commands is None:
        action = "destructive"
    elif not seen.agrees(commands):
        raise AlwaysAsk("a shell's grammar reads it otherwise than it looks")
    else:
        action = _strictest(commands, base)
    if action in ("network", "install", "destructive") and mentions_protected(command):
        raise AlwaysAsk("it speaks of a place that a shell, git or another program runs or obeys")
    return action


def _strictest(commands: Sequence[Command], base: str) -> str:
    if not _path_is_apart(roots()):
        return "destructive"  # the listed commands could themselves have been exchanged
    folders = [base]
    action = "read"
    for command in commands:
        try:
            found = _action(command, folders)
        except _NotKnown:
            return "destructive"
        except Refused:  # a path that leads outside the workspace
            return "destructive"
        action = max(action, found, key=ACTIONS.index)
    # A moved link changes where later paths lead, and those were resolved before anything ran.
    moves = len(commands) > 1 and any(command.words[0] == "mv" for command in commands)
    return "destructive" if moves else action


@functools.lru_cache(maxsize=8)
def _path_is_apart(folders: tuple[str, ...]) -> bool:
    """Tell whether no folder that commands are taken from lies in the workspace, to be written to."""
    return not any(
        real == folder or real.startswith(folder.rstrip("/") + "/")
        for folder in folders
        for real in map(os.path.realpath, PATH.split(":"))
    )


def _action(command: Command, folders: list[str]) -> str:
    action = "read"
    for redirect in command.redirects:
        _check_redirect(redirect, folders)
        action = "write"
    name, words = command.words[0], command.words[1:]
    special = _SPECIAL.get(name)
    if special is not None:
        special(command, words, folders)
        return action
    if name in READERS:
        _check_reader(name, _parsed(READERS[name], words), folders)
        return action
    if name in WRITERS:
        _check_writer(name, _parsed(WRITERS[name], words).operands, folders)
        return "write"
    if name in NETWORK:
        form, operand = NETWORK[name]
        if all(operand.fullmatch(word) for word in _parsed(form, words).operands):
            return "network"
        raise _NotKnown
    if name in ("python", "python3") and words[:1] == ["-m"]:
        name, words = (words[1] if len(words) > 1 else ""), words[2:]
    if name in INSTALLERS and INSTALLERS[name].intersection(words[:2]):
        return "install"
    raise _NotKnown


def _parsed(form: Form, words: Sequence[str]) -> Parsed:
    parsed = form.parse(words)
    if parsed is None:
        raise _NotKnown
    return parsed


def _check_redirect(redirect: Redirect, folders: Sequence[str]) -> None:
    if redirect.target is None or redirect.target == "/dev/null":
        return
    (_readable if redirect.operator == "<" else _writable)(redirect.target, folders)


def _check_reader(name: str, parsed: Parsed, folders: Sequence[str]) -> None:
    form = READERS[name]
    operands = list(parsed.operands)
    if form.operands == "pattern" and "e" not in parsed.options:
        if not operands:
            raise _NotKnown
        operands.pop(0)
    if form.operands not in ("paths", "pattern"):
        return
    deep = name == "grep" and "r" in parsed.options
    if deep and "--include" not in parsed.options:
        raise _NotKnown  # whatever lies in the folder would be read, secrets too
    endings = tuple(given.lstrip("*") for given in parsed.options.get("--include", ()))
    for operand in operands or (["."] if deep else []):
        places = _readable(operand, folders)
        if deep:
            for place in places:
                _check_below(place.path, endings)
        if name == "diff" and any(map(_is_folder, places)):
            raise _NotKnown  # two folders are compared file by file


def _check_below(folder: str, endings: tuple[str, ...]) -> None:
    """Check that no file of the endings below a folder is a secret by its name or by a folder's.

    Raises:
        AlwaysAsk: one is.
        _NotKnown: there are too many to look at.
    """
    todo, looked = [folder], 0
    while todo:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    looked += 1
                    if looked > _MOST_BELOW:
                        raise _NotKnown
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
                    elif entry.name.endswith(endings) and (found := secret(entry.path)) is not None:
                        raise AlwaysAsk(found)
        except OSError:  # no folder, or one that cannot be read
            continue


def _check_writer(name: str, operands: Sequence[str], folders: Sequence[str]) -> None:
    if name not in ("cp", "mv"):
        for operand in operands:
            _writable(operand, folders)
        return
    *sources, target = operands
    for source in sources:
        last = source.rstrip("/").rpartition("/")[2]
        if last in ("", ".", ".."):
            raise _NotKnown
        _readable(source, folders)  # under another name it would be no secret any more
        if name == "mv":
            _checked(source, folders, moved)
        # into a folder of that name, if it is one when the command runs
        _writable(f"{target}/{last}", folders)
    _checked(target, folders, moved if name == "mv" else protected)


def _check_cd(command: Command, words: Sequence[str], folders: list[str]) -> None:
    """Add where a `cd` may lead; where it fails, the command goes on from where it was."""
    operands = _parsed(READERS["cd"], words).operands
    target = operands[0]
    # bash takes `..` off by name, the system by folder: through a link they differ
    if target in ("", "-") or ".." in target.split("/"):
        raise _NotKnown
    reached = [resolve(target, folder).path for folder in folders]
    if command.piped:
        return  # in a shell of its own
    folders += [path for path in dict.fromkeys(reached) if path not in folders]
    if len(folders) > _MOST_FOLDERS:
        raise _NotKnown


def _check_find(_: Command, words: Sequence[str], folders: list[str]) -> None:
    at = 0
    while at < len(words) and not words[at].startswith("-"):
        _readable(words[at], folders)
        at += 1
    while at < len(words):
        if words[at] not in FIND:
            raise _NotKnown
        value = FIND[words[at]]
        if value is not None:
            at += 1
            if at == len(words) or not value.fullmatch(words[at]):
                raise _NotKnown
        at += 1


def _check_sed(_: Command, words: Sequence[str], folders: list[str]) -> None:
    if len(words) < 2 or words[0] != "-n" or not SED_SCRIPT.fullmatch(words[1]):
        raise _NotKnown
    for word in words[2:]:
        if word.startswith("-"):
            raise _NotKnown
        _readable(word, folders)


def _check_date(_: Command, words: Sequence[str], __: list[str]) -> None:
    if not all(word.startswith("+") for word in _parsed(READERS["date"], words).operands):
        raise _NotKnown  # anything else sets the clock


def _check_echo(_: Command, __: Sequence[str], ___: list[str]) -> None:
    """Accept any literal words: echo can only say them."""


_SPECIAL: Final[dict[str, Callable[[Command, Sequence[str], list[str]], None]]] = {
    "cd": _check_cd,
    "find": _check_find,
    "sed": _check_sed,
    "date": _check_date,
    "echo": _check_echo,
}


def _readable(word: str, folders: Sequence[str]) -> Sequence[Place]:
    """Check that a path leads into the workspace, from wherever the command may be, and to no secret."""
    return [] if word == "-" else _checked(word, folders, secret)


def _writable(word: str, folders: Sequence[str]) -> None:
    """Check that a path leads into the workspace, from wherever it is taken, and to nothing protected."""
    _checked(word, folders, protected)


def _checked(word: str, folders: Sequence[str], reason: Callable[[str], str | None]) -> list[Place]:
    """Return where a path leads from each folder.

    Raises:
        AlwaysAsk: there is a reason against one of them; that goes before everything else.
        Refused: one of them lies outside the workspace.
    """
    places: list[Place] = []
    outside: Refused | None = None
    for folder in folders:
        try:
            place = resolve(word, folder)
        except Refused as refusal:
            outside = refusal
            continue
        found = reason(place.path)
        if found is not None:
            raise AlwaysAsk(found)
        places.append(place)
    if outside is not None:
        raise outside
    return places


def _is_folder(place: Place) -> bool:
    try:
        return stat.S_ISDIR(os.stat(place.path).st_mode)  # noqa: PTH116
    except OSError:
        return False
