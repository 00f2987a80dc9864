"""Generated packages: installed ones as plain folders, and real wheels, without any build tool.

A test that needs "a package that does X" writes one here in under a millisecond. Files are made an
hour old, so that a scan takes the package for settled; a test about fresh files asks for `age_s=0`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import time
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from textwrap import dedent, indent

from attrs import field, frozen

GROUP = "chalie.abilities"

EXAMPLES = (
    "do the thing",
    "please do the thing",
    "is there a way to do the thing",
    "the thing needs doing",
    "could you do the thing",
    "thing, now",
)


@frozen
class Package:
    """What a distribution is made of, before it is written anywhere.

    Attributes:
        dist: the distribution's name.
        files: path inside the import folder -> text or bytes.
        entry_points: group -> name -> value.
        version: its version.
        requires: `Requires-Dist` lines.
        metadata: further raw METADATA lines.
    """

    dist: str
    files: Mapping[str, str | bytes] = field(factory=dict)
    entry_points: Mapping[str, Mapping[str, str]] = field(factory=dict)
    version: str = "1.0"
    requires: tuple[str, ...] = ()
    metadata: tuple[str, ...] = ()

    @property
    def dist_info(self) -> str:
        """The name of its dist-info folder."""
        return f"{re.sub(r'[-_.]+', '_', self.dist)}-{self.version}.dist-info"


@frozen
class Installed:
    """A package that has been written into an import folder."""

    package: Package
    target: Path

    @property
    def dist_info(self) -> Path:
        return self.target / self.package.dist_info

    def path(self, relative: str) -> Path:
        return self.target / relative

    def rewrite(self, relative: str, text: str, *, record: bool = True, age_s: float = 3600) -> None:
        """Change one file in place, as an upgrade or an edit would; RECORD follows unless told not to."""
        path = self.target / relative
        path.write_text(text, encoding="utf-8")
        _age(path, age_s)
        if record:
            files = dict(self.package.files) | {relative: text}
            names = [*files, *(f"{self.package.dist_info}/{name}" for name in _meta(self.package))]
            _write_record(self.target, self.package.dist_info, names, age_s)

    def uninstall(self) -> None:
        """Remove every file of it, as `pip uninstall` does."""
        uninstall(self)


def ability_source(
    name: str,
    *,
    class_name: str | None = None,
    summary: str | None = None,
    examples: Iterable[str] = EXAMPLES,
    tooltip: str = "a generated ability",
    parameters: Mapping[str, object] | None = None,
    run: str = "return ToolResult.ok({'echo': params})",
    facts: Mapping[str, object] | None = None,
    before: str = "",
    inside: str = "",
    imports: bool = True,
) -> str:
    """Return the source of a module with one ability.

    Args:
        name: what the model calls it by.
        class_name: defaults to the name in CamelCase.
        parameters: its JSON Schema; one optional string `text` when left out.
        run: the body of `run(self, params)`.
        facts: class attributes, as `attribute -> value` (written with repr; a value of class `Raw` verbatim).
        before: module-level code above the class (side effects at import, helper classes).
        inside: further code of the class body.
        imports: whether the module imports Ability, SideEffect and ToolResult first.
    """
    schema = (
        parameters
        if parameters is not None
        else {"type": "object", "properties": {"text": {"type": "string"}}, "additionalProperties": False}
    )
    class_name = class_name or "".join(part.capitalize() for part in re.split(r"[^a-zA-Z0-9]+", name)) or "A"
    lines = ["from chalie import Ability, SideEffect, ToolResult"] if imports else []
    if before:
        lines += ["", dedent(before).strip("\n")]
    lines += ["", "", f"class {class_name}(Ability):"]
    lines += [f"    {key} = {value!r}" for key, value in (facts or {}).items()]
    answers = {
        "name": name,
        "summary": summary if summary is not None else f"Do the thing called {name}.",
        "examples": list(examples),
        "search_tooltip": tooltip,
        "parameters": schema,
    }
    for method, answer in answers.items():
        lines += ["", f"    def {method}(self):", f"        return {answer!r}"]
    if inside:
        lines += ["", indent(dedent(inside).strip("\n"), "    ")]
    lines += ["", "    def run(self, params):", indent(dedent(run).strip("\n"), "        "), ""]
    return "\n".join(lines)


class Raw(str):
    """A piece of code that stands for itself in `facts` (`Raw("SideEffect.READ")`)."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


READ = Raw("SideEffect.READ")


def ability_package(
    name: str, *, dist: str | None = None, version: str = "1.0", module: str | None = None, **source: object
) -> Package:
    """Return a package with one module and one ability; `source` goes to `ability_source`."""
    dist = dist or f"chalie-ability-{name.replace('_', '-')}"
    module = module or re.sub(r"[-.]+", "_", dist)
    return Package(
        dist=dist,
        version=version,
        files={f"{module}.py": ability_source(name, **source)},  # type: ignore[arg-type]
        entry_points={GROUP: {name: module}},
    )


