"""`mcp.json`: which MCP servers a person wants, in the `mcpServers` shape that other clients use too."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from attrs import evolve, field, frozen

from .. import names
from ..errors import ConfigError
from .descriptor import Problem

__all__ = ["FILE", "Server", "configured", "servers_of", "slug_of"]

FILE: Final = "mcp.json"
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
#: how other clients spell streamable HTTP in `type` or `transport`.
_HTTP: Final = frozenset({"http", "https", "streamablehttp"})
#: what of an entry a person trusts: which program runs, or which address is asked, and with what.
_TRUSTED: Final = ("args", "command", "cwd", "env", "headers", "type", "url")


@frozen
class Server:
    """One entry of `mcp.json`.

    Attributes:
        slug: what it is called in the catalogue.
        name: its key in the file.
        command: the program to start; empty for a server that is reached by HTTP.
        args: the program's arguments.
        env: what its environment holds besides the few plain variables that every server gets.
        cwd: the folder it is started in; None for that of the host.
        url: where it is reached; empty for a program.
        headers: what is sent with every request.
        timeout_s: seconds that a call may take; None for the host's own limit.
        hash: SHA-256 (hex) over what of the entry a person trusts.
    """

    slug: str
    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(factory=dict, hash=False, repr=False)
    cwd: str | None = None
    url: str = ""
    headers: Mapping[str, str] = field(factory=dict, hash=False, repr=False)
    timeout_s: float | None = None
    hash: str = ""

    @property
    def dist(self) -> str:
        """Its name in the place of a distribution's."""
        return names.SERVER + self.slug

    def expanded(self, environment: Mapping[str, str]) -> Server:
        """Return it with `${VAR}` and `${VAR:-default}` replaced, as other clients do.

        Raises:
            ConfigError: a variable is not set and has no default; the message names it, never a value.
        """

        def put(text: str) -> str:
            def value(found: re.Match[str]) -> str:
                given = environment.get(found[1], found[2])
                if given is None:
                    raise ConfigError(
                        f"the server {self.slug} needs the environment variable {found[1]}, which is not set",
                        hint=f"export {found[1]}=…, or give a default: ${{{found[1]}:-…}} in {FILE}",
                    )
                return given

            return _VARIABLE.sub(value, text)

        return evolve(
            self,
            command=put(self.command),
            args=tuple(map(put, self.args)),
            env={key: put(value) for key, value in self.env.items()},
            cwd=None if self.cwd is None else put(self.cwd),
            url=put(self.url),
            headers={key: put(value) for key, value in self.headers.items()},
        )


def slug_of(name: str) -> str:
    """Return what a server of that name is called: lower case, and `-` for everything but letters and digits.

    What is longer than 20 is cut and gets 6 hex digits of its SHA-256, so that two long names stay two.
    """
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if slug and len(slug) <= 20:
        return slug
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{slug[:13].strip('-') or 'server'}-{mark}"


def configured(home: Path) -> tuple[dict[str, Server], tuple[Problem, ...]]:
    """Return the servers of `mcp.json` by slug, and a problem for each entry that cannot be used.

    Raises:
        ConfigError: the file cannot be read as JSON.
    """
    path = home / FILE
    entries = servers_of(path)
    found: dict[str, Server] = {}
    problems: list[Problem] = []
    # an entry whose key is a slug keeps it, whoever else would come to the same
    for name in sorted(entries, key=lambda name: (slug_of(name) != name, name)):
        slug = slug_of(name)
        try:
            server = _server(slug, name, entries[name])
        except ConfigError as error:
            problems.append(
                _wrong(slug, f"{path}: {name[:80]!r} {error.message}", error.hint or f"edit {path}")
            )
            continue
        if server is None:
            continue
        if slug in found:
            reason = f"{path}: {name[:80]!r} would be called {slug}, as {found[slug].name!r} is"
            problems.append(_wrong(slug, reason, "rename one of the two"))
            continue
        found[slug] = server
    return found, tuple(problems)


def servers_of(path: Path) -> dict[str, Any]:
    """Return the entries of a file in the `mcpServers` shape by name; an absent file has none.

    Raises:
        ConfigError: it is not such a file.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from error
    hint = 'it holds {"mcpServers": {"name": {"command": …, "args": […]}}} or {"url": …}'
    try:
        found = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not JSON: {error}", hint=hint) from error
    servers = found.get("mcpServers", found.get("servers", {})) if isinstance(found, dict) else None
    if not isinstance(servers, dict):
        raise ConfigError(f"{path} has no table of servers", hint=hint)
    return servers


def _server(slug: str, name: str, given: Any) -> Server | None:
    """Return the server of one entry; None where it is switched off."""
    if not isinstance(given, Mapping):
        raise ConfigError("is not an object", hint='write {"command": "…"} or {"url": "…"}')
    if given.get("disabled") is True or given.get("enabled") is False:
        return None
    command, url = _one(given, "command"), _one(given, "url") or _one(given, "serverUrl")
    kind = str(given.get("type") or given.get("transport") or "").lower()
    if kind == "sse":
        raise ConfigError(
            "speaks the old SSE transport, which is not supported",
            hint="use its streamable HTTP address (often /mcp in place of /sse), with type http",
        )
    if bool(command) == bool(url):
        raise ConfigError(
            f"has {'both' if command else 'neither'} a command {'and' if command else 'nor'} a url",
            hint="give the one by which it is reached",
        )
    if kind and kind not in ("stdio", *_HTTP) and re.sub("[^a-z]", "", kind) not in _HTTP:
        raise ConfigError(f"has the type {kind[:40]!r}", hint="the types are stdio and http")
    if url and not re.match(r"(?:https?://|\$\{)", url):
        raise ConfigError("has a url that is not http:// or https://", hint="correct the url")
    kept = {key: given[key] for key in _TRUSTED if given.get(key) not in (None, "", [], {})}
    text = json.dumps(kept, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return Server(
        slug=slug,
        name=name,
        command=command,
        args=tuple(_texts(given, "args")),
        env=_table(given, "env"),
        cwd=_one(given, "cwd") or None,
        url=url,
        headers=_table(given, "headers"),
        timeout_s=_seconds(given),
        hash=hashlib.sha256(text.encode()).hexdigest(),
    )


def _one(given: Mapping[str, Any], key: str) -> str:
    value = given.get(key)
    if value is None:
        return ""
    if not isinstance(value, str) or "\0" in value:
        raise ConfigError(f"has a {key} that is no text")
    return value.strip() if key != "cwd" else value


def _texts(given: Mapping[str, Any], key: str) -> list[str]:
    value = given.get(key) or []
    if not isinstance(value, list) or not all(isinstance(item, str) and "\0" not in item for item in value):
        raise ConfigError(f"has {key} that are no list of texts")
    return value


def _table(given: Mapping[str, Any], key: str) -> dict[str, str]:
    value = given.get(key) or {}
    if not isinstance(value, Mapping):
        raise ConfigError(f"has {key} that is no object of texts")
    for inner in value.values():
        if not isinstance(inner, (str, int)) or isinstance(inner, bool) or "\0" in str(inner):
            raise ConfigError(f"has {key} with a value that is no text")
    return {str(name): str(inner) for name, inner in value.items()}


def _seconds(given: Mapping[str, Any]) -> float | None:
    value = given.get("timeout")
    if value is None:
        return None
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value <= 86_400:
        raise ConfigError("has a timeout that is no number of seconds up to 86400")
    return float(value)


def _wrong(slug: str, reason: str, fix: str) -> Problem:
    return Problem(f"{names.SERVER}{slug}", "", "server", reason, fix, quarantined=True)
