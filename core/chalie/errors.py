"""Every error of the host, and every code a result can carry.

A code is a promise to its reader (a model, a program, a test): its meaning never changes, and it
stays in this table for as long as the interface lives. The reference page of error codes is made
from `CODES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Final, NamedTuple

__all__ = [
    "CODES",
    "ArgumentRefused",
    "ChalieDeprecationWarning",
    "ChalieError",
    "ConfigError",
    "DescribeFailed",
    "IndexUnreadable",
    "Leaving",
    "LedgerUnavailable",
    "NameRefused",
    "NotAuthorised",
    "NotReady",
    "SchemaRefused",
    "warn_leaving",
]

#: code -> what it tells its reader, in one line.
CODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        # which tool
        "unknown-tool": "no tool of that name is installed, or it cannot be reached from here",
        "not-active": "the tool is installed but not active in this turn; find it with find_tools first",
        "ambiguous-name": "several packages own that name; call one of the qualified names listed",
        "not-ready": "the tool's package changed under the running host, or is still being read",
        "quarantined": "the tool's package could not be read safely and is set aside until it is repaired",
        # which arguments
        "unknown-action": "the action is not one of the tool's actions",
        "missing-params": "parameters that the call requires are absent",
        "invalid-param": "a parameter does not fit the tool's schema",
        "ambiguous-param": "two keys of the call mean the same parameter",
        "arguments-too-large": "the arguments are too deep, too many or too long to be checked safely",
        # which record
        "ambiguous-hint": "the hint fits several records; pass one of the values listed",
        "hint-not-found": "no record has that identifier or a title with these words; list them first",
        # how it ran
        "background-not-offered": "this channel does not run calls in the background",
        "timed-out": "the tool did not finish within its time limit",
        "cancelled": "the call was cancelled before it finished",
        "unhandled-exception": "the tool failed with an error of its own; the details are on the trail",
        "non-canonical-result": "the tool returned something that is not a result",
        "worker-died": "the tool's worker process ended before it answered",
        "busy": "too many calls are running or stuck; try again later",
        # how an MCP server did
        "not-connected": "the tool's server cannot be reached; nothing was sent to it",
        "connection-lost": "the tool's server was gone before it answered; it may have done something",
        "server-error": "the tool's server answered with an error; its text is the message",
        "result-mismatch": "the server's result is not what its tool declares; its text is the message",
        "needs-input": "the server asks for input during the call, which cannot be given",
        # whether it may
        "permission-denied": "the call may not run here; do not retry",
        "not-allowed": "this principal, channel or program may not do that",
        "approval-pending": "the call waits for a person; do not retry",
        "declined": "a person declined the call; do not retry",
        "not-authorised": "only the home's owner at a terminal, or an approver token, may do that",
        "hold-unknown": "no hold has that id",
        "already-decided": "somebody answered the hold first, or it has ended",
        # what is kept
        "result-unknown": "no kept result has that id for this principal",
        "cannot-record": "the call could not be recorded, so it was not run",
        "index-unreadable": "a search index is damaged and is being rebuilt",
        # what a person typed or installed
        "extra-missing": "an optional part of Chalie is not installed, or in a version that does not fit",
        "unknown-package": "no package of that name brings anything for Chalie in this Python",
        "unknown-server": "no MCP server of that name is configured",
        "unknown-playbook": "no playbook of that name is installed",
        "bad-config": "the configuration file cannot be read as written",
        "bad-file": "a file that a command was given cannot be read as written",
        "bad-name": "the name breaks the naming rules",
        "bad-schema": "the parameter schema cannot be used",
        "describe-failed": "the package's abilities could not be described",
        "ledger-unavailable": "the ledger cannot be opened or written",
    }
)


class ChalieError(Exception):
    """An expected failure: a stable code, what happened, and the next step.

    Args:
        message: one sentence for its reader: what, which package, ability or file, and why.
        code: a key of `CODES`; the class's own code when left out.
        hint: the next step, or None where there is none.
    """

    code: ClassVar[str] = "unhandled-exception"

    def __init__(self, message: str, *, code: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if code is not None:
            if code not in CODES:
                raise ValueError(f"{code!r} is not in chalie.errors.CODES")
            self.code = code  # type: ignore[misc]


class ConfigError(ChalieError):
    """The environment or `config.toml` says something that cannot be used."""

    code = "bad-config"


class NameRefused(ChalieError):
    """A name breaks the naming rules of abilities, servers or packages."""

    code = "bad-name"


class SchemaRefused(ChalieError):
    """A parameter schema is unusable: unresolvable, too large, or not an object's."""

    code = "bad-schema"


class DescribeFailed(ChalieError):
    """A package's abilities could not be described."""

    code = "describe-failed"


class NotReady(ChalieError):
    """A package's files are not those its descriptors were read from."""

    code = "not-ready"


class ArgumentRefused(ChalieError):
    """An ability refused one of its own arguments while it ran (see `Ability.param`).

    Args:
        message: what is wrong with which parameter.
        valid: the accepted values, for the `valid:` line; empty when there is no list.
    """

    code = "invalid-param"

    def __init__(
        self, message: str, *, code: str | None = None, hint: str | None = None, valid: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.valid = valid


class NotAuthorised(ChalieError):
    """Somebody who is neither the owner at a terminal nor an approver tried to decide."""

    code = "not-authorised"


class LedgerUnavailable(ChalieError):
    """The ledger cannot be opened, migrated, read or written."""

    code = "ledger-unavailable"


class IndexUnreadable(ChalieError):
    """A generation's index or catalogue fails its check."""

    code = "index-unreadable"


class ChalieDeprecationWarning(DeprecationWarning):
    """A package uses what a later release of Chalie will not have."""


class Leaving(NamedTuple):
    """When something goes, and what to use instead.

    Attributes:
        removed_in: the release of chalie that will not have it, as in `0.4`.
        instead: for its author.
    """

    removed_in: str
    instead: str


def warn_leaving(what: str, when: Leaving, *, place: tuple[str, int] | None = None) -> None:
    """Warn of the use of something that goes, on the line of the author who uses it.

    Args:
        what: as in `the class fact latency`.
        when: when it goes, and what comes instead.
        place: file and line; the innermost code that is not Chalie's own when left out.
    """
    import sys
    import warnings

    message = f"{what} will be removed in chalie {when.removed_in}; use {when.instead}"
    if place is not None:
        warnings.warn_explicit(message, ChalieDeprecationWarning, *place)
        return
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_own(frame.f_globals.get("__name__")):
        frame = frame.f_back
    # explicit: `stacklevel` counts the frames of an import in one case and leaves them out in another
    warnings.warn_explicit(
        message,
        ChalieDeprecationWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
        frame.f_globals.get("__name__"),
        frame.f_globals.setdefault("__warningregistry__", {}),
    )


#: modules whose frames are passed by: the host's, and what stands between an author and an import or a class.
_PASSED: Final = frozenset({__name__.partition(".")[0], "importlib", "abc"})


def _is_own(module: object) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in _PASSED
