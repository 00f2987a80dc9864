"""What an author got wrong, in words to act on: which class, which fact, which line of which file."""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from ..errors import DescribeFailed
from . import installed

if TYPE_CHECKING:
    from ..ability import Ability

__all__ = ["NotAnAbility", "check_methods", "no_ability", "place"]

#: the facts that are methods -> how one is written.
METHODS: Final = {
    "name": 'return "…"',
    "summary": 'return "…"',
    "examples": 'return ["…", "…"]',
    "search_tooltip": 'return "…"',
    "parameters": 'return {"type": "object", "properties": {…}}',
    "run": "return ToolResult.ok(…)",
}


class NotAnAbility(DescribeFailed):
    """A class that was meant to be an ability and is none.

    Args:
        cls: the class.
        message, hint: as of every refusal.
    """

    def __init__(self, cls: type, message: str, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.cls = cls


def check_methods(cls: type[Ability]) -> None:
    """Refuse a class that gives a fact as a value where a method belongs.

    Raises:
        DescribeFailed: naming class and fact, and how the method is written.
    """
    for fact, body in METHODS.items():
        given = inspect.getattr_static(cls, fact, None)
        if isinstance(given, staticmethod | classmethod) or callable(given):
            continue
        kind = "a property" if isinstance(given, property) else f"the value {given!r:.60}"
        raise DescribeFailed(
            f"{fact} of {cls.__qualname__} is {kind}, and must be a method",
            hint=f"write: def {fact}(self{', params' if fact == 'run' else ''}): {body}",
        )


def no_ability(value: str) -> NotAnAbility | None:
    """Return what keeps the classes that an entry point names from being abilities, where one nearly is.

    Args:
        value: the entry point's value, imported already.
    """
    from ..ability import Ability

    for cls in _classes(value):
        if issubclass(cls, Ability) and inspect.isabstract(cls):
            lacks = [f"{name}()" for name in METHODS if name in cls.__abstractmethods__]
            said = " and ".join([", ".join(lacks[:-1]), lacks[-1]] if lacks[1:] else lacks)
            return NotAnAbility(cls, f"{cls.__qualname__} lacks {said}", f"add {said} to the class")
        has = [f"{name}()" for name in METHODS if name in vars(cls)]
        if not issubclass(cls, Ability) and len(has) > 1:
            return NotAnAbility(
                cls,
                f"{cls.__qualname__} has {' and '.join((has[0], has[-1]))} but does not inherit from Ability",
                f"write: class {cls.__qualname__}(Ability), with: from chalie import Ability",
            )
    return None


def _classes(value: str) -> Iterator[type]:
    module = sys.modules.get(installed.module_of(value))
    found: Any = module
    for part in filter(None, value.partition("[")[0].partition(":")[2].strip().split(".")):
        found = getattr(found, part, None)
    if isinstance(found, type):
        yield found
    elif found is module and module is not None:
        for member in list(vars(module).values()):
            if isinstance(member, type) and member.__module__ == module.__name__:
                yield member


def place(error: BaseException, modules: Sequence[str], cls: type | None) -> str:
    """Return `file:line` of a mistake, as near as it is known, or an empty text.

    Args:
        error: what was raised.
        modules: the modules that the package's entry points name.
        cls: the ability class that was read, or None during the import.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno or 1}"
    roots = {module.partition(".")[0] for module in modules}
    at = ""
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] in roots:
            at = f"{frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    if isinstance(error, NotAnAbility):
        cls = error.cls
    return at or _source_of(cls, str(error)) or _file_of(modules)


def _source_of(cls: type | None, reason: str) -> str:
    """Return where a class is, or its fact that the reason begins with."""
    if cls is None:
        return ""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    if not file:
        return ""
    fact = reason.partition("(")[0].partition(" ")[0]
    method = vars(cls).get(fact)
    if inspect.isfunction(method) and fact in METHODS:
        return f"{file}:{method.__code__.co_firstlineno}"
    # the line of a value is not recorded anywhere: it is looked for in the class's own lines
    lines = linecache.getlines(file)
    start = next(
        (at for at, line in enumerate(lines) if line.lstrip().startswith(f"class {cls.__name__}")), None
    )
    if start is None:
        return str(file)
    word = fact if fact in vars(cls) else "class"
    for at in range(start, len(lines)):
        if lines[at].strip().startswith((f"{word} =", f"{word}:", f"{word} ", f"{word}=")):
            return f"{file}:{at + 1}"
    return f"{file}:{start + 1}"


def _file_of(modules: Sequence[str]) -> str:
    for name in modules:
        file = getattr(sys.modules.get(name), "__file__", None)
        if file:
            return str(file)
    return ""
