"""Rename a parameter in its ability's source, where every use of the name can be seen to be one of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from .finding import Finding

__all__ = ["rename"]

_CALL: Final = re.compile(r"call it ([A-Za-z][A-Za-z0-9_]*)")
#: methods that are given a call's arguments.
_GIVEN: Final = frozenset({"run", "classify", "destination"})
#: class facts whose texts name parameters.
_TABLES: Final = frozenset({"action_required", "aliases"})


def rename(paths: Sequence[Path], findings: Sequence[Finding]) -> list[tuple[Path, str, str]]:
    """Return (path, text before, text after) of the files in which parameters are renamed.

    A parameter is renamed only where all of this holds: one file of the project has the name as a text; there
    it is a key of `properties` that `parameters()` gives literally, and otherwise only stands in `required`,
    in a class fact that names parameters, or picks the argument in `run`, `classify` or `destination`; these
    use their arguments for nothing else; and the new name is not in use. Callers that keep the old spelling
    are healed by the host.

    Args:
        paths: the project's source files.
        findings: of the rule `parameter-case`.
    """
    texts = {path: text for path in paths if (text := _text(path)) is not None}
    changed = dict(texts)
    for finding in findings:
        old, found = finding.where.removeprefix("parameter "), _CALL.fullmatch(finding.fix)
        if found is None or not old.isidentifier():
            continue
        holding = [path for path in texts if re.search(rf"\b{re.escape(old)}\b", texts[path])]
        if len(holding) != 1 or any(re.search(rf"\b{found[1]}\b", text) for text in texts.values()):
            continue
        uses = _uses(changed[holding[0]], finding.tool, old)
        if uses:
            changed[holding[0]] = _replaced(changed[holding[0]], uses, old, found[1])
    return [(path, texts[path], changed[path]) for path in texts if changed[path] != texts[path]]


def _text(path: Path) -> str | None:
    try:
        text = path.read_bytes().decode("utf-8")
        ast.parse(text)
    except (OSError, UnicodeDecodeError, SyntaxError, ValueError, RecursionError):
        return None
    return None if "\r" in text else text


def _uses(text: str, tool: str, old: str) -> list[ast.Constant]:
    """Return the texts that are the parameter's name; empty where any use of it cannot be followed."""
    tree = ast.parse(text)
    owners = [node for node in tree.body if isinstance(node, ast.ClassDef) and _name(node) == tool]
    if len(owners) != 1:
        return []
    known = list(_known(owners[0], old))
    every = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _says(node.value, old)
    ]
    named = any(_says(identifier, old) for identifier in _identifiers(tree))
    said = sum(len(re.findall(rf"\b{re.escape(old)}\b", line)) for line in text.splitlines())
    followed = {id(node) for node in known} == {id(node) for node in every} and said == len(known)
    return known if followed and not named and _declared(owners[0], old) else []


def _says(text: str, old: str) -> bool:
    return re.search(rf"\b{re.escape(old)}\b", text) is not None


def _identifiers(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.arg | ast.keyword) and node.arg:
            yield node.arg


def _name(owner: ast.ClassDef) -> str | None:
    """Return what the class's `name()` gives, where it is one literal."""
    method = _method(owner, "name")
    returns = [node for node in ast.walk(method) if isinstance(node, ast.Return)] if method else []
    if len(returns) == 1 and isinstance(returns[0].value, ast.Constant):
        value = returns[0].value.value
        return value if isinstance(value, str) else None
    return None


def _method(owner: ast.ClassDef, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    for node in owner.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return node
    return None


def _declared(owner: ast.ClassDef, old: str) -> bool:
    return any(True for _ in _keys(owner, old))


def _known(owner: ast.ClassDef, old: str) -> Iterator[ast.Constant]:
    """Yield the texts that name the parameter, as far as they can be told to."""
    yield from _keys(owner, old)
    method = _method(owner, "parameters")
    for key, value in _pairs(method) if method else ():
        if key == "required" and isinstance(value, ast.List | ast.Tuple):
            yield from _equal(value.elts, old)
    for node in owner.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id in _TABLES for target in targets):
            yield from _equal(ast.walk(node), old)
    for name in _GIVEN:
        given = _method(owner, name)
        if given is not None and len(given.args.args) == 2:
            uses = list(_picks(given, given.args.args[1].arg, old))
            yield from uses


def _keys(owner: ast.ClassDef, old: str) -> Iterator[ast.Constant]:
    method = _method(owner, "parameters")
    for key, value in _pairs(method) if method else ():
        if key == "properties" and isinstance(value, ast.Dict):
            yield from _equal([each for each in value.keys if each is not None], old)


def _pairs(node: ast.AST) -> Iterator[tuple[object, ast.expr]]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Dict):
            for key, value in zip(inner.keys, inner.values, strict=True):
                if isinstance(key, ast.Constant):
                    yield key.value, value


def _equal(nodes: Iterator[ast.AST] | Sequence[ast.AST], old: str) -> Iterator[ast.Constant]:
    for node in nodes:
        if isinstance(node, ast.Constant) and node.value == old:
            yield node


def _picks(method: ast.AST, params: str, old: str) -> Iterator[ast.Constant]:
    """Yield the names by which a method picks its arguments; nothing where it uses them in another way."""
    picked: list[ast.Constant] = []
    plain = 0
    for node in ast.walk(method):
        chosen: ast.expr | None = None
        if isinstance(node, ast.Subscript) and _is(node.value, params):
            chosen = node.slice
        elif isinstance(node, ast.Compare) and len(node.ops) == 1 and _is(node.comparators[0], params):
            chosen = node.left if isinstance(node.ops[0], ast.In | ast.NotIn) else None
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            if _is(node.func.value, params) and node.func.attr == "get":
                chosen = node.args[0]
            elif node.func.attr == "param" and len(node.args) > 1 and _is(node.args[0], params):
                chosen = node.args[1]
        if isinstance(chosen, ast.Constant):
            plain += 1
            if chosen.value == old:
                picked.append(chosen)
    if plain == sum(1 for node in ast.walk(method) if _is(node, params)):
        yield from picked


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _replaced(text: str, uses: Sequence[ast.Constant], old: str, new: str) -> str:
    lines = [line.encode() for line in text.splitlines(keepends=True)]
    for node in sorted(uses, key=lambda node: (node.lineno, node.col_offset), reverse=True):
        line, begin, end = node.lineno - 1, node.col_offset, node.end_col_offset or 0
        written = lines[line][begin:end].decode()
        lines[line] = lines[line][:begin] + written.replace(old, new).encode() + lines[line][end:]
    return b"".join(lines).decode()
