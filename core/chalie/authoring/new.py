"""A new package, made from one of Chalie's own by renaming it: so what is copied is tested like the rest."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from attrs import frozen

from ..errors import ChalieError, NameRefused
from ..names import check_name

__all__ = ["KINDS", "Kind", "Made", "make"]

_HERE: Final = Path(__file__).parent
#: a package's words: lower case, so that the distribution's name is its own normal form (PEP 503).
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
#: letters of a name: longer ones are not read, and would break the lines they stand in.
_LONGEST: Final = 40
#: what is copied of a template; what else lies there tools have made.
_COPIED: Final = ("pyproject.toml", "README.md", "LICENSE", "src", "tests")
#: files that a package of its own has and one of a workspace has not.
_ADDED: Final[Mapping[str, str]] = MappingProxyType(
    {"ci.yml": ".github/workflows/ci.yml", "gitignore": ".gitignore"}
)
#: names that the module of an ability uses already.
_TAKEN: Final = frozenset(
    {"Ability", "Any", "False", "Mapping", "None", "Path", "SideEffect", "ToolResult", "True"}
)
_WORKSPACE: Final = "\n[tool.uv.sources]\nchalie = { workspace = true }\n"
_AUTHORS: Final = 'authors = [{ name = "The Chalie authors" }]'
_LINT: Final = b"      - run: chalie lint .\n"
_EXCEPTION: Final = re.compile(r"\n\[tool\.chalie\.lint\.exceptions\]\n[^\n]+\n")


@frozen
class Kind:
    """What can be made.

    Attributes:
        prefix: what the distribution's name begins with.
        words: of the package it is made from, lower case, with blanks between.
    """

    prefix: str
    words: str

    @property
    def template(self) -> str:
        """The distribution it is made from."""
        return self.prefix + self.words.replace(" ", "-")


KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "ability": Kind("chalie-ability-", "link shelf"),
        "policy": Kind("chalie-policy-", "quiet hours"),
        "skill": Kind("chalie-skill-", "pack a suitcase"),
    }
)


@frozen
class Made:
    """A package that was made.

    Attributes:
        dist: the distribution's name.
        folder: where it is.
        files: its files, relative to the folder, in order.
    """

    dist: str
    folder: Path
    files: tuple[str, ...]


def make(kind: str, name: str, *, into: Path, author: str) -> Made:
    """Make a package in a folder of its own; all of it or nothing is there afterwards.

    Args:
        kind: a key of `KINDS`.
        name: words joined by `-` or `_`, with the kind's prefix or without, as in `dice-roll`.
        into: the folder that gets the package's folder.
        author: whom its metadata names.

    Raises:
        NameRefused: the name breaks the rules of what it is for.
        ChalieError: `not-allowed`: there is such a folder already, or it cannot be written.
    """
    made = KINDS[kind]
    words = _words(kind, name)
    dist = made.prefix + "-".join(words)
    folder = into / dist
    if folder.exists() or folder.is_symlink():
        raise ChalieError(
            f"{folder} is there already; nothing was written",
            code="not-allowed",
            hint=f"choose another name, or another place: chalie new {kind} {name} --into FOLDER",
        )
    contents = dict(sorted(_contents(made, words, author)))
    try:
        into.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".chalie-new-", dir=into) as aside:
            _write(Path(aside, dist), contents)
            Path(aside, dist).rename(folder)
    except OSError as error:
        raise ChalieError(
            f"{folder} could not be written: {error.strerror or error}",
            code="not-allowed",
            hint=f"choose a place you may write to: chalie new {kind} {name} --into FOLDER",
        ) from error
    return Made(dist, folder, tuple(contents))


def _words(kind: str, name: str) -> tuple[str, ...]:
    bare = re.sub("[-_]+", "-", name)
    bare = (bare.removeprefix(KINDS[kind].prefix) or bare).replace("-", "_")
    if not _NAME.fullmatch(bare) or len(bare) > _LONGEST:
        raise NameRefused(
            f"{name[:80]!r} is no name for a package",
            hint=f"use up to {_LONGEST} of a-z and 0-9, with - or _ between words, as in dice-roll",
        )
    if kind == "ability":
        check_name(bare)
    return tuple(bare.split("_"))


def _contents(kind: Kind, words: tuple[str, ...], author: str) -> Iterator[tuple[str, bytes]]:
    """Yield path and bytes of every file of the package."""
    renamed = _renamer(kind.words.split(), words)
    template = _template(kind)
    for path in sorted(template.rglob("*")):
        relative = path.relative_to(template)
        if path.is_file() and relative.parts[0] in _COPIED and not _a_tools(relative):
            text = renamed(path.read_text(encoding="utf-8"))
            if relative.name == "pyproject.toml":
                text = _of_its_own(text, words, author)
            yield renamed(relative.as_posix()), text.encode()
    for source, target in _ADDED.items():
        data = (_HERE / source).read_bytes()
        # lint is about the tools of a catalogue; there are none in the other kinds
        yield target, data if kind is KINDS["ability"] else data.replace(_LINT, b"")


def _a_tools(relative: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in relative.parts)


def _template(kind: Kind) -> Path:
    """Return the folder of the package it is made from: beside this file in a wheel, else in the checkout."""
    packed = _HERE / "templates" / kind.template
    return packed if packed.is_dir() else _HERE.parents[2] / "plugins" / kind.template


def _renamer(old: list[str], new: tuple[str, ...]) -> _Renamer:
    forms = {
        "-".join(old): "-".join(new),
        "_".join(old): "_".join(new),
        " ".join(old): " ".join(new),
        " ".join(old).capitalize(): " ".join(new).capitalize(),
        "".join(map(str.capitalize, old)): _class_name(new),
    }
    return _Renamer(forms)


class _Renamer:
    """Exchanges every form of a name, all at once: a new name may hold the old one."""

    def __init__(self, forms: Mapping[str, str]) -> None:
        self._forms = dict(forms)
        self._pattern = re.compile("|".join(map(re.escape, forms)))

    def __call__(self, text: str) -> str:
        return self._pattern.sub(lambda found: self._forms[found.group()], text)


def _class_name(words: tuple[str, ...]) -> str:
    name = "".join(map(str.capitalize, words))
    return f"{name}Tool" if name in _TAKEN else name


def _of_its_own(text: str, words: tuple[str, ...], author: str) -> str:
    """Return the project file without what it has as a member of this workspace."""
    authors = f"authors = [{{ name = {json.dumps(author, ensure_ascii=False)} }}]"
    text = text.replace(_WORKSPACE, "").replace(_AUTHORS, authors)
    return text if _needs_exception(words) else _EXCEPTION.sub("", text)


def _needs_exception(words: tuple[str, ...]) -> bool:
    """Tell whether lint has to be told why a name ends in no verb: a needless exception is a fault too."""
    from .vocabulary import load

    vocabulary = load()
    return len(words) > 1 and words[-1] not in vocabulary.verbs and words[-1] not in vocabulary.allowed


def _write(folder: Path, contents: Mapping[str, bytes]) -> None:
    for relative, data in contents.items():
        path = folder / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
