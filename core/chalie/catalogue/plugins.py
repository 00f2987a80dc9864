"""Policies and plugins: modules with the host's own powers, brought in one by one.

Only what a person enabled gets here. Each module is first imported in a process of its own, so one
that hangs, exits or crashes is found there and costs only itself. Whatever goes wrong is kept to
the distribution it goes wrong in, named, and answered with the line that fixes it.

The host never lets pluggy make a call: pluggy's loop stops at the first exception, lets a wrapper
replace another plugin's word, and runs in order of registration. `Plugins.each` calls every
implementation itself, in order of distribution name, and pairs each answer with its author.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..calls import Call
from .admission import PLUGINS, POLICIES, Implementation, attempt, specifications
from .descriptor import EntryPoint, Problem

if TYPE_CHECKING:
    import click

__all__ = ["PLUGINS", "POLICIES", "PluginLoader", "Plugins"]


class Plugins:
    """What was loaded, and the only way to call it.

    Args:
        implementations: every admitted hook function, in the order they are to be called.
        problems: what was refused, and (`quarantined` False, reason "took …") what was slow.
        loaded: the distributions all of whose enabled modules are in.
        files_hashes: distribution -> hash over the files it was loaded from, where that is known.
    """

    def __init__(
        self,
        implementations: Sequence[Implementation] = (),
        problems: Sequence[Problem] = (),
        loaded: Iterable[str] = (),
        files_hashes: Mapping[str, str] | None = None,
    ) -> None:
        self.files_hashes: Mapping[str, str] = dict(files_hashes or {})
        self.problems = tuple(problems)
        self.loaded = frozenset(loaded)
        self._by_hook: dict[str, tuple[Implementation, ...]] = {}
        for found in implementations:
            self._by_hook[found.hook] = (*self._by_hook.get(found.hook, ()), found)

    def authors(self, hook: str) -> tuple[str, ...]:
        """Return the distributions that implement a hook, in the order they are called."""
        return tuple(dict.fromkeys(found.dist for found in self._by_hook.get(hook, ())))

    def deciding(self, hook: str) -> tuple[tuple[str, Callable[[Call], object]], ...]:
        """Return the implementations of a hook of the gate, each with its distribution, in order.

        Such a hook takes the call and nothing else. Whoever calls one catches what it raises.
        """
        return tuple(
            (found.dist, found.function if found.arguments else _without_call(found.function))
            for found in self._by_hook.get(hook, ())
        )

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
        expected = specifications().get(hook)
        if expected is None or expected != frozenset(arguments):
            raise TypeError(f"{hook}({', '.join(arguments)}) is not a call of a hook in chalie.hookspecs")
        return _called(self._by_hook.get(hook, ()), arguments)

    def tell(self, hook: str, **arguments: Any) -> None:
        """Call every implementation of an observing hook; what one raises is logged with its distribution."""
        for author, value in self.each(hook, **arguments):
            if isinstance(value, BaseException):
                import logging

                logging.getLogger("chalie").warning("%s of %s failed: %r", hook, author, value)

    def commands(self) -> tuple[Mapping[str, click.Command], tuple[str, ...]]:
        """Return the commands that plugins bring, by name, and a line for each that is left out.

        A name that two plugins bring belongs to neither.
        """
        brought: dict[str, list[tuple[str, click.Command]]] = {}
        refused: list[str] = []
        for author, value in self.each("register_commands"):
            if isinstance(value, Mapping):
                for name, command in value.items():
                    brought.setdefault(str(name), []).append((author, command))
            elif value is not None:
                refused.append(f"{author} brings no commands: {value!r}")
        for name, owners in brought.items():
            if len(owners) > 1:
                refused.append(f"{name} is left out: {' and '.join(author for author, _ in owners)} bring it")
        return {name: owners[0][1] for name, owners in brought.items() if len(owners) == 1}, tuple(refused)


def _without_call(function: Callable[..., object]) -> Callable[[Call], object]:
    return lambda call: function()


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
        return Plugins(kept, problems, loaded, self._files_hashes)

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
