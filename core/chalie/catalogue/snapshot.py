"""The read side of a generation's catalogue: what is installed, read row by row and never imported."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from ..errors import IndexUnreadable
from .descriptor import Descriptor, EntryPoint, Playbook, Problem
from .tables import (
    FILE,
    DistributionRow,
    State,
    Watched,
    descriptor_from,
    path_from,
    playbook_from,
    state_from,
    whole,
)

__all__ = ["DistributionRow", "Snapshot"]

_PAGE = 200
_REMEMBERED = 128
_DISTRIBUTION = "name, version, path, stamp, files_hash, editable, state, reason, roots"


class Snapshot:
    """What was installed when a generation was built. Safe to use from several threads.

    Nothing is held in memory but the last descriptors read: its size does not grow with what is installed.
    `abilities`, `named`, `resolve`, `owners`, `playbooks` and `playbooks_named` speak of ready distributions
    only; `get`, `of`, `state` and `unready` tell of the others, so that a call can say why a tool is missing.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.connection = connection
        self._lock = threading.Lock()
        self._recent: OrderedDict[tuple[str, str], tuple[Descriptor, str, str] | None] = OrderedDict()
        self._rows_recent: OrderedDict[str, DistributionRow | None] = OrderedDict()
        self._unready: frozenset[str] | None = None
        self.path = path

    @classmethod
    def open(cls, path: Path) -> Snapshot:
        """Open the catalogue at `path` (`catalogue.sqlite`, or the generation's folder).

        Raises:
            IndexUnreadable: the file is absent or not a catalogue.
        """
        if path.is_dir():
            path = path / FILE
        try:
            # immutable: the file never changes once published, so no lock and no journal is looked for.
            connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False
            )
            connection.execute("SELECT name FROM distributions LIMIT 1").fetchone()
        except sqlite3.Error as error:
            raise _unreadable(path, error) from error
        return cls(connection, path)

    def close(self) -> None:
        """Close the file; reading afterwards raises `IndexUnreadable`."""
        with self._lock:
            self.connection.close()

    def get(self, dist: str, name: str) -> Descriptor | None:
        """Return the ability of that package and name, whatever the state of its package (see `state`)."""
        found = self._ability(dist, name)
        return None if found is None else found[0]

    def named(self, text: str) -> tuple[Descriptor, ...]:
        """Return every ability whose name, bare or qualified, has the same normal form as `text`.

        A server's tool has the name its server gave it as its bare one.
        """
        from .. import names

        normal = names.normal(text)
        if not normal:
            return ()
        # UNION, since SQLite looks into every row for an OR of columns of which one has a partial index
        which = "SELECT id FROM abilities WHERE normal=? OR qualified_normal=?"
        bare = "SELECT id FROM abilities WHERE bare_normal=? AND bare_normal <> ''"
        return self._descriptors(f"ready=1 AND id IN ({which} UNION {bare})", (normal, normal, normal))

    def resolve(self, called: str) -> tuple[Descriptor, ...]:
        """Return the abilities that are called exactly that; several mean the bare name is ambiguous.

        A server's tool is reached by its own name too, beside every package's tool of that name.
        """
        exact = self._descriptors("ready=1 AND qualified=?", (called,))
        if exact or not called:
            return exact
        bare = "SELECT id FROM abilities WHERE bare=? AND bare <> ''"
        which = f"SELECT id FROM abilities WHERE name=? UNION {bare}"
        return self._descriptors(f"ready=1 AND id IN ({which})", (called, called))

    def exposed(self, descriptor: Descriptor) -> str:
        """Return what a model calls it by: the bare name, or the qualified one where several own it."""
        found = self._ability(descriptor.dist, descriptor.name)
        return descriptor.name if found is None else found[1]

    def qualified(self, descriptor: Descriptor) -> str:
        """Return the ability's qualified name, with the whole distribution name where the short ones tie."""
        from .. import names

        found = self._ability(descriptor.dist, descriptor.name)
        return names.qualified(descriptor.dist, descriptor.name) if found is None else found[2]

    def owners(self, name: str) -> tuple[Descriptor, ...]:
        """Return every ready ability of exactly that bare name."""
        return self._descriptors("ready=1 AND name=?", (name,))

    def abilities(self, ids: Iterable[int] | None = None) -> Iterator[tuple[int, Descriptor]]:
        """Yield (id, ability) in the order of the ids given, or all by id. Ids hold within one generation.

        Args:
            ids: as an index returned them; unknown ones are left out.
        """
        for number, text, sha, what in self._items("abilities", ids):
            yield number, descriptor_from(text, sha, what)

    def texts(self, kind: Literal["ability", "playbook"]) -> Iterator[tuple[int, str]]:
        """Yield (id, text) of every ability or playbook by id: what `tables.descriptor_in` reads."""
        table = "abilities" if kind == "ability" else "playbooks"
        return ((number, whole(text, sha, what)) for number, text, sha, what in self._items(table, None))

    def ids(self) -> list[int]:
        """Return the id of every ability, ascending."""
        return [row[0] for row in self._rows("SELECT id FROM abilities WHERE ready=1 ORDER BY id")]

    def numbered(self, by: Literal["dist", "name"], value: str) -> dict[int, Descriptor]:
        """Return id -> ability of everything that one distribution brings, or that has exactly one name."""
        from .. import names

        # there is no index of names as they are spelt
        where, key = ("dist=?", value) if by == "dist" else ("normal=?", names.normal(value))
        rows = self._rows(f"SELECT id, json, sha, name FROM abilities WHERE ready=1 AND {where}", (key,))
        return {row[0]: descriptor_from(*row[1:]) for row in rows if by == "dist" or row[3] == value}

    def few(
        self, kind: Literal["ability", "playbook"], ids: Sequence[int]
    ) -> dict[int, Descriptor | Playbook]:
        """Return the abilities or playbooks of at most some hundred ids; unknown ones are left out."""
        # what a search reads its hits by, so without the detours of the above
        if kind == "ability":
            return {row[0]: descriptor_from(*row[1:]) for row in self._chosen("abilities", ids)}
        return {row[0]: playbook_from(*row[1:]) for row in self._chosen("playbooks", ids)}

    def playbooks(self, ids: Iterable[int] | None = None) -> Iterator[tuple[int, Playbook]]:
        """Yield (id, playbook), as `abilities` does."""
        for number, text, sha, what in self._items("playbooks", ids):
            yield number, playbook_from(text, sha, what)

    def playbooks_named(self, text: str) -> tuple[Playbook, ...]:
        """Return every playbook whose name has the same normal form as `text`."""
        from .. import names

        rows = self._rows(
            "SELECT json, sha, name FROM playbooks WHERE ready=1 AND normal=? ORDER BY id",
            (names.normal(text),),
        )
        return tuple(playbook_from(*row) for row in rows)

    def problems(self) -> tuple[Problem, ...]:
        """Return everything that was set aside, with the line that fixes it."""
        rows = self._rows(
            "SELECT dist, entry_point, phase, reason, fix, quarantined FROM problems ORDER BY rowid"
        )
        return tuple(_problem(row) for row in rows)

    def entry_points(self, group: str) -> tuple[EntryPoint, ...]:
        """Return the entry points that ready distributions have in a group, by distribution and name."""
        rows = self._rows(
            "SELECT e.dist, e.grp, e.name, e.value FROM entries AS e"
            " JOIN distributions AS d ON d.name = e.dist"
            " WHERE e.grp=? AND d.state='ready' ORDER BY e.dist, e.name",
            (group,),
        )
        return tuple(EntryPoint(*row) for row in rows)

    def distributions(self) -> tuple[DistributionRow, ...]:
        """Return every distribution of ours, by name."""
        rows = self._rows(f"SELECT {_DISTRIBUTION} FROM distributions ORDER BY name")
        return tuple(_distribution(row) for row in rows)

    def distribution(self, name: str) -> DistributionRow | None:
        """Return one distribution by its normalised name."""
        if name in self._rows_recent:
            return self._rows_recent[name]
        rows = self._rows(f"SELECT {_DISTRIBUTION} FROM distributions WHERE name=?", (name,))
        found = _distribution(rows[0]) if rows else None
        self._remember(self._rows_recent, name, found)
        return found

    def state(self, dist: str) -> State | None:
        """Return the state of a distribution, None where it is not known."""
        row = self.distribution(dist)
        return None if row is None else row.state

    def unready(self, text: str) -> tuple[DistributionRow, ...]:
        """Return the distributions that are not ready and own, or once owned, a tool of that name.

        A package that could never be read is known only by its entry points' names.
        """
        from .. import names

        normal = names.normal(text)
        owners = self._rows(
            "SELECT DISTINCT dist FROM abilities WHERE ready=0"
            " AND (normal=? OR qualified_normal=? OR bare_normal=?)",
            (normal, normal, normal or " "),
        )
        entries = self._rows(
            "SELECT e.dist, e.name FROM entries AS e JOIN distributions AS d ON d.name = e.dist"
            " WHERE e.grp='chalie.abilities' AND d.state <> 'ready'"
        )
        servers = self._rows("SELECT name FROM distributions WHERE state <> 'ready' AND name LIKE 'mcp:%'")
        dists = {row[0] for row in owners} | {row[0] for row in entries if names.normal(row[1]) == normal}
        # of a server that was never read nothing is known but its own name
        dists |= {row[0] for row in servers if names.normal(row[0].removeprefix(names.SERVER)) == normal}
        found = (self.distribution(dist) for dist in sorted(dists))
        return tuple(row for row in found if row is not None)

    def unready_names(self) -> frozenset[str]:
        """Return the normal form of every name that `unready` knows, read once."""
        if self._unready is None:
            from .. import names

            tools = self._rows("SELECT normal, qualified_normal, bare_normal FROM abilities WHERE ready=0")
            entries = self._rows(
                "SELECT e.name FROM entries AS e JOIN distributions AS d ON d.name = e.dist"
                " WHERE e.grp='chalie.abilities' AND d.state <> 'ready'"
            )
            servers = self._rows(
                "SELECT name FROM distributions WHERE state <> 'ready' AND name LIKE 'mcp:%'"
            )
            known = {name for row in tools for name in row}
            known |= {names.normal(row[0]) for row in entries}
            known |= {names.normal(row[0].removeprefix(names.SERVER)) for row in servers}
            self._unready = frozenset(known - {""})
        return self._unready

    def counts(self) -> dict[str, int]:
        """Return how many abilities, playbooks, ready and other distributions and problems there are."""
        row = self._rows(
            "SELECT (SELECT count(*) FROM abilities WHERE ready=1),"
            " (SELECT count(*) FROM playbooks WHERE ready=1),"
            " (SELECT count(*) FROM distributions WHERE state='ready'),"
            " (SELECT count(*) FROM distributions WHERE state<>'ready'), (SELECT count(*) FROM problems)"
        )[0]
        return dict(zip(("abilities", "playbooks", "distributions", "unready", "problems"), row, strict=True))

    def watched(self) -> tuple[Watched, ...]:
        """Return the paths whose change means something may have been installed, removed or edited."""
        return tuple(
            Watched(path_from(path), *rest)
            for path, *rest in self._rows("SELECT path, inode, mtime_ns, size, kind, listing FROM watched")
        )

    def editables(self) -> int:
        """Return how many distributions are editable."""
        return int(self._rows("SELECT count(*) FROM distributions WHERE editable=1")[0][0])

    def meta(self, key: str) -> str | None:
        """Return a small fact written with the catalogue."""
        rows = self._rows("SELECT value FROM meta WHERE key=?", (key,))
        return rows[0][0] if rows else None

    def keys(self) -> dict[str, str]:
        """Return `distribution:name` -> descriptor hash of every ready ability."""
        rows = self._rows("SELECT dist, name, hash FROM abilities WHERE ready=1 ORDER BY id")
        return {f"{dist}:{name}": digest for dist, name, digest in rows}

    def of(self, dist: str) -> tuple[Descriptor, ...]:
        """Return the abilities of one distribution, whatever its state."""
        return self._descriptors("dist=?", (dist,))

    def playbooks_of(self, dist: str) -> tuple[Playbook, ...]:
        """Return the playbooks of one distribution, whatever its state."""
        rows = self._rows("SELECT json, sha, name FROM playbooks WHERE dist=? ORDER BY id", (dist,))
        return tuple(playbook_from(*row) for row in rows)

    def _ability(self, dist: str, name: str) -> tuple[Descriptor, str, str] | None:
        key = (dist, name)
        recent = self._recent
        if key in recent:
            return recent[key]
        rows = self._rows(
            "SELECT json, sha, name, exposed, qualified FROM abilities WHERE dist=? AND name=?", key
        )
        found = (descriptor_from(*rows[0][:3]), rows[0][3], rows[0][4]) if rows else None
        self._remember(recent, key, found)
        return found

    def _remember(self, recent: OrderedDict[Any, Any], key: Any, found: Any) -> None:
        with self._lock:
            recent[key] = found
            while len(recent) > _REMEMBERED:
                recent.popitem(last=False)

    def _descriptors(self, where: str, values: tuple[str, ...]) -> tuple[Descriptor, ...]:
        rows = self._rows(f"SELECT json, sha, name FROM abilities WHERE {where} ORDER BY id", values)
        return tuple(descriptor_from(*row) for row in rows)

    def _items(self, table: str, ids: Iterable[int] | None) -> Iterator[tuple[int, str, str, str]]:
        if ids is None:
            last = 0
            while page := self._rows(
                f"SELECT id, json, sha, name FROM {table} WHERE ready=1 AND id>? ORDER BY id LIMIT {_PAGE}",
                (last,),
            ):
                last = page[-1][0]
                yield from page
            return
        wanted = [int(number) for number in ids]
        for start in range(0, len(wanted), _PAGE):
            chosen = wanted[start : start + _PAGE]
            rows = {row[0]: row for row in self._chosen(table, chosen)}
            yield from (rows[number] for number in chosen if number in rows)

    def _chosen(self, table: str, ids: Sequence[int]) -> list[Any]:
        if not ids:
            return []
        # a table of the ids, since SQLite would sort and index those of an IN
        asked = ",".join(["(?)"] * len(ids))
        what = f"{table} ON id=column1 WHERE ready=1"
        return self._rows(f"SELECT id, json, sha, name FROM (VALUES {asked}) CROSS JOIN {what}", tuple(ids))

    def _rows(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        try:
            with self._lock:
                return self.connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise _unreadable(self.path, error) from error


def _distribution(row: Any) -> DistributionRow:
    name, version, path, stamp, files_hash, editable, state, reason, roots = row
    return DistributionRow(
        name,
        version,
        path_from(path),
        stamp,
        files_hash,
        bool(editable),
        state_from(state),
        reason,
        json.loads(roots),
    )


def _problem(row: Any) -> Problem:
    dist, entry_point, phase, reason, fix, quarantined = row
    return Problem(dist, entry_point, phase, reason, fix, bool(quarantined))


def _unreadable(path: Path, error: Exception) -> IndexUnreadable:
    return IndexUnreadable(
        f"the catalogue {path} cannot be read ({error})", hint="run `chalie index` to build it again"
    )
