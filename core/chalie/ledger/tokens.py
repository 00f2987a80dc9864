"""The tokens that let a client in at the HTTP door: each for one channel, one principal, some permissions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from attrs import frozen

from .database import Database
from .trail import record, stored

__all__ = ["TokenRow", "Tokens"]

_COLUMNS: Final = "label, token_hash, channel, principal, permissions, by, at"


@frozen
class TokenRow:
    """What a token lets its holder do; the token itself is not kept.

    Attributes:
        id: tells it from every other token, one of the same label that was revoked included.
        label: the name it is listed and revoked by.
        channel: where its turns happen.
        principal: on whose behalf.
        permissions: the only permissions its calls may ask for; None for any, as the gate decides.
        by: who made it.
        at: when.
    """

    id: str
    label: str
    channel: str
    principal: str
    permissions: tuple[str, ...] | None
    by: str
    at: datetime


class Tokens:
    """Tokens, kept only as their SHA-256: they are random, so no slower hash is needed.

    Args:
        fast: the connection for reading.
        durable: gives the connection whose commits survive a loss of power.
        clock: the time in seconds since 1970.
    """

    def __init__(self, fast: Database, durable: Callable[[], Database], clock: Callable[[], float]) -> None:
        self._fast = fast
        self._durable = durable
        self._clock = clock

    def add(
        self,
        label: str,
        *,
        channel: str,
        principal: str,
        permissions: Sequence[str] | None = None,
        by: str = "host",
    ) -> str:
        """Make a token and return it; this is the only time it can be seen.

        Args:
            label: a short name for it, shown wherever it is listed.
            channel: where its turns happen.
            principal: on whose behalf.
            permissions: the only permissions its calls may ask for; None for any.
            by: who made it.

        Raises:
            ValueError: the label is taken, empty, longer than 64 characters or not printable, the principal
                is empty, or no permission is left.
        """
        if not label.strip() or len(label) > 64 or not label.isprintable():
            raise ValueError(f"a label is 1 to 64 printable characters, not {label!r}")
        if not principal.strip():
            raise ValueError("a token is for a principal with a name")
        if permissions is not None and not all(each.strip() for each in (permissions or ("",))):
            raise ValueError("a token for no permission lets nobody do anything; leave them out for any")
        import secrets

        token = f"chalie_mcp_{secrets.token_urlsafe(32)}"
        scope = None if permissions is None else json.dumps(sorted(set(permissions)))
        now = self._clock()
        with self._durable().transaction() as connection:
            if connection.execute("SELECT 1 FROM tokens WHERE label = ?", (stored(label),)).fetchone():
                raise ValueError(
                    f"there is a token {label!r} already; revoke it first or choose another label"
                )
            values = (label, _digest(token), channel, principal, scope, by, now)
            connection.execute(
                f"INSERT INTO tokens ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", tuple(map(stored, values))
            )
            record(connection, now, "token.added", channel=channel, principal=principal, detail=label, by=by)
        return token

    def check(self, token: str) -> TokenRow | None:
        """Return what a token is for, or None where there is no such token."""
        rows = self._fast.read(f"SELECT {_COLUMNS} FROM tokens WHERE token_hash = ?", (_digest(token),))
        return _row(rows[0]) if rows else None

    def list(self) -> tuple[TokenRow, ...]:
        """Return the tokens in order of their labels."""
        return tuple(map(_row, self._fast.read(f"SELECT {_COLUMNS} FROM tokens ORDER BY label")))

    def revoke(self, label: str, *, by: str = "host") -> bool:
        """Take a token back; return whether there was one of that label."""
        now = self._clock()
        with self._durable().transaction() as connection:
            found = connection.execute("DELETE FROM tokens WHERE label = ?", (stored(label),)).rowcount
            if found:
                record(connection, now, "token.revoked", detail=label, by=by)
        return bool(found)


def _row(row: Any) -> TokenRow:
    label, digest, channel, principal, permissions, by, at = row
    scope = None if permissions is None else tuple(json.loads(permissions))
    return TokenRow(digest[:16], label, channel, principal, scope, by, datetime.fromtimestamp(at, UTC))


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
