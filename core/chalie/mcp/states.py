"""The sealed states that clients of 2026-07-28 carry between two requests: a hold's id, good once."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import os
import time
from collections.abc import Callable
from typing import Final

from ..ledger import Ledger

__all__ = ["States"]

#: seconds in which a state is good.
GOOD_S: Final = 3600.0
_PURPOSE: Final = b"chalie mcp request state 1"


class States:
    """States that nobody else can make, change, use for another caller, or use twice.

    Args:
        ledger: keeps the home's key and which states were used.
        clock: the time in seconds since 1970.
    """

    def __init__(self, ledger: Ledger, clock: Callable[[], float] = time.time) -> None:
        self._ledger = ledger
        self._clock = clock
        self._key: bytes | None = None

    def seal(self, hold_id: str, caller: str) -> str:
        """Return the state of a hold's question to one caller.

        Raises:
            LedgerUnavailable: the home's key cannot be read or written.
        """
        facts = [hold_id, os.urandom(12).hex(), self._clock() + GOOD_S]
        payload = json.dumps(facts, separators=(",", ":")).encode()
        return f"{_text(payload)}.{_text(self._sign(payload, caller))}"

    def open(self, state: str, caller: str) -> str | None:
        """Return the hold's id and use the state up; None where it is not good, or no more.

        Raises:
            LedgerUnavailable: that it was used cannot be stored.
        """
        try:
            payload, mark = (base64.urlsafe_b64decode(part + "==") for part in state.split("."))
        except (ValueError, binascii.Error):
            return None
        if not hmac.compare_digest(mark, self._sign(payload, caller)):
            return None
        hold_id, once, expires_at = json.loads(payload)
        return str(hold_id) if self._ledger.seals.use(str(once), float(expires_at)) else None

    def _sign(self, payload: bytes, caller: str) -> bytes:
        if self._key is None:
            home = self._ledger.holds.secrets.key()
            self._key = hmac.new(home, _PURPOSE, hashlib.sha256).digest()
        return hmac.new(self._key, json.dumps(caller).encode() + payload, hashlib.sha256).digest()


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
