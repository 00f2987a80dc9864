"""Playbooks: SKILL.md files in the open form, read without trusting a byte of them.

The form (agentskills.io, "Specification"): a folder with a `SKILL.md` that begins with YAML between
two `---` lines (`name`, `description`, optionally `allowed-tools` and more) and goes on in Markdown.

Real files break YAML's rules all the time (`description: a: b`), so what is not valid YAML is read
line by line. One thing is never read leniently: the restriction. A playbook that says in any
spelling which tools it may use, and says it so that it cannot be read for certain, is unusable;
guessing there could only make it wider than its author meant.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from .descriptor import EntryPoint, Playbook, Problem
from .front_matter import RESTRICTION, Field, Unreadable, fields_of, resembles_restriction, split

__all__ = ["DESCRIPTION_LIMIT", "FILE_LIMIT", "NAME_LIMIT", "read", "read_folder"]

#: bytes of a SKILL.md. A playbook goes whole into a model's context, so this is already generous.
FILE_LIMIT: Final = 256 * 1024
#: characters of a name (agentskills.io, "name field").
NAME_LIMIT: Final = 64
#: characters of a description. The open form says 1024; longer ones are in use and harm nobody.
DESCRIPTION_LIMIT: Final = 4096

_FILE_NAMES = ("SKILL.md", "skill.md")
_BETWEEN: Final = r"[-_\u2010-\u2015]?"
_RESTRICTING: Final = "(?:allowed|permitted|restricted|only)"
_KEY: Final = f"(?:{_RESTRICTING}{_BETWEEN}tools?|tools?{_BETWEEN}{_RESTRICTING})"
_RESTRICTION_WORD = re.compile(rf"[\s>|\"'{{?-]*{_KEY}\b", re.IGNORECASE)
_RESTRICTION_INSIDE = re.compile(
    rf"(?:{_KEY}|allowed tools?)[\"']?\s*[:=\uff1a]",
    re.IGNORECASE,
)
_TOOL = re.compile(r"[^\s,()]+(?:\([^()]*\))?")


def read(path: Path, *, dist: str = "", entry_point: str = "") -> Playbook | Problem:
    """Read one playbook.

    Args:
        path: a `SKILL.md`, or the folder that holds it.
        dist: the distribution it came with, for the playbook and for the report.
        entry_point: `group: name = value`, for the report.

    Returns:
        the playbook, or the `Problem` (file, line, reason, fix) that makes it unusable. Never raises
        for anything that stands in the file.
    """
    file = path
    try:
        file = _file_of(path)
        return _playbook(file, _bytes_of(file), dist)
    except (Unreadable, OSError) as error:
        refusal = error if isinstance(error, Unreadable) else Unreadable(f"cannot be read ({error.strerror})")
        where = f"{file}:{refusal.line}" if refusal.line else f"{file}"
        return Problem(
            dist=dist or str(file),
            entry_point=entry_point,
            phase="playbook",
            reason=f"{where}: {refusal.reason}",
            fix=refusal.fix or f"edit {where}",
            quarantined=False,
        )


def read_folder(
    folder: Path, *, dist: str = "", entry_point: EntryPoint | None = None
) -> tuple[tuple[Playbook, ...], tuple[Problem, ...]]:
    """Read every playbook of a package: the folder itself, or each of its folders that has a SKILL.md.

    Args:
        folder: the package's folder.
        dist: the distribution it belongs to (default: the entry point's).
        entry_point: the line of `chalie.skills` that names the package, for the report.

    Returns:
        the playbooks by name, and one problem for each that is unusable. A name used twice is kept
        for the first folder in alphabetical order and reported for the others.
    """
    dist = dist or (entry_point.dist if entry_point else "")
    line = f"{entry_point.group}: {entry_point.name} = {entry_point.value}" if entry_point else ""
    playbooks: dict[str, Playbook] = {}
    problems: list[Problem] = []
    for file in _files_in(folder):
        found = read(file, dist=dist, entry_point=line)
        if isinstance(found, Problem):
            problems.append(found)
        elif found.name in playbooks:
            first = playbooks[found.name].path
            problems.append(
                Problem(
                    dist=dist or str(file),
                    entry_point=line,
                    phase="playbook",
                    reason=f"{file}: the name {found.name!r} is taken by {first}",
                    fix=f"give one of the two another `name:` ({file})",
                    quarantined=False,
                )
            )
        else:
            playbooks[found.name] = found
    if not playbooks and not problems:
        problems.append(
            Problem(
                dist=dist or str(folder),
                entry_point=line,
                phase="playbook",
                reason=f"{folder} holds no folder with a SKILL.md",
                fix="put each playbook into a folder of its own, as <folder>/SKILL.md",
                quarantined=False,
            )
        )
    return tuple(playbooks[name] for name in sorted(playbooks)), tuple(problems)


def _files_in(folder: Path) -> Iterator[Path]:
    try:
        children = sorted(child for child in folder.iterdir() if child.is_dir())
    except OSError:
        return
    for place in (folder, *children):
        for name in _FILE_NAMES:
            if (place / name).is_file():
                yield place / name
                break


def _file_of(path: Path) -> Path:
    if path.is_dir():
        for name in _FILE_NAMES:
            if (path / name).exists():
                return path / name
        raise Unreadable("the folder has no SKILL.md", fix=f"write {path / 'SKILL.md'}")
    return path


def _bytes_of(file: Path) -> bytes:
    if not file.is_file():  # a pipe or a device would block the reader for ever
        raise Unreadable("is not a regular file", fix=f"replace {file} by a text file")
    with file.open("rb") as stream:
        data = stream.read(FILE_LIMIT + 1)
    if len(data) > FILE_LIMIT:
        raise Unreadable(
            f"is over {FILE_LIMIT // 1024} KiB; a playbook goes whole into the model's context",
            fix=f"move the long parts of {file} into files beside it and name them in the steps",
        )
    return data


def _playbook(file: Path, data: bytes, dist: str) -> Playbook:
    front, first_line, body = split(_text_of(data))
    fields, loose = fields_of(front, first_line)
    tools = _restriction(fields, front, first_line, loose=loose)
    _check_below(body, first_line + len(front) + 1)
    description = _description(fields.get("description"), first_line)
    return Playbook(
        dist=dist,
        name=_name(fields.get("name"), file),
        description=description,
        allowed_tools=tools,
        body=body.strip("\n") + "\n",
        path=str(file),
        hash=hashlib.sha256(data).hexdigest(),
    )


def _text_of(data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"is not UTF-8 (byte {error.start})", line, "save the file as UTF-8") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _restriction(
    fields: dict[str, Field], front: Sequence[str], first_line: int, *, loose: bool
) -> tuple[str, ...] | None:
    """Return the tools the playbook may use, None where it restricts nothing.

    Raises:
        Unreadable: where a restriction is there in any form and cannot be read for certain.
    """
    read_at = fields[RESTRICTION].line if RESTRICTION in fields else 0
    for number, line in enumerate(front, first_line):
        # Where the structure is only guessed, a restriction may stand in the middle of a line too.
        if number != read_at and (
            _speaks_of_restriction(line) or (loose and _RESTRICTION_INSIDE.search(line))
        ):
            raise Unreadable(
                "has an `allowed-tools` that is not at the margin or not of the form `allowed-tools: …`",
                number,
                "write it as `allowed-tools: first second`, not indented",
            )
    if not read_at:
        return None
    value = fields[RESTRICTION].value
    names = value if isinstance(value, tuple) else _tool_names(value or "")
    if names is None or (not names and value != ()) or not all(_readable(name) for name in names):
        raise Unreadable(
            "has an `allowed-tools` that cannot be read, so it may not be used at all",
            read_at,
            "write it as `allowed-tools: first second`, or `allowed-tools: []` for none",
        )
    return tuple(dict.fromkeys(name.strip() for name in names))


def _check_below(body: str, first_line: int) -> None:
    """Refuse a restriction that slipped out of the front matter, behind a `---` that closed it early."""
    lines = body.split("\n")
    start = next((index for index, line in enumerate(lines) if line.strip()), len(lines))
    for index in range(start, len(lines)):
        if not lines[index].strip():
            return
        if _RESTRICTION_WORD.match(lines[index]):
            raise Unreadable(
                "has an `allowed-tools` below the front matter, where it restricts nothing",
                first_line + index,
                "move it between the two `---` lines",
            )


def _speaks_of_restriction(line: str) -> bool:
    """Say whether a line could be meant as a restriction, however it is written."""
    if _RESTRICTION_WORD.match(line) is not None:
        return True
    key, colon, _ = line.partition(":")
    # More words than two are a sentence, as in a description that goes over several lines.
    return bool(colon) and len(key.strip(" \t-?>|{'\"").split()) <= 2 and resembles_restriction(key)


def _tool_names(text: str) -> tuple[str, ...] | None:
    """Split `A B(c:*), D` at blanks and commas outside parentheses; None where something is left over."""
    names = tuple(_TOOL.findall(text))
    left = _TOOL.sub("", text).replace(",", "").strip()
    return None if left else names


def _readable(name: str) -> bool:
    return bool(name.strip()) and name.isprintable() and _TOOL.fullmatch(name.strip()) is not None


def _name(found: Field | None, file: Path) -> str:
    value = found.value if found else None
    name = (value if isinstance(value, str) else file.parent.name).strip()
    line = found.line if found else 1
    if not name or len(name) > NAME_LIMIT or not name.isprintable():
        raise Unreadable(
            f"the name {name[:80]!r} is not 1 to {NAME_LIMIT} printable characters",
            line,
            "write `name:` as small letters, digits and `-`, like the folder",
        )
    return name


def _description(found: Field | None, first_line: int) -> str:
    value = found.value if found else None
    text = value if isinstance(value, str) else " ".join(value or ())
    text = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    if not text:
        raise Unreadable(
            "its description cannot be read as text"
            if found
            else "has no description, so none could find it",
            found.line if found else first_line,
            "add `description:` with what it does and when to use it",
        )
    if len(text) > DESCRIPTION_LIMIT:
        raise Unreadable(
            f"its description has {len(text)} characters; {DESCRIPTION_LIMIT} at most",
            found.line if found else first_line,
            "keep to what it does and when to use it; the steps belong in the body",
        )
    return text
