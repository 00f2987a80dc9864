"""The exit codes of `chalie`: what a script may build on."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = [
    "EXITS",
    "FAILED",
    "INSTALLER",
    "INTERRUPTED",
    "NOTHING",
    "OK",
    "REFUSED",
    "SETUP",
    "UNWRITTEN",
    "USAGE",
    "of",
]

OK: Final = 0
NOTHING: Final = 1
USAGE: Final = 2
SETUP: Final = 3
REFUSED: Final = 4
FAILED: Final = 5
INSTALLER: Final = 6
UNWRITTEN: Final = 7
INTERRUPTED: Final = 130

#: exit code -> what it tells, for people and for the reference page.
EXITS: Final[Mapping[int, str]] = MappingProxyType(
    {
        OK: "done",
        NOTHING: "nothing was found; or `doctor`, `lint` or `catalogue diff` found something to look at",
        USAGE: "the command line could not be understood, or a name or a file on it cannot be used",
        SETUP: "the home, its configuration, ledger or index cannot be used",
        REFUSED: "refused: the gate, a person or a missing authority said no",
        FAILED: "the tool ran, or was about to, and answered with an error",
        INSTALLER: "pip or uv failed, neither is there, or what was installed cannot be read",
        UNWRITTEN: "what was to be printed could not be written, as to a full disk",
        INTERRUPTED: "interrupted from the keyboard",
    }
)

_KINDS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "bad-file": USAGE,
        "bad-name": USAGE,
        "bad-config": SETUP,
        "extra-missing": SETUP,
        "ledger-unavailable": SETUP,
        "cannot-record": SETUP,
        "index-unreadable": SETUP,
        "not-authorised": REFUSED,
        "not-allowed": REFUSED,
        "permission-denied": REFUSED,
        "approval-pending": REFUSED,
        "declined": REFUSED,
        "already-decided": REFUSED,
        "hold-unknown": NOTHING,
        "unknown-tool": NOTHING,
        "unknown-package": NOTHING,
        "unknown-playbook": NOTHING,
        "unknown-server": NOTHING,
        "result-unknown": NOTHING,
    }
)


def of(code: str | None) -> int:
    """Return the exit code for an error's code; None (no error) is 0."""
    return OK if code is None else _KINDS.get(code, FAILED)
