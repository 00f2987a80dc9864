"""What a policy or plugin has to be: an importable module whose hooks are hooks, plain and marked."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, Final

from attrs import frozen

from .descriptor import EntryPoint

__all__ = ["PLUGINS", "POLICIES", "Implementation", "attempt", "specifications"]

POLICIES: Final = "chalie.policies"
PLUGINS: Final = "chalie.plugins"


class _Refused(Exception):
    """A module breaks a rule of registration; the text says which."""


@frozen
class Implementation:
    """One hook function of one module, with the names of the arguments it asks for."""

    dist: str
    entry: EntryPoint
    hook: str
    function: Callable[..., object]
    arguments: tuple[str, ...]


def attempt(entry: EntryPoint) -> tuple[str | None, tuple[Implementation, ...]]:
    """Import one module and check its hooks.

    Returns:
        (None, its hook functions), or (one line that says what is wrong, ()).
    """
    try:
        # A print while importing must not land in what the host itself writes to standard output.
        with contextlib.redirect_stdout(sys.stderr):
            return None, _admitted(_resolved(entry.value), entry)
    except _Refused as refusal:
        return str(refusal), ()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        text = " ".join(_text_of(error).split())[:300]
        return f"its import raised {type(error).__name__}{': ' + text if text else ''}", ()


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(its message cannot be shown)"


def _resolved(value: str) -> object:
    name, _, path = value.partition("[")[0].strip().partition(":")
    found: object = importlib.import_module(name.strip())
    for part in filter(None, path.strip().split(".")):
        found = getattr(found, part)
    if inspect.isclass(found):
        raise _Refused(f"{value} is a class; name a module, or an instance of the class")
    return found


def _admitted(plugin: object, entry: EntryPoint) -> tuple[Implementation, ...]:
    """Register with a plugin manager of its own (nothing to undo on refusal) and check each hook."""
    import pluggy

    from .. import hookspecs

    manager = pluggy.PluginManager("chalie")
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(plugin, name=entry.dist)
    except pluggy.PluginValidationError as error:
        raise _Refused(" ".join(str(error).split())) from error
    found: list[Implementation] = []
    for caller in manager.get_hookcallers(plugin) or ():
        for made in caller.get_hookimpls():
            if caller.has_spec():
                _check(caller.name, made, entry)
                found.append(
                    Implementation(entry.dist, entry, caller.name, made.function, tuple(made.argnames))
                )
            elif not made.optionalhook:
                raise _Refused(_misspelt(caller.name))
    _check_unmarked(plugin, found)
    if not found:
        raise _Refused("implements no hook of the host; mark hook functions with @chalie.hookimpl")
    return tuple(sorted(found, key=lambda made: made.hook))


def _check(hook: str, made: Any, entry: EntryPoint) -> None:
    from ..errors import warn_leaving
    from ..hookspecs import DECIDING, LEAVING

    if hook in LEAVING:
        code = getattr(made.function, "__code__", None)
        place = (code.co_filename, code.co_firstlineno) if code is not None else None
        warn_leaving(f"the hook {hook}", LEAVING[hook], place=place)
    if made.wrapper or made.hookwrapper:
        raise _Refused(
            f"{hook} is a wrapper; the host calls each implementation by itself, so that none can "
            "replace another's answer"
        )
    if inspect.iscoroutinefunction(made.function) or inspect.isasyncgenfunction(made.function):
        raise _Refused(f"{hook} is `async def`; hooks are called synchronously")
    if inspect.isgeneratorfunction(made.function):
        raise _Refused(f"{hook} is a generator function; a hook returns its answer")
    # What takes part in decisions has to show in the entry points, without importing anything.
    if hook in DECIDING and entry.group != POLICIES:
        raise _Refused(f"{hook} takes part in decisions; declare the module under {POLICIES}")


def _misspelt(hook: str) -> str:
    import difflib

    near = difflib.get_close_matches(hook, specifications(), n=1)
    guess = f"; did its author mean {near[0]}?" if near else ""
    return f"implements {hook}, which is no hook of this host{guess}"


def _check_unmarked(plugin: object, found: Iterable[Implementation]) -> None:
    """Refuse a function that looks like a hook and is not marked: it would never be called."""
    marked = {made.function for made in found}
    for hook in sorted(specifications()):
        function = inspect.getattr_static(plugin, hook, None)
        own = not isinstance(plugin, ModuleType) or getattr(function, "__module__", "") == plugin.__name__
        if inspect.isfunction(function) and own and getattr(plugin, hook) not in marked:
            raise _Refused(f"{hook} is not marked with @chalie.hookimpl, so it would never be called")


@functools.cache
def specifications() -> Mapping[str, frozenset[str]]:
    """Return every hook of the host with the names of its arguments."""
    from .. import hookspecs

    return {
        name: frozenset(inspect.signature(function).parameters)
        for name, function in vars(hookspecs).items()
        if hasattr(function, "chalie_spec")
    }
