"""The tables of catalogue.sqlite, and how a row becomes a value and back.

Written once, in the folder of a generation that is being built; afterwards the file is never changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, get_args

from attrs import NOTHING, astuple, field, fields, frozen

from ..calls import SideEffect
from ..errors import IndexUnreadable
from .descriptor import Descriptor, EntryPoint, Playbook, Problem

__all__ = [
    "FILE",
    "Contents",
    "DistributionRow",
    "State",
    "Watched",
    "descriptor_from",
    "descriptor_in",
    "path_from",
    "playbook_from",
    "playbook_in",
    "whole",
    "write",
]

FILE: Final = "catalogue.sqlite"

#: ready: usable. in-progress: being installed, or still being read. quarantined: read and set aside.
#: missing: gone since the last build (an upgrade removes before it adds); forgotten by the next one.
State = Literal["ready", "in-progress", "quarantined", "missing"]

_TABLES = """
CREATE TABLE distributions(name TEXT PRIMARY KEY, version TEXT, path TEXT, stamp TEXT, files_hash TEXT,
    editable INTEGER, state TEXT, reason TEXT, roots TEXT) WITHOUT ROWID;
CREATE TABLE abilities(id INTEGER PRIMARY KEY, dist TEXT, name TEXT, normal TEXT, exposed TEXT,
    qualified TEXT, qualified_normal TEXT, bare TEXT, bare_normal TEXT, json TEXT, hash TEXT, sha TEXT,
    discoverable INTEGER, ready INTEGER);
CREATE TABLE playbooks(id INTEGER PRIMARY KEY, dist TEXT, name TEXT, normal TEXT, path TEXT, json TEXT,
    hash TEXT, sha TEXT, ready INTEGER);
CREATE TABLE entries(dist TEXT, grp TEXT, name TEXT, value TEXT);
CREATE TABLE problems(dist TEXT, entry_point TEXT, phase TEXT, reason TEXT, fix TEXT, quarantined INTEGER);
CREATE TABLE watched(path TEXT PRIMARY KEY, inode INTEGER, mtime_ns INTEGER, size INTEGER, kind TEXT,
    listing TEXT)
    WITHOUT ROWID;
