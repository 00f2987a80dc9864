"""MCP servers as packages of the catalogue, read from the home's files: no server is asked, nothing imported.

`mcp.json` says which servers a person wants, in the shape other clients use. `mcp/<slug>.json` holds what a
server last listed and is written by `chalie.mcp`, whole or not at all; so its tools are found while it is
down. `mcp/<slug>.state.json` says how the last attempt to reach it went, and is read when a search asks.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, get_args

from attrs import evolve, field, frozen

from .. import names
from ..errors import ConfigError
from . import footprint
from .assembly import Outcome
from .descriptor import Descriptor, Problem
from .server_file import FILE, Server, configured
from .server_tools import described, problem_of
from .snapshot import Snapshot
from .tables import DistributionRow, Watched

__all__ = [
    "Availability",
    "Listing",
    "Reach",
    "Servers",
    "availability",
    "forget",
    "listing",
    "note_availability",
    "read",
    "store_listing",
    "tools_of",
    "write_aside",
]

FOLDER: Final = "mcp"
_MOST_BYTES: Final = 64 * 1024 * 1024

#: how a server can be reached: `ok`; `not_connected`: the last attempt failed; `not_ready`: there was none;
#: `not_allowed`: it wants to know who asks.
Reach = Literal["ok", "not_connected", "not_ready", "not_allowed"]


@frozen
class Listing:
    """What a server said of itself and its tools when it was last read.

    Attributes:
        server: its `name`, `version` and `title`, as it gave them.
        protocol: the protocol version spoken.
        fetched_at: seconds since 1970.
        tools: definitions as it sent them.
        problems: (tool or empty, reason, fix) of what could not be stored, or of the listing itself.
    """

    server: Mapping[str, str]
    protocol: str
    fetched_at: float
    tools: tuple[Any, ...] = field(repr=False)
    problems: tuple[tuple[str, str, str], ...] = ()

    @property
    def version(self) -> str:
        """The server's version, in one short line."""
        return " ".join(str(self.server.get("version", "")).split())[:64]


@frozen
class Availability:
    """How the last attempt to reach a server went."""

    reach: Reach
    reason: str = ""


#: path -> (which file it was, what it said): every hit of a search asks.
_KNOWN: Final[dict[str, tuple[tuple[int, int, int], Availability]]] = {}
_MOST_KNOWN: Final = 1_000


@frozen
class Servers:
    """All servers of a home as a build takes them in.

    Attributes:
        outcomes: one per server.
        problems: what is wrong with the file itself.
        watched: the files that all this was read from.
    """

    outcomes: tuple[Outcome, ...] = ()
    problems: tuple[Problem, ...] = ()
    watched: tuple[Watched, ...] = ()


def read(home: Path, previous: Snapshot | None, *, rebuild: bool = False) -> Servers:
    """Return every server of the home with its tools, as last listed.

    Args:
        home: the home's folder.
        previous: the catalogue whose rows stand where the files they were made from are the same.
        rebuild: make every row anew.
    """
    watched = [footprint.watched(str(home / FILE), "server")]
    try:
        found, problems = configured(home)
    except ConfigError as error:
        kept = () if previous is None else tuple(_unread(previous, error.message))
        wrong = Problem(FILE, "", "server", error.message, error.hint or f"edit {home / FILE}", False)
        return Servers(kept, (wrong,), tuple(watched))
    outcomes = []
    for slug, server in sorted(found.items()):
        path = _listing_path(home, slug)
        watched.append(footprint.watched(str(path), "server"))
        outcomes.append(_outcome(home, server, path, None if rebuild else previous))
    return Servers(tuple(outcomes), problems, tuple(watched))


def _unread(previous: Snapshot, reason: str) -> Iterator[Outcome]:
    """Yield what was known before the file became unreadable (half written, perhaps): it is not called."""
    for row in previous.distributions():
        if names.is_server(row.name):
            yield Outcome(evolve(row, state="in-progress", reason=reason, stamp=""), previous.of(row.name))