def many(count: int, *, start: int = 0) -> Iterable[Package]:
    """Yield `count` different ability packages with words of their own, the same for the same number."""
    for number in range(start, start + count):
        noun, verb = _NOUNS[number % len(_NOUNS)], _VERBS[(number // len(_NOUNS)) % len(_VERBS)]
        name = f"{verb}_{noun}_{number}"
        yield ability_package(
            name,
            summary=f"{verb.capitalize()} the {noun} of collection {number} and report what was done.",
            examples=[
                f"{verb} my {noun} in collection {number}",
                f"can you {verb} the {noun} numbered {number}",
                f"I want to {verb} a {noun}",
                f"{noun} {verb} {number}",
                f"please {verb} {noun} number {number} for me",
                f"is there a tool to {verb} the {noun} of collection {number}",
            ],
            facts={"side_effect": READ},
        )


def install(target: Path, package: Package, *, record: bool = True, age_s: float = 3600) -> Installed:
    """Write a package into an import folder, as an installer would leave it.

    Args:
        target: the folder on the import path; made when missing.
        record: whether a RECORD is written.
        age_s: how old the files look, in seconds.
    """
    target.mkdir(parents=True, exist_ok=True)
    written: list[str] = []
    for relative, content in package.files.items():
        _write(target / relative, content, age_s)
        written.append(relative)
    info = target / package.dist_info
    info.mkdir(exist_ok=True)
    for name, content in _meta(package).items():
        _write(info / name, content, age_s)
        written.append(f"{package.dist_info}/{name}")
    if record:
        _write_record(target, package.dist_info, written, age_s)
    for folder in {(target / relative).parent for relative in written} - {target}:
        _age(folder, age_s)
    return Installed(package, target)


def install_editable(target: Path, project: Path, package: Package, *, age_s: float = 3600) -> Installed:
    """Write a package's files into a project folder and a `.pth` plus dist-info into the import folder."""
    project.mkdir(parents=True, exist_ok=True)
    for relative, content in package.files.items():
        _write(project / relative, content, age_s)
    pth = f"_editable_{re.sub(r'[-.]+', '_', package.dist)}.pth"
    shell = Package(
        dist=package.dist,
        version=package.version,
        files={pth: f"{project}\n"},
        entry_points=package.entry_points,
        requires=package.requires,
        metadata=package.metadata,
    )
    installed = install(target, shell, age_s=age_s)
    url = json.dumps({"url": project.resolve().as_uri(), "dir_info": {"editable": True}})
    _write(installed.dist_info / "direct_url.json", url, age_s)
    names = [pth, *(f"{shell.dist_info}/{name}" for name in [*_meta(shell), "direct_url.json"])]
    _write_record(target, shell.dist_info, names, age_s)
    return Installed(package, target)


def uninstall(installed: Installed) -> None:
    """Remove the files of an installed package and the folders they leave empty."""
    for relative in installed.package.files:
        path = installed.target / relative
        path.unlink(missing_ok=True)
        for folder in path.relative_to(installed.target).parents:
            whole = installed.target / folder
            if whole != installed.target and whole.is_dir() and not any(_real(whole)):
                shutil.rmtree(whole)
    shutil.rmtree(installed.dist_info, ignore_errors=True)


def write_wheel(folder: Path, package: Package) -> Path:
    """Write a real wheel that pip and uv install; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = package.dist_info.removesuffix(".dist-info")
    path = folder / f"{stem}-py3-none-any.whl"
    rows: list[str] = []
    with zipfile.ZipFile(path, "w") as archive:
        meta = _meta(package)
        meta["WHEEL"] = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        meta.pop("INSTALLER")
        contents = dict(package.files) | {f"{package.dist_info}/{name}": text for name, text in meta.items()}
        for relative, content in contents.items():
            data = content if isinstance(content, bytes) else content.encode()
            archive.writestr(relative, data)
            rows.append(_row(relative, data))
        rows.append(f"{package.dist_info}/RECORD,,")
        archive.writestr(f"{package.dist_info}/RECORD", "\n".join(rows) + "\n")
    return path


def _meta(package: Package) -> dict[str, str]:
    head = ["Metadata-Version: 2.1", f"Name: {package.dist}", f"Version: {package.version}"]
    head += [f"Requires-Dist: {line}" for line in package.requires]
    head += list(package.metadata)
    files = {"METADATA": "\n".join(head) + "\n", "INSTALLER": "pip\n"}
    if package.entry_points:
        text = ""
        for group, points in package.entry_points.items():
            text += f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items()) + "\n"
        files["entry_points.txt"] = text
    return files


def _write(path: Path, content: str | bytes, age_s: float) -> None:
    data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    try:
        path.write_bytes(data)
    except FileNotFoundError:
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
    _age(path, age_s)


def _write_record(target: Path, dist_info: str, written: Iterable[str], age_s: float) -> None:
    rows = [_row(relative, (target / relative).read_bytes()) for relative in written]
    rows.append(f"{dist_info}/RECORD,,")
    _write(target / dist_info / "RECORD", "\n".join(rows) + "\n", age_s)


def _row(relative: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{relative},sha256={digest},{len(data)}"


def _age(path: Path, age_s: float) -> None:
    if age_s:
        then = time.time() - age_s
        os.utime(path, (then, then))


def _real(folder: Path) -> list[Path]:
    return [entry for entry in folder.iterdir() if entry.name != "__pycache__"]


_NOUNS = (
    "invoice", "calendar", "photo", "recipe", "ticket", "contract", "playlist", "garden", "train", "parcel",
    "budget", "lamp", "thermostat", "poem", "spreadsheet", "database", "meeting", "song", "map", "recording",
    "passport", "receipt", "wallet", "newsletter", "server", "backup", "translation", "survey", "podcast",
    "puzzle",
)  # fmt: skip
_VERBS = (
    "archive", "rename", "summarise", "share", "compare", "delete", "print", "convert", "schedule", "search",
    "compress", "publish", "encrypt", "count", "merge", "split", "label", "sort", "restore", "measure",
    "inspect", "duplicate", "verify", "repair", "export", "import", "annotate", "rotate", "filter", "group",
    "watch", "draft", "price", "book", "order",
)  # fmt: skip