CREATE TABLE vectors(model TEXT, content_hash TEXT, bytes BLOB, PRIMARY KEY(model, content_hash))
    WITHOUT ROWID;
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
"""
_INDEXES = """
CREATE UNIQUE INDEX abilities_key ON abilities(dist, name);
CREATE INDEX abilities_normal ON abilities(normal);
CREATE INDEX abilities_exposed ON abilities(exposed);
CREATE INDEX abilities_qualified ON abilities(qualified);
CREATE INDEX abilities_qualified_normal ON abilities(qualified_normal);
CREATE INDEX abilities_bare ON abilities(bare) WHERE bare <> '';
CREATE INDEX abilities_bare_normal ON abilities(bare_normal) WHERE bare_normal <> '';
CREATE INDEX abilities_unready ON abilities(dist) WHERE ready=0;
CREATE INDEX playbooks_normal ON playbooks(normal);
CREATE INDEX playbooks_dist ON playbooks(dist);
CREATE INDEX entries_group ON entries(grp);
"""


@frozen
class DistributionRow:
    """A distribution of ours, as it was when the generation was built.

    Attributes:
        name: normalised name (PEP 503).
        version: as its metadata says.
        path: its metadata folder (`….dist-info`).
        stamp: digest of the inode, times and size of its files; see `installed.Distribution`.
        files_hash: SHA-256 (hex) of its files' bytes, which enabling and trust bind to; empty where unread.
        editable: whether its code lies in a working tree.
        state: see `State`.
        reason: why it is not ready, one line; empty when it is.
        roots: top-level import name -> the file or folder that name is imported from.
    """

    name: str
    version: str
    path: str
    stamp: str
    files_hash: str
    editable: bool
    state: State
    reason: str = ""
    roots: Mapping[str, str] = field(factory=dict, hash=False)


@frozen
class Watched:
    """A path whose change means something may have been installed, removed or edited.

    Attributes:
        inode, mtime_ns, size: as `os.stat` gave them; all -1 where the path did not exist.
        kind: `path` (an entry of the import path), `editable`, `unsettled` or `server` (of the home).
        listing: of an entry of the import path, the digest of `installed.listing`.
    """

    path: str
    inode: int
    mtime_ns: int
    size: int
    kind: Literal["path", "editable", "unsettled", "server"]
    listing: str = ""


@frozen
class Contents:
    """Everything a catalogue holds, before names are compared across packages.

    Abilities and playbooks of a distribution that is not ready are the ones last known.
    """

    distributions: tuple[DistributionRow, ...] = ()
    abilities: tuple[Descriptor, ...] = ()
    playbooks: tuple[Playbook, ...] = ()
    entries: tuple[EntryPoint, ...] = ()
    problems: tuple[Problem, ...] = ()
    watched: tuple[Watched, ...] = ()


def write(path: Path, contents: Contents, meta: Mapping[str, str]) -> str:
    """Write a new catalogue and return a digest of what the indexes are built from.

    Args:
        path: the file to create; it must not exist.
        contents: what it holds.
        meta: small facts kept beside (environment, interpreter).
    """
    connection = sqlite3.connect(path)
    try:
        # Written aside and synced as a whole before it is published: a journal would only cost time.
        connection.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA page_size=4096;")
        connection.executescript(_TABLES)
        ready = {row.name for row in contents.distributions if row.state == "ready"}
        digest = hashlib.sha256()
        with connection:
            _write_distributions(connection, contents)
            for row in _ability_rows(contents.abilities, ready):
                connection.execute("INSERT INTO abilities VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)", row)
                if row[-1]:
                    digest.update(repr((row[0], row[1], row[2], row[11])).encode())
            for line in _playbook_rows(contents.playbooks, ready):
                connection.execute("INSERT INTO playbooks VALUES(?,?,?,?,?,?,?,?,?)", line)
                if line[-1]:
                    digest.update(repr((line[0], line[1], line[2], line[7])).encode())
            connection.executemany("INSERT INTO meta VALUES(?,?)", sorted(meta.items()))
        connection.executescript(_INDEXES)
    finally:
        connection.close()
    return digest.hexdigest()


def add_problem(path: Path, problem: Problem) -> None:
    """Add a problem to a catalogue that is not yet published."""
    connection = sqlite3.connect(path)
    try:
        with connection:
            connection.execute("INSERT INTO problems VALUES(?,?,?,?,?,?)", _problem_row(problem))
    finally:
        connection.close()


def _write_distributions(connection: sqlite3.Connection, contents: Contents) -> None:
    connection.executemany(
        "INSERT INTO distributions VALUES(?,?,?,?,?,?,?,?,?)",
        [
            (
                d.name,
                d.version,
                _stored(d.path),
                d.stamp,
                d.files_hash,
                d.editable,
                d.state,
                _sayable(d.reason),
                _text(dict(d.roots)),
            )
            for d in contents.distributions
        ],
    )
    connection.executemany(
        "INSERT INTO entries VALUES(?,?,?,?)", [(e.dist, e.group, e.name, e.value) for e in contents.entries]
    )
    connection.executemany(
        "INSERT INTO problems VALUES(?,?,?,?,?,?)",
        [_problem_row(problem) for problem in contents.problems],
    )
    connection.executemany(
        "INSERT OR REPLACE INTO watched VALUES(?,?,?,?,?,?)",
        [(_stored(w.path), w.inode, w.mtime_ns, w.size, w.kind, w.listing) for w in contents.watched],
    )


def _stored(path: str) -> str | bytes:
    """Return a path as it is stored: bytes where they are not UTF-8, which SQLite's text cannot hold."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return os.fsencode(path)
    return path


def path_from(stored: str | bytes) -> str:
    """Return the path a row holds."""
    return stored if isinstance(stored, str) else os.fsdecode(stored)


def _sayable(text: str) -> str:
    """Return a text with what is no character (a byte of a file name that is not UTF-8) written out."""
    return text.encode("utf-8", "backslashreplace").decode()


def _problem_row(problem: Problem) -> tuple[object, ...]:
    return tuple(_sayable(value) if isinstance(value, str) else value for value in astuple(problem))