def _outcome(home: Path, server: Server, path: Path, previous: Snapshot | None) -> Outcome:
    row = DistributionRow(server.dist, "", str(path), "", server.hash, False, "in-progress")
    fix = f"chalie mcp refresh {server.slug}"
    try:
        data = path.read_bytes()
        stamp = hashlib.sha256(server.hash.encode() + data).hexdigest()
        before = None if previous is None else previous.distribution(server.dist)
        if before is not None and before.stamp == stamp and previous is not None:
            problems = tuple(each for each in previous.problems() if each.dist == server.dist)
            return Outcome(before, previous.of(server.dist), problems=problems)
        known = _listing(data)
    except FileNotFoundError:
        row = evolve(row, reason="it has not been read yet")
        return Outcome(
            row, problems=(problem_of(server.slug, "", f"{server.slug} has not been read yet", fix),)
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        row = evolve(row, reason="what it listed cannot be read")
        reason = f"{path} cannot be read: {' '.join(str(error).split())[:200]}"
        return Outcome(row, problems=(problem_of(server.slug, "", reason, fix),))
    tools, problems_of = described(server.slug, known.version, known.tools)
    told = [problem_of(server.slug, *each) for each in known.problems]
    row = evolve(row, version=known.version, stamp=stamp, state="ready")
    return Outcome(row, tuple(tools), problems=(*told, *problems_of))


def listing(home: Path, slug: str) -> Listing | None:
    """Return what a server last listed; None where that is nothing, or cannot be read."""
    try:
        return _listing(_listing_path(home, slug).read_bytes())
    except (OSError, ValueError, KeyError, TypeError):
        return None


def tools_of(slug: str, known: Listing) -> tuple[Descriptor, ...]:
    """Return the usable tools of a listing."""
    return tuple(described(slug, known.version, known.tools)[0])


def store_listing(home: Path, slug: str, known: Listing) -> None:
    """Keep what a server listed; nothing is written where it listed the same before.

    Raises:
        OSError: it cannot be written.
    """
    before = listing(home, slug)
    if before is not None and evolve(before, fetched_at=0.0) == evolve(known, fetched_at=0.0):
        return
    value = {
        "format": 1,
        "server": dict(known.server),
        "protocol": known.protocol,
        "fetched_at": known.fetched_at,
        "tools": known.tools,
        "problems": known.problems,
    }
    write_aside(_listing_path(home, slug), json.dumps(value, separators=(",", ":")))


def forget(home: Path, slug: str) -> None:
    """Remove what was kept of a server."""
    for path in (_listing_path(home, slug), _state_path(home, slug)):
        path.unlink(missing_ok=True)


def availability(home: Path, slug: str) -> Availability:
    """Return how the last attempt to reach a server went; `not_ready` where there was none."""
    path = f"{home}/{FOLDER}/{slug}.state.json"  # not a Path: a search asks for each of its hits
    try:
        status = os.stat(path)  # noqa: PTH116
        stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
        kept = _KNOWN.get(path)
        if kept is not None and kept[0] == stamp:
            return kept[1]
        found = json.loads(Path(path).read_bytes())
        if found["reach"] in get_args(Reach):
            if len(_KNOWN) >= _MOST_KNOWN:
                _KNOWN.clear()
            _KNOWN[path] = (stamp, Availability(found["reach"], str(found["reason"])))
            return _KNOWN[path][1]
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return Availability("not_ready", "it has not been reached yet")


def note_availability(home: Path, slug: str, found: Availability) -> None:
    """Keep how an attempt went, where that is news; a home that cannot be written keeps nothing."""
    if availability(home, slug) == found and _state_path(home, slug).exists():
        return
    try:
        write_aside(_state_path(home, slug), json.dumps({"reach": found.reach, "reason": found.reason}))
    except OSError:
        pass


def write_aside(path: Path, text: str) -> None:
    """Replace a file, readable by the account alone, in one step.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    number = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _listing(data: bytes) -> Listing:
    if len(data) > _MOST_BYTES:
        raise ValueError(f"it has {len(data)} bytes, over {_MOST_BYTES}")
    found = json.loads(data)
    if found["format"] != 1 or not isinstance(found["tools"], list):
        raise ValueError("it is of another format")
    problems = tuple((str(tool), str(reason), str(fix)) for tool, reason, fix in found["problems"])
    server = {str(key): str(value) for key, value in dict(found["server"]).items()}
    return Listing(
        server, str(found["protocol"]), float(found["fetched_at"]), tuple(found["tools"]), problems
    )


def _listing_path(home: Path, slug: str) -> Path:
    return home / FOLDER / f"{slug}.json"


def _state_path(home: Path, slug: str) -> Path:
    return home / FOLDER / f"{slug}.state.json"
