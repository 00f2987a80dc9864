"""The ledger's tables, as the steps that made them; a ledger's `user_version` counts the steps it has."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

__all__ = ["APPLICATION_ID", "MIGRATIONS", "migrate"]

#: "CHLE": tells a ledger from any other SQLite file.
APPLICATION_ID: Final = 0x43484C45

_FIRST: Final = (
    """CREATE TABLE permissions (
        channel TEXT NOT NULL, package TEXT NOT NULL, permission TEXT NOT NULL,
        setting TEXT NOT NULL CHECK (setting IN ('allow', 'ask', 'deny')),
        until REAL, by TEXT NOT NULL, at REAL NOT NULL,
        PRIMARY KEY (channel, package, permission)) WITHOUT ROWID""",
    # what was asked for without a row: it shows in the list, but it is no row
    """CREATE TABLE asked (
        channel TEXT NOT NULL, package TEXT NOT NULL, permission TEXT NOT NULL, at REAL NOT NULL,
        PRIMARY KEY (channel, package, permission)) WITHOUT ROWID""",
    # readers keep a copy of the rows; trail rows change the file all the time, this counter only with them
    "CREATE TABLE changes (name TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID",
    "INSERT INTO changes VALUES ('permissions', 1)",
    """CREATE TRIGGER permissions_added AFTER INSERT ON permissions BEGIN
        UPDATE changes SET n = n + 1 WHERE name = 'permissions'; END""",
    """CREATE TRIGGER permissions_changed AFTER UPDATE ON permissions BEGIN
        UPDATE changes SET n = n + 1 WHERE name = 'permissions'; END""",
    """CREATE TRIGGER permissions_removed AFTER DELETE ON permissions BEGIN
        UPDATE changes SET n = n + 1 WHERE name = 'permissions'; END""",
    """CREATE TABLE enabled (
        dist TEXT NOT NULL, files_hash TEXT NOT NULL, environment TEXT NOT NULL,
        trusted INTEGER NOT NULL, by TEXT NOT NULL, at REAL NOT NULL,
        PRIMARY KEY (dist, files_hash, environment)) WITHOUT ROWID""",
    # no index on call_id: looking one call up is rare, and every call would pay a fifth more for its two rows
    """CREATE TABLE trail (
        id INTEGER PRIMARY KEY, at REAL NOT NULL, event TEXT NOT NULL, call_id TEXT, ordinal INTEGER,
        channel TEXT, principal TEXT, conversation TEXT, dist TEXT, name TEXT, permission TEXT, effect TEXT,
        setting TEXT, status TEXT, code TEXT, arguments TEXT, detail TEXT, duration_us INTEGER, by TEXT)""",
    """CREATE TRIGGER trail_never_changes BEFORE UPDATE ON trail BEGIN
        SELECT RAISE(ABORT, 'the trail is append-only'); END""",
    """CREATE TABLE jobs (
        call_id TEXT PRIMARY KEY, state TEXT NOT NULL, owner TEXT NOT NULL, dist TEXT NOT NULL,
        name TEXT NOT NULL, principal TEXT, conversation TEXT, opened_at REAL NOT NULL, ended_at REAL,
        code TEXT)""",
    "CREATE INDEX jobs_running ON jobs (owner) WHERE state = 'running'",
    """CREATE TABLE inbox (
        id INTEGER PRIMARY KEY, conversation TEXT, call_id TEXT NOT NULL, text BLOB NOT NULL,
        delivered_at REAL NOT NULL, taken_at REAL)""",
    "CREATE INDEX inbox_waiting ON inbox (conversation) WHERE taken_at IS NULL",
    """CREATE TABLE results (
        id TEXT PRIMARY KEY, principal TEXT NOT NULL, body BLOB NOT NULL, size INTEGER NOT NULL,
        sha256 TEXT NOT NULL, at REAL NOT NULL, expires_at REAL NOT NULL)""",
    "CREATE INDEX results_expiry ON results (expires_at)",
    """CREATE TABLE approvers (
        label TEXT PRIMARY KEY, token_hash TEXT NOT NULL UNIQUE, by TEXT NOT NULL, at REAL NOT NULL)""",
)

_STATES: Final = (
    "pending, approved, spent, started, done, failed, interrupted, not-started, declined, expired, void"
)

_SECOND: Final = (
    # a call that waits for a person, or did: its arguments masked, the secret ones in a file apart
    f"""CREATE TABLE holds (
        id TEXT PRIMARY KEY, call_id TEXT NOT NULL, state TEXT NOT NULL
        CHECK (state IN ({", ".join(repr(state) for state in _STATES.split(", "))})),
        environment TEXT NOT NULL, dist TEXT NOT NULL, name TEXT NOT NULL, descriptor_hash TEXT NOT NULL,
        files_hash TEXT NOT NULL, permission TEXT NOT NULL, effect TEXT NOT NULL, arguments BLOB NOT NULL,
        digest TEXT NOT NULL, secret TEXT, channel TEXT NOT NULL, policy TEXT NOT NULL,
        principal TEXT NOT NULL, conversation TEXT, scope TEXT NOT NULL, model_says TEXT NOT NULL,
        reasons TEXT NOT NULL, must_ask INTEGER NOT NULL, opened_at REAL NOT NULL, expires_at REAL NOT NULL,
        host TEXT NOT NULL, told INTEGER NOT NULL, answer TEXT, decided_by TEXT, decided_at REAL, owner TEXT,
        ended_at REAL, code TEXT, detail TEXT)""",
    "CREATE INDEX holds_state ON holds (state)",
    # the same call asked again by the same principal in the same conversation is not asked about again
    """CREATE TABLE declined (
        principal TEXT NOT NULL, scope TEXT NOT NULL, digest TEXT NOT NULL, hold TEXT NOT NULL,
        permission TEXT NOT NULL, by TEXT NOT NULL, at REAL NOT NULL,
        PRIMARY KEY (principal, scope, digest)) WITHOUT ROWID""",
    # which process runs what is approved for a conversation
    """CREATE TABLE leases (
        conversation TEXT PRIMARY KEY, owner TEXT NOT NULL, at REAL NOT NULL) WITHOUT ROWID""",
    # what a person's allow was given to; `facts` is the descriptor as it was, for the difference
    """CREATE TABLE pins (
        dist TEXT NOT NULL, name TEXT NOT NULL, descriptor_hash TEXT NOT NULL, files_hash TEXT NOT NULL,
        version TEXT NOT NULL, facts BLOB NOT NULL, by TEXT NOT NULL, at REAL NOT NULL,
        PRIMARY KEY (dist, name, descriptor_hash, files_hash)) WITHOUT ROWID""",
    # pins and trust are looked at with the rows, from the same copy
    *(
        f"""CREATE TRIGGER {table}_{verb} AFTER {verb} ON {table} BEGIN
        UPDATE changes SET n = n + 1 WHERE name = 'permissions'; END"""
        for table in ("pins", "enabled")
        for verb in ("INSERT", "UPDATE", "DELETE")
    ),
    "CREATE TABLE notes (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
)

_THIRD: Final = (
    # what was done on behalf of one is not handed to another who uses the same conversation id, or none
    "ALTER TABLE inbox ADD COLUMN principal TEXT",
    """UPDATE inbox SET principal = COALESCE(
        (SELECT principal FROM jobs WHERE jobs.call_id = inbox.call_id),
        (SELECT principal FROM holds WHERE holds.call_id = inbox.call_id))""",
    "DROP INDEX inbox_waiting",
    "CREATE INDEX inbox_waiting ON inbox (principal, conversation) WHERE taken_at IS NULL",
)

_FOURTH: Final = (
    # who may come in at the HTTP door, and for what; `permissions` is a JSON array, or NULL for any
    """CREATE TABLE tokens (
        label TEXT PRIMARY KEY, token_hash TEXT NOT NULL UNIQUE, channel TEXT NOT NULL,
        principal TEXT NOT NULL, permissions TEXT, by TEXT NOT NULL, at REAL NOT NULL)""",
    # sealed states that clients have brought back, until they would have expired
    "CREATE TABLE seals (mark TEXT PRIMARY KEY, expires_at REAL NOT NULL) WITHOUT ROWID",
    "CREATE INDEX seals_expiry ON seals (expires_at)",
)

#: step n brings a ledger from version n to n + 1. A published step never changes; a new one is added.
MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (_FIRST, _SECOND, _THIRD, _FOURTH)


def migrate(connection: sqlite3.Connection, steps: Sequence[Sequence[str]] = MIGRATIONS) -> int:
    """Bring a ledger to the last version, every step at once or not at all; return the version it had.

    Args:
        connection: inside a transaction, so that a failure in between leaves the ledger as it was.
        steps: the steps, the shipped ones by default.
    """
    found = int(connection.execute("PRAGMA user_version").fetchone()[0])
    for step in steps[found:]:
        for statement in step:
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version={len(steps)}")
    return found
