"""Policies and plugins: modules with the host's own powers, brought in one by one.

Only what a person enabled gets here. Each module is first imported in a process of its own, so one
that hangs, exits or crashes is found there and costs only itself. Whatever goes wrong is kept to
the distribution it goes wrong in, named, and answered with the line that fixes it.

The host never lets pluggy make a call: pluggy's loop stops at the first exception, lets a wrapper
replace another plugin's word, and runs in order of registration. `Plugins.each` calls every
implementation itself, in order of distribution name, and pairs each answer with its author.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import importlib
import inspect
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from attrs import frozen

from .descriptor import EntryPoint, Problem

__all__ = ["PLUGINS", "POLICIES", "PluginLoader", "Plugins"]

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


class Plugins:
    """What was loaded, and the only way to call it.

    Args:
        implementations: every admitted hook function, in the order they are to be called.
        problems: what was refused, and (`quarantined` False, reason "took …") what was slow.
        loaded: the distributions all of whose enabled modules are in.
    """

    def __init__(
        self,
        implementations: Sequence[Implementation] = (),
        problems: Sequence[Problem] = (),
        loaded: Iterable[str] = (),
    ) -> None:
        self.problems = tuple(problems)
        self.loaded = frozenset(loaded)
        self._by_hook: dict[str, tuple[Implementation, ...]] = {}
        for found in implementations:
            self._by_hook[found.hook] = (*self._by_hook.get(found.hook, ()), found)

    def authors(self, hook: str) -> tuple[str, ...]:
        """Return the distributions that implement a hook, in the order they are called."""
        return tuple(dict.fromkeys(found.dist for found in self._by_hook.get(hook, ())))

    def each(self, hook: str, **arguments: Any) -> Iterator[tuple[str, object]]:
        """Call every implementation of a hook, one by one, each caught on its own.

        Args:
            hook: a name from `chalie.hookspecs`.
            arguments: everything the hook's specification names.

        Returns:
            for each implementation its distribution and what it returned, or the exception it raised
            (`SystemExit` included). An implementation runs when its pair is taken, so a caller that
            stops taking runs no more of them.

        Raises:
            TypeError: the hook does not exist or `arguments` are not those of its specification.
        """
        expected = _specifications().get(hook)
        if expected is None or expected != frozenset(arguments):
            raise TypeError(f"{hook}({', '.join(arguments)}) is not a call of a hook in chalie.hookspecs")
        return _called(self._by_hook.get(hook, ()), arguments)


def _called(
    implementations: Sequence[Implementation], arguments: Mapping[str, object]
) -> Iterator[tuple[str, object]]:
    for found in implementations:
        try:
            value = found.function(*(arguments[name] for name in found.arguments))
        except KeyboardInterrupt as interrupt:
            if threading.current_thread() is threading.main_thread():
                raise  # a person's Ctrl-C reaches the main thread only, and is no plugin's failure
            value = interrupt
        except BaseException as error:
            value = error
        yield found.dist, value


class PluginLoader:
    """Bring in the enabled modules of `chalie.policies` and `chalie.plugins`.

    Args:
        enabled: the entry points a person enabled; nothing else is parsed or imported.
        paths: the import path for the first, separate import (default: this process's).
        limit_s: seconds the separate import of one module may take.
        slow_s: seconds from which an import is named as slow in the report.
        memory: a file that remembers which modules passed the separate import, so that unchanged
            ones need no process at the next start; None tries them each time.
        files_hashes: distribution -> hash over its files, which `memory` is bound to. A distribution
            without one is tried each time.
    """

    def __init__(
        self,
        enabled: Iterable[EntryPoint],
        *,
        paths: Sequence[str] | None = None,
        limit_s: float = 10.0,
        slow_s: float = 1.0,
        memory: Path | None = None,
        files_hashes: Mapping[str, str] | None = None,
    ) -> None:
        self._entries = _in_order(enabled)
        self._paths = tuple(sys.path if paths is None else paths)
        self._limit_s = limit_s
        self._slow_s = slow_s
        self._memory = memory
        self._files_hashes = dict(files_hashes or {})

    def load(self) -> Plugins:
        """Try each module apart, import those that pass, check and keep their hooks.

        Never raises for anything a module does. A distribution one of whose modules is refused is
        left out whole: half a policy would be worse than a missing one, which the gate can see.
        """
        if not self._entries:
            return Plugins()
        problems: list[Problem] = []
        failed: set[str] = set()
        implementations: list[Implementation] = []
        refused = self._rehearsed()
        for entry in self._entries:
            reason = refused.get(entry)
            if reason is None and not _any_failed(entry, refused):
                started = time.monotonic()
                reason, found = attempt(entry)
                implementations.extend(found)
                if reason is None and (took := time.monotonic() - started) >= self._slow_s:
                    problems.append(_problem(entry, f"took {took:.1f} s to import", slow=True))
            if reason is not None:
                failed.add(entry.dist)
                problems.append(_problem(entry, reason))
        kept = [found for found in implementations if found.dist not in failed]
        loaded = {entry.dist for entry in self._entries} - failed
        return Plugins(kept, problems, loaded)

    def _rehearsed(self) -> dict[EntryPoint, str]:
        """Return why each module that failed apart from the host failed."""
        from .rehearsal import Memory, rehearse

        memory = Memory(self._memory, self._files_hashes)
        unknown = [entry for entry in self._entries if entry not in memory]
        outcomes = rehearse(unknown, self._paths, self._limit_s)
        memory.keep([entry for entry in self._entries if outcomes.get(entry) is None])
        return {entry: reason for entry, reason in outcomes.items() if reason is not None}


def _any_failed(entry: EntryPoint, refused: Mapping[EntryPoint, str]) -> bool:
    return any(other.dist == entry.dist for other in refused)


def _in_order(enabled: Iterable[EntryPoint]) -> tuple[EntryPoint, ...]:
    """Order by distribution, then value and name; a module named in both groups counts as a policy."""
    first: dict[tuple[str, str], EntryPoint] = {}
    for entry in sorted(enabled, key=lambda entry: (entry.dist, entry.value, entry.name, entry.group)):
        if entry.group not in (POLICIES, PLUGINS):
            continue
        known = first.get((entry.dist, entry.value))
        if known is None or (known.group, entry.group) == (PLUGINS, POLICIES):
            first[entry.dist, entry.value] = entry
    return tuple(first.values())


def _problem(entry: EntryPoint, reason: str, *, slow: bool = False) -> Problem:
    fix = f"chalie disable {entry.dist}"
    return Problem(
        dist=entry.dist,
        entry_point=f"{entry.group}: {entry.name} = {entry.value}",
        phase="plugin",
        reason=reason,
        fix=f"{fix}   (it works; only starting is slow)"
        if slow
        else f"pip install -U {entry.dist}, or {fix}",
        quarantined=False,
    )


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
    from ..hookspecs import DECIDING

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
    near = difflib.get_close_matches(hook, _specifications(), n=1)
    guess = f"; did its author mean {near[0]}?" if near else ""
    return f"implements {hook}, which is no hook of this host{guess}"


def _check_unmarked(plugin: object, found: Iterable[Implementation]) -> None:
    """Refuse a function that looks like a hook and is not marked: it would never be called."""
    marked = {made.function for made in found}
    for hook in sorted(_specifications()):
        function = inspect.getattr_static(plugin, hook, None)
        own = not isinstance(plugin, ModuleType) or getattr(function, "__module__", "") == plugin.__name__
        if inspect.isfunction(function) and own and getattr(plugin, hook) not in marked:
            raise _Refused(f"{hook} is not marked with @chalie.hookimpl, so it would never be called")


@functools.cache
def _specifications() -> Mapping[str, frozenset[str]]:
    """Return hook -> the names of its arguments."""
    from .. import hookspecs

    return {
        name: frozenset(inspect.signature(function).parameters)
        for name, function in vars(hookspecs).items()
        if hasattr(function, "chalie_spec")
    }
