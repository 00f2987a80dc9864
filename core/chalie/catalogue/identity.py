"""A catalogue as others keep it: every ability as plain JSON, and one hash to tell two catalogues apart."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from ..errors import ConfigError
from ..names import OWN_DIST, is_server
from .descriptor import Descriptor, Problem

if TYPE_CHECKING:
    from .snapshot import Snapshot

__all__ = ["FORMAT", "PROTOCOL", "Document", "Given", "document", "identity", "read"]

#: the form of the file itself.
FORMAT: Final = "chalie-catalogue/1"
#: the interface between host and abilities, as the entry-point groups have it: the first has no suffix.
PROTOCOL: Final = "1"
_LARGEST: Final = 256 * 2**20


@frozen
class Document:
    """A catalogue as it is published.

    Attributes:
        protocol: the interface its abilities are called by.
        identity: `sha256:` and the hex digest over format, protocol and every ability.
        abilities: each as plain JSON, by namespace, name and package.
    """

    protocol: str
    identity: str
    abilities: tuple[Mapping[str, Any], ...]

    def as_json(self) -> dict[str, Any]:
        """Return it as it is written to a file."""
        return {
            "format": FORMAT,
            "protocol": self.protocol,
            "identity": self.identity,
            "abilities": list(self.abilities),
        }


def document(snapshot: Snapshot, own: Iterable[Descriptor] = ()) -> Document:
    """Return everything installed as one document.

    Args:
        snapshot: the catalogue.
        own: the host's own abilities, which no package brings.
    """
    rows = [_entry(item, item.name) for item in own]
    rows += [_entry(item, snapshot.exposed(item)) for _, item in snapshot.abilities()]
    rows.sort(key=lambda row: (row["namespace"], row["name"], row["package"]))
    return Document(PROTOCOL, identity(PROTOCOL, rows), tuple(rows))


def read(path: Path) -> Document:
    """Read a catalogue's file, whoever made it.

    Raises:
        ConfigError: it cannot be read, is none, or its identity is not that of its contents.
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise ConfigError(f"{path} is larger than {_LARGEST >> 20} MiB, so it is no catalogue")
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"the catalogue {path} cannot be read: {error}", hint=_AGAIN) from error
    known = data.get("format") if isinstance(data, Mapping) else None
    if known != FORMAT:
        said = f"has the format {known!r:.60}" if known else "is none"
        raise ConfigError(f"the catalogue {path} {said}, and {FORMAT} is expected", hint=_AGAIN)
    protocol, stated, rows = data.get("protocol"), data.get("identity"), data.get("abilities")
    if not isinstance(protocol, str) or not isinstance(stated, str) or not _are_rows(rows):
        raise ConfigError(f"the catalogue {path} lacks protocol, identity or abilities", hint=_AGAIN)
    if identity(protocol, rows) != stated:
        raise ConfigError(
            f"the catalogue {path} was changed after it was built: {stated} is not its identity",
            hint=_AGAIN,
        )
    return Document(protocol, stated, tuple(rows))


_AGAIN: Final = "build it again: chalie catalogue build FOLDER"


def _are_rows(rows: object) -> bool:
    return isinstance(rows, list) and all(
        isinstance(row, Mapping)
        and all(isinstance(row.get(key), str) for key in ("name", "called", "package"))
        for row in rows
    )


def identity(protocol: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the hash over a catalogue: format, protocol and abilities, as sorted JSON in ASCII."""
    whole = {"format": FORMAT, "protocol": protocol, "abilities": list(rows)}
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode('ascii')).hexdigest()}"


def _entry(item: Descriptor, called: str) -> dict[str, Any]:
    by = "host" if item.dist == OWN_DIST else "mcp-server" if is_server(item.dist) else "package"
    facts = {
        "name": item.name,
        "called": called,
        "package": item.dist,
        "package_version": item.dist_version,
        "answered_by": by,
        "namespace": item.namespace,
        "version": item.version,
        "summary": item.summary,
        "search_tooltip": item.search_tooltip,
        "examples": list(item.examples),
        "parameters": item.parameters,
        "actions": dict(item.actions),
        "side_effect": None if item.actions else item.side_effect,
        "action_required": {action: list(names) for action, names in item.action_required.items()},
        "requires_approval": item.requires_approval,
        "latency": item.latency,
        "discoverable": item.discoverable,
        "isolate": item.isolate,
        "time_limit_s": item.time_limit_s,
        "aliases": dict(item.aliases),
        "hash": item.hash,
    }
    plain: dict[str, Any] = json.loads(json.dumps(facts, default=_plain))
    return plain


def _plain(value: Any) -> Any:
    """Return what a frozen schema is made of as JSON has it."""
    return dict(value) if isinstance(value, Mapping) else list(value)


class Given:
    """A catalogue that a host was given, to be held against its own: another one is refused, and said so.

    Args:
        path: its file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[object, tuple[Problem, ...]] | None = None

    def problems(self, snapshot: Snapshot, own: Iterable[Descriptor]) -> tuple[Problem, ...]:
        """Return why the given catalogue is refused; nothing where it is the host's own.

        Args:
            snapshot: what is installed.
            own: the host's own abilities.
        """
        now = (snapshot.path, _stamp(self._path))
        if self._seen is None or self._seen[0] != now:
            self._seen = (now, tuple(self._refusals(self._path, snapshot, own)))
        return self._seen[1]

    def _refusals(self, path: Path, snapshot: Snapshot, own: Iterable[Descriptor]) -> Iterable[Problem]:
        try:
            given = read(path)
        except ConfigError as error:
            yield _refused(error.message, error.hint or _AGAIN)
            return
        mine = document(snapshot, own)
        if (given.protocol, given.identity) != (mine.protocol, mine.identity):
            yield _refused(
                f"the catalogue {path} is refused: it has protocol {given.protocol} and identity "
                f"{given.identity}, this host protocol {mine.protocol} and identity {mine.identity}",
                f"see what differs: chalie catalogue build OURS, then chalie catalogue diff {path} "
                "OURS/catalogue.json",
            )


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _refused(reason: str, fix: str) -> Problem:
    return Problem(OWN_DIST, "", "catalogue", reason, fix, quarantined=False)
