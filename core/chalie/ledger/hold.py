"""A call that waits for a person, or did: the value, and how it is stored."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any, Final

from attrs import field, fields, frozen

from .trail import record, stored

__all__ = [
    "COLUMNS",
    "DETAIL",
    "ENDED",
    "INSERT",
    "OPEN",
    "RUNNING",
    "Hold",
    "decoded",
    "hold_of",
    "said",
    "stored",
    "tell",
    "values",
]

#: states in which a person may still answer.
OPEN: Final = ("pending", "not-started")
#: states in which a process has taken it on.
RUNNING: Final = ("spent", "started")
#: states that nothing follows.
ENDED: Final = ("done", "failed", "interrupted", "declined", "expired", "void")


@frozen
class Hold:
    """A call that waits for a person, or did.

    Attributes:
        id: 8 hex digits; what a person answers.
        call_id: the call it came from, as on the trail.
        environment: key of the Python environment that it runs in, and in no other.
        files_hash: over the package's files when it was asked; for people.
        arguments: healed and validated, secrets masked.
        digest: over package, name and canonical arguments; keyed where there are secrets.
        secret: where the whole arguments are while it is open, or None where nothing is masked.
        channel, policy: where it was asked, and whose rows apply.
        scope: the conversation, or the turn where there is none: within it a decline is remembered.
        reasons: why it had to be asked.
        must_ask: whether "always" is no answer.
        opened_at, expires_at, decided_at, ended_at: seconds since 1970.
        host: mark of the process that opened it.
        told: whether its caller was told to wait, so that what becomes of it goes to the inbox.
        answer, decided_by: the answer's kind and whose it was.
        owner: mark of the process that took it on.
        code: the error's code of a call that ran, or None.
        detail: what there is to say about its state.
    """

    id: str
    call_id: str
    state: str
    environment: str
    dist: str
    name: str
    descriptor_hash: str
    files_hash: str
    permission: str
    effect: str
    arguments: Mapping[str, Any] = field(hash=False)
    digest: str
    secret: str | None
    channel: str
    policy: str
    principal: str
    conversation: str | None
    scope: str
    model_says: str
    reasons: tuple[str, ...]
    must_ask: bool
    opened_at: float
    expires_at: float
    host: str = ""
    told: bool = False
    answer: str | None = None
    decided_by: str | None = None
    decided_at: float | None = None
    owner: str | None = None
    ended_at: float | None = None
    code: str | None = None
    detail: str | None = None


_NAMES: Final = tuple(each.name for each in fields(Hold))
COLUMNS: Final = ", ".join(_NAMES)
INSERT: Final = f"INSERT INTO holds ({COLUMNS}) VALUES ({', '.join('?' * len(_NAMES))})"


DETAIL: Final = 2000


def tell(
    connection: sqlite3.Connection, now: float, event: str, hold: Hold, setting: str, **more: str | None
) -> None:
    """Put an event of a hold on the trail, inside the transaction of its change."""
    record(
        connection,
        now,
        event,
        call_id=hold.call_id,
        channel=hold.policy,
        principal=hold.principal,
        conversation=hold.conversation,
        dist=hold.dist,
        name=hold.name,
        permission=hold.permission,
        effect=hold.effect,
        setting=setting,
        **more,
    )


def said(hold: Hold, reason: str | None) -> str:
    """Return the detail of an event: the hold, and why where there is something to say."""
    return json.dumps({"hold": hold.id} | ({"reason": reason} if reason else {}), ensure_ascii=False)


def values(hold: Hold) -> tuple[Any, ...]:
    """Return a hold as the values of its row, in the order of `COLUMNS`."""
    row = {name: getattr(hold, name) for name in _NAMES}
    arguments = json.dumps(dict(hold.arguments), ensure_ascii=False)
    row["arguments"] = arguments.encode("utf-8", "surrogatepass")
    row["reasons"] = json.dumps(hold.reasons)
    return tuple(map(stored, row.values()))


def hold_of(row: Any) -> Hold:
    """Return the hold of a row."""
    facts = dict(zip(_NAMES, row, strict=True))
    facts["arguments"] = decoded(bytes(facts["arguments"]))
    facts["reasons"] = tuple(json.loads(facts["reasons"]))
    facts["must_ask"], facts["told"] = bool(facts["must_ask"]), bool(facts["told"])
    return Hold(**facts)


def decoded(data: bytes) -> dict[str, Any]:
    """Return stored arguments."""
    found = json.loads(data.decode("utf-8", "surrogatepass"))
    assert isinstance(found, dict)
    return found
