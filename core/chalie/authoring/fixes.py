"""Repairs that change nothing but what a rule minds: each is proven before a file is replaced."""

from __future__ import annotations

import ast
import difflib
import io
import os
import re
import tokenize
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from .finding import Finding
from .letters import look_alikes, without_invisible

__all__ = ["Repair", "repair"]

#: folders of a project that hold no source of its wheel.
_BESIDE: Final = frozenset({".git", ".venv", "venv", "build", "dist", "node_modules", "tests", "__pycache__"})
_LETTERS: Final = frozenset({"invisible", "look-alike"})
#: the methods that give an ability's texts.
_FACTS: Final = frozenset({"summary", "examples", "search_tooltip", "parameters"})
_ESCAPE: Final = re.compile(r"\\(?:u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|N\{[^}]+\})")


@frozen
class Repair:
    """A file that was, or would be, changed.

    Attributes:
        path: the file.
        rules: the ids of what is repaired in it.
        lines: how many of its lines change.
    """

    path: Path
    rules: tuple[str, ...]
    lines: int


def repair(folder: Path, findings: Sequence[Finding]) -> list[Repair]:
    """Repair in a project's folder what can be repaired safely; the findings that stay are as they were.

    A source file is replaced only where its code is the same afterwards but for the texts that were meant,
    and pyproject.toml only where it says the same but for the exceptions that are gone. Each is written aside
    and renamed into its place.

    Args:
        folder: it has a pyproject.toml.
        findings: what lint said of it.
    """
    done: list[Repair] = []
    rules = {finding.rule.id for finding in findings if finding.rule.fixable}
    if rules & _LETTERS:
        done += filter(None, (_letters(path, rules & _LETTERS) for path in _sources(folder)))
    renamed = [finding for finding in findings if finding.rule.id == "parameter-case"]
    if renamed:
        from .renames import rename

        for path, before, after in rename(list(_sources(folder, _BESIDE - {"tests"})), renamed):
            done.append(write(path, before, after, ["parameter-case"]))
    stale = {finding.key for finding in findings if finding.rule.id == "exception-stale"}
    if stale:
        done += filter(None, [_exceptions(folder / "pyproject.toml", stale)])
    return done


def write(path: Path, before: str, after: str, rules: Iterable[str]) -> Repair:
    """Put a new text in a file's place in one step, with its mode."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_bytes(after.encode("utf-8"))
        aside.chmod(path.stat().st_mode & 0o7777)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    steps = difflib.SequenceMatcher(None, before.split("\n"), after.split("\n"), autojunk=False).get_opcodes()
    changed = sum(max(i2 - i1, j2 - j1) for kind, i1, i2, j1, j2 in steps if kind != "equal")
    return Repair(path, tuple(sorted(rules)), changed)


def _sources(folder: Path, beside: frozenset[str] = _BESIDE) -> Iterator[Path]:
    """Yield a project's Python files, links and those in some folders left out."""
    for path in sorted(folder.rglob("*.py")):
        inside = path.relative_to(folder).parts[:-1]
        if not path.is_symlink() and not any(part in beside or part.startswith(".") for part in inside):
            yield path


def _letters(path: Path, rules: set[str]) -> Repair | None:
    """Repair the texts of one file: its string literals, and no other part of it."""
    text = _read(path)
    if text is None or (text.isascii() and not _ESCAPE.search(text)):
        return None
    mend = _mender(rules)
    changed = _in_literals(text, mend)
    if changed == text or not _same_code(text, changed, mend):
        return None
    return write(path, text, changed, rules)


def _mender(rules: set[str]) -> Callable[[str], str]:
    def mend(text: str) -> str:
        if "invisible" in rules:
            text = without_invisible(text)
        if "look-alike" in rules:
            for word, wanted in look_alikes(text):
                text = re.sub(rf"(?<![^\W\d_]){re.escape(word)}(?![^\W\d_])", wanted, text)
        return text

    return mend