def _ability_rows(abilities: Iterable[Descriptor], ready: set[str]) -> list[tuple[Any, ...]]:
    """Number the abilities (ready ones first, by package and name) and settle what each is called."""
    from .. import names

    ordered = sorted(abilities, key=lambda a: (a.dist not in ready, a.dist, a.name))
    owners: dict[str, int] = {}
    shorts: dict[str, set[str]] = {}
    for ability in ordered:
        shorts.setdefault(names.short(ability.dist), set()).add(ability.dist)
        if ability.dist in ready:
            for name in {ability.name, ability.own_name}:
                owners[name] = owners.get(name, 0) + 1
    rows = []
    for number, ability in enumerate(ordered, start=1):
        whole = len(shorts[names.short(ability.dist)]) > 1
        qualified = names.qualified(ability.dist, ability.name, whole)
        exposed = ability.name if owners.get(ability.name, 0) <= 1 else qualified
        text = _text(_plain(ability))
        rows.append(
            (
                number,
                ability.dist,
                ability.name,
                names.normal(ability.name),
                exposed,
                qualified,
                names.normal(qualified),
                ability.bare,
                names.normal(ability.bare),
                text,
                ability.hash,
                _sha(text),
                ability.discoverable,
                ability.dist in ready,
            )
        )
    return rows


def _playbook_rows(playbooks: Iterable[Playbook], ready: set[str]) -> list[tuple[Any, ...]]:
    from .. import names

    ordered = sorted(playbooks, key=lambda p: (p.dist not in ready, p.dist, p.name, p.path))
    rows = []
    for number, book in enumerate(ordered, start=1):
        text = _text(_plain(book))
        normal = names.normal(book.name)
        rows.append(
            (
                number,
                book.dist,
                book.name,
                normal,
                _stored(book.path),
                text,
                book.hash,
                _sha(text),
                book.dist in ready,
            )
        )
    return rows


def _plain(value: Descriptor | Playbook) -> dict[str, Any]:
    # By hand and not through cattrs: these two are read on the start path, and importing cattrs costs more
    # than the whole of a warm start. What is as usual is left out: searches read rows all the time.
    usual = _USUAL if isinstance(value, Descriptor) else {}
    known = ((attribute.name, getattr(value, attribute.name)) for attribute in fields(type(value)))
    return {name: fact for name, fact in known if name not in usual or fact != usual[name]}


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"), default=list)


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def whole(text: str, sha: str, what: str) -> str:
    """Return a row's text; `IndexUnreadable` where its hash does not fit."""
    if _sha(text) != sha:
        raise IndexUnreadable(
            f"the catalogue's row of {what} is damaged",
            hint="run `chalie index` to build the catalogue again",
        )
    return text


def descriptor_from(text: str, sha: str, what: str) -> Descriptor:
    """Return the descriptor a row holds; `IndexUnreadable` where its hash does not fit."""
    return descriptor_in(whole(text, sha, what))


def descriptor_in(text: str) -> Descriptor:
    """Return the descriptor of a row's text, which is known to be whole."""
    return descriptor_of(_JSON.raw_decode(text)[0])


_JSON: Final = json.JSONDecoder()
_DESCRIPTOR: Final = frozenset(attribute.name for attribute in fields(Descriptor))
#: what a descriptor says of itself where its author says nothing.
_USUAL: Final[Mapping[str, Any]] = {
    attribute.name: getattr(Descriptor("", "", "", "", "", (), "", {}, "", ""), attribute.name)
    for attribute in fields(Descriptor)
    if attribute.default is not NOTHING
}


def descriptor_of(facts: Mapping[str, Any]) -> Descriptor:
    """Return the descriptor of plain JSON facts, as `ability.facts` gives them (sealed where not yet)."""
    known = {key: value for key, value in facts.items() if key in _DESCRIPTOR}
    known["examples"] = tuple(known["examples"])
    if "actions" in known:
        known["actions"] = {key: SideEffect(value) for key, value in (known["actions"] or {}).items()}
    if "side_effect" in known:
        known["side_effect"] = SideEffect(known["side_effect"])
    if "action_required" in known:
        required = known["action_required"] or {}
        known["action_required"] = {key: tuple(value) for key, value in required.items()}
    descriptor = Descriptor(**known)
    return descriptor if descriptor.hash else descriptor.sealed()


def playbook_from(text: str, sha: str, what: str) -> Playbook:
    """Return the playbook a row holds; `IndexUnreadable` where its hash does not fit."""
    return playbook_in(whole(text, sha, what))


def playbook_in(text: str) -> Playbook:
    """Return the playbook of a row's text, which is known to be whole."""
    facts = _JSON.raw_decode(text)[0]
    allowed = facts["allowed_tools"]
    facts["allowed_tools"] = None if allowed is None else tuple(allowed)
    return Playbook(**facts)


def state_from(text: str) -> State:
    """Return the state a row holds."""
    if text not in get_args(State):
        raise IndexUnreadable(f"the catalogue holds an unknown state {text!r}", hint="run `chalie index`")
    return text  # type: ignore[return-value]
