"""Changing `mcp.json`: entries added, removed and taken over from another client's file."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..catalogue.server_file import FILE, configured, servers_of, slug_of
from ..catalogue.servers import forget, write_aside
from ..errors import ChalieError, ConfigError

__all__ = ["add", "remove", "take_over"]


def add(home: Path, name: str, entry: Mapping[str, Any], *, replace: bool = False) -> str:
    """Add a server and return what it is called in the catalogue.

    Args:
        home: the home's folder.
        name: its key in the file.
        entry: what stands there.
        replace: whether an entry of that name may be replaced.

    Raises:
        ConfigError: the entry cannot be used, or there is one of that name.
    """
    with _opened(home) as servers:
        before = dict(servers)
        known = {slug_of(key): key for key in servers}
        other = known.get(slug_of(name))
        if other is not None and not (replace and other == name):
            raise ConfigError(
                f"{home / FILE} has a server {other!r} already",
                hint=f"remove it first: chalie mcp remove {slug_of(name)}; or take another name",
            )
        servers[name] = dict(entry)
        wrong = _wrong(home, name, servers)
        if wrong is not None:
            servers.clear()
            servers.update(before)
            raise wrong
    return slug_of(name)


def remove(home: Path, slug: str) -> bool:
    """Remove a server by its slug or its key, with what it listed; return whether there was one."""
    with _opened(home) as servers:
        found = [key for key in servers if slug in (key, slug_of(key))]
        for key in found[:1]:
            del servers[key]
    if found:
        forget(home, slug_of(found[0]))
    return bool(found)


def take_over(
    home: Path, source: Path, names: Collection[str] = ()
) -> tuple[list[str], list[tuple[str, str]]]:
    """Add the servers of another client's file; what is there already stays as it is.

    Args:
        home: the home's folder.
        source: a JSON file with `mcpServers` (or `servers`) at its top.
        names: only these keys; all where left out.

    Returns:
        What the added ones are called, and (key, why) of those that were left out.

    Raises:
        ConfigError: the file cannot be read, or has none of the names asked for.
    """
    if not source.exists():
        raise ConfigError(f"there is no file {source}")
    given = servers_of(source)
    missing = [name for name in names if name not in given]
    if missing or not given:
        has = f"it has {', '.join(given)}" if given else "it has no servers"
        raise ConfigError(f"{source} has no server {', '.join(missing) or 'at all'}; {has}")
    added: list[str] = []
    left: list[tuple[str, str]] = []
    for name, entry in given.items():
        if names and name not in names:
            continue
        try:
            added.append(add(home, name, entry if isinstance(entry, Mapping) else {"command": entry}))
        except ChalieError as error:
            left.append((name, error.message))
    return added, left


def _wrong(home: Path, name: str, servers: Mapping[str, Any]) -> ConfigError | None:
    """Return why an entry cannot be used, judged as the catalogue will."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as aside:
        (Path(aside) / FILE).write_text(json.dumps({"mcpServers": {name: servers[name]}}), encoding="utf-8")
        _, problems = configured(Path(aside))
    if not problems:
        return None
    reason = problems[0].reason.removeprefix(f"{Path(aside) / FILE}: ")
    return ConfigError(reason, hint=None if aside in problems[0].fix else problems[0].fix)


@contextmanager
def _opened(home: Path) -> Iterator[dict[str, Any]]:
    """Yield the file's servers; they are written back, beside whatever else is there, where they changed."""
    from filelock import FileLock, Timeout

    path = home / FILE
    try:
        with FileLock(home / f"{FILE}.lock", timeout=10):
            servers = servers_of(path)
            before = json.dumps(servers)
            yield servers
            if json.dumps(servers) == before:
                return
            whole = json.loads(path.read_bytes().decode("utf-8-sig")) if path.exists() else {}
            key = "servers" if "servers" in whole and "mcpServers" not in whole else "mcpServers"
            write_aside(path, json.dumps({**whole, key: servers}, indent=2, ensure_ascii=False) + "\n")
    except Timeout as error:
        raise ConfigError(f"{path} is being written by another process; try again") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror or error}") from error
