"""Write what is installed as a catalogue's files: JSON, Markdown and a site."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal

from ..catalogue.identity import Document
from ..errors import ConfigError
from .markdown import markdown
from .site import MARK, pages

__all__ = ["FORMS", "SCHEMA", "Form", "schema", "write"]

Form = Literal["json", "markdown", "html"]
FORMS: Final[tuple[Form, ...]] = ("json", "markdown", "html")
#: the JSON Schema of the file, beside this module and in the documentation.
SCHEMA: Final = "catalogue.schema.json"


def schema() -> Mapping[str, Any]:
    """Return the JSON Schema of a catalogue's file."""
    found: dict[str, Any] = json.loads((files(__package__) / SCHEMA).read_text("utf-8"))
    return found


def write(document: Document, folder: Path, forms: tuple[Form, ...] = FORMS) -> list[Path]:
    """Write a catalogue into a folder, making it; each file, and the site, is replaced in one step.

    Returns:
        What was written: files, and of the site its first page.

    Raises:
        ConfigError: it cannot be written, or `site` there is somebody else's folder.
    """
    makers: Mapping[Form, Callable[[Document, Path], Path]] = {
        "json": _json,
        "markdown": lambda found, into: _file(into / "catalogue.md", markdown(found)),
        "html": _site,
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [makers[form](document, folder) for form in forms]
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error.strerror or error}") from error


def _json(document: Document, folder: Path) -> Path:
    text = json.dumps(document.as_json(), ensure_ascii=False, indent=1)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # half of a surrogate pair, which only an escape can carry
        text = json.dumps(document.as_json(), indent=1)
    return _file(folder / "catalogue.json", text + "\n")


def _file(path: Path, text: str) -> Path:
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_text(text, encoding="utf-8", errors="replace")
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    return path


def _site(document: Document, folder: Path) -> Path:
    target = folder / "site"
    if target.exists() and not _ours(target):
        raise ConfigError(
            f"{target} is there already and no site of a catalogue, so it is not replaced",
            hint="name another folder, or remove it",
        )
    with tempfile.TemporaryDirectory(prefix=".site-", dir=folder) as scratch:
        made = Path(scratch, "made")
        for name, text in pages(document).items():
            path = made / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", errors="replace")
        if target.exists():
            target.rename(Path(scratch, "old"))
        made.rename(target)
    return target / "index.html"


def _ours(folder: Path) -> bool:
    """Whether a folder holds nothing but a site of ours, or nothing at all."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    found = [path for path in folder.rglob("*") if not path.is_dir()]
    return all(path.suffix == ".html" and MARK in path.read_text("utf-8", "replace") for path in found)