def _in_literals(text: str, mend: Callable[[str], str]) -> str:
    """Return a source with the literals mended that an ability's descriptions are written in."""
    try:
        spans = [_span(node) for node in _descriptions(ast.parse(text))]
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError, ValueError, RecursionError):
        return text
    lines = text.splitlines(keepends=True)
    for token in reversed(tokens):
        if token.type != tokenize.STRING or token.start[0] != token.end[0]:
            continue
        line, begin, end = token.start[0] - 1, token.start[1], token.end[1]
        at = (token.start[0], len(lines[line][:begin].encode()))
        literal = _literal(token.string, mend) if any(a <= at < b for a, b in spans) else None
        if literal is not None:
            lines[line] = lines[line][:begin] + literal + lines[line][end:]
    return "".join(lines)


def _descriptions(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the texts that people and models read; a name, or a text the code compares with, is none."""
    for owner in ast.walk(tree):
        if not isinstance(owner, ast.ClassDef):
            continue
        for method in owner.body:
            if not isinstance(method, ast.FunctionDef) or method.name not in _FACTS:
                continue
            for node in ast.walk(method):
                if method.name != "parameters" and isinstance(node, ast.Return) and node.value is not None:
                    yield from _texts(node.value)
                elif method.name == "parameters" and isinstance(node, ast.Dict):
                    for key, value in zip(node.keys, node.values, strict=True):
                        if isinstance(key, ast.Constant) and key.value in ("description", "title"):
                            yield from _texts(value)


def _texts(value: ast.expr) -> Iterator[ast.Constant]:
    """Yield a text, or the texts of a list or tuple."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value
    elif isinstance(value, ast.List | ast.Tuple):
        for each in value.elts:
            yield from _texts(each)


def _span(node: ast.Constant) -> tuple[tuple[int, int], tuple[int, int]]:
    return (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)


def _literal(written: str, mend: Callable[[str], str]) -> str | None:
    """Return a literal whose value is mended; None where nothing is to be, or it cannot be written so."""
    try:
        value = ast.literal_eval(written)
    except (ValueError, SyntaxError):
        return None
    if not isinstance(value, str) or mend(value) == value:
        return None
    # characters that are written as escapes are put there as themselves first, to be mended like the others
    plain = _ESCAPE.sub(lambda found: _shown(found[0]), written)
    mended = mend(plain)
    try:
        return mended if ast.literal_eval(mended) == mend(value) else None
    except (ValueError, SyntaxError):
        return None


def _shown(escape: str) -> str:
    """Return the character of an escape where it is one that is minded, else the escape as it is."""
    try:
        character = ast.literal_eval(f"'{escape}'")
    except (ValueError, SyntaxError):
        return escape
    return character if isinstance(character, str) and not character.isascii() else escape


def _same_code(before: str, after: str, mend: Callable[[str], str]) -> bool:
    """Whether two sources are the same code, but for texts of which one is the other mended."""
    try:
        old, new = ast.parse(before), ast.parse(after)
    except (SyntaxError, ValueError):
        return False
    for node in ast.walk(old):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = mend(node.value)
    for node in ast.walk(new):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = mend(node.value)
    return ast.dump(old) == ast.dump(new)


def _exceptions(path: Path, stale: set[str]) -> Repair | None:
    """Remove stale exceptions, each a line of its own in its table."""
    text = _read(path)
    if text is None:
        return None
    kept: list[str] = []
    table = ""
    for line in text.split("\n"):
        if line.lstrip().startswith("["):
            table = line.strip()
        if table == "[tool.chalie.lint.exceptions]" and _key(line) in stale:
            continue
        kept.append(line)
    after = "\n".join(kept)
    if after == text or not _same_settings(text, after, stale):
        return None
    return write(path, text, after, ["exception-stale"])


def _key(line: str) -> str:
    try:
        parsed: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ""
    return next(iter(parsed)) if len(parsed) == 1 and isinstance(next(iter(parsed.values())), str) else ""


def _same_settings(before: str, after: str, stale: set[str]) -> bool:
    try:
        old, new = tomllib.loads(before), tomllib.loads(after)
    except tomllib.TOMLDecodeError:
        return False
    exceptions = old["tool"]["chalie"]["lint"]["exceptions"]
    for key in stale & exceptions.keys():
        if key not in new["tool"]["chalie"]["lint"].get("exceptions", {}):
            del exceptions[key]
    return bool(old == new)


def _read(path: Path) -> str | None:
    """Return a file's text with its line ends as they are; None where it is none."""
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return None if "\r" in text else text
