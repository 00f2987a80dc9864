"""Chalie: a plugin host for the tools of AI agents: found by name or meaning, called through one gated road.

Every public name stands in `__all__`, and is imported when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .ability import Ability, Context
    from .calls import (
        Answer,
        AnswerKind,
        Approver,
        Call,
        CallRecord,
        Channel,
        HoldChange,
        HoldView,
        Limit,
        Opinion,
        SideEffect,
    )
    from .errors import (
        ArgumentRefused,
        ChalieError,
        ConfigError,
        DescribeFailed,
        IndexUnreadable,
        LedgerUnavailable,
        NameRefused,
        NotAuthorised,
        NotReady,
        SchemaRefused,
    )
    from .gate.approvers import TerminalApprover
    from .hookspecs import hookimpl
    from .host import Host
    from .result import ToolResult
    from .turn import Turn

__all__ = [
    "Ability",
    "Answer",
    "AnswerKind",
    "Approver",
    "ArgumentRefused",
    "Call",
    "CallRecord",
    "ChalieError",
    "Channel",
    "ConfigError",
    "Context",
    "DescribeFailed",
    "HoldChange",
    "HoldView",
    "Host",
    "IndexUnreadable",
    "LedgerUnavailable",
    "Limit",
    "NameRefused",
    "NotAuthorised",
    "NotReady",
    "Opinion",
    "SchemaRefused",
    "SideEffect",
    "TerminalApprover",
    "ToolResult",
    "Turn",
    "__version__",
    "hookimpl",
]

_HOMES = {
    "ability": ("Ability", "Context"),
    "calls": (
        "Answer",
        "AnswerKind",
        "Approver",
        "Call",
        "CallRecord",
        "Channel",
        "HoldChange",
        "HoldView",
        "Limit",
        "Opinion",
        "SideEffect",
    ),
    "errors": (
        "ArgumentRefused",
        "ChalieError",
        "ConfigError",
        "DescribeFailed",
        "IndexUnreadable",
        "LedgerUnavailable",
        "NameRefused",
        "NotAuthorised",
        "NotReady",
        "SchemaRefused",
    ),
    "gate.approvers": ("TerminalApprover",),
    "hookspecs": ("hookimpl",),
    "host": ("Host",),
    "result": ("ToolResult",),
    "turn": ("Turn",),
}
#: public names that go: name -> (release that will not have it, what to use instead).
_LEAVING: dict[str, tuple[str, str]] = {}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'chalie' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f".{home}", __name__), name)
    if name in _LEAVING:  # asked for anew each time, so that each user of it is told
        errors = import_module(".errors", __name__)
        errors.warn_leaving(f"chalie.{name}", errors.Leaving(*_LEAVING[name]))
        return value
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
