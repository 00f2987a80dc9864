"""What a package's tests need: a host of their own, a scripted approver, a clock, a server, and the contract.

With Chalie installed, pytest has the fixtures `host`, `turn`, `call`, `approver`, `clock` and `service`; see
`chalie.testing.plugin`. A test file with these two lines holds its package to the contract:

    from chalie.testing.contract import contract

    test_contract = contract("chalie-ability-dice")

Every name here is imported when it is first asked for, since pytest looks at this package in every run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .approver import ScriptedApprover
    from .clock import Clock
    from .outcome import Outcome, assert_error, assert_held, assert_ok
    from .service import Request, Service

__all__ = [
    "Clock",
    "Outcome",
    "Request",
    "ScriptedApprover",
    "Service",
    "assert_error",
    "assert_held",
    "assert_ok",
]

_HOMES = {
    "Clock": "clock",
    "Outcome": "outcome",
    "Request": "service",
    "ScriptedApprover": "approver",
    "Service": "service",
    "assert_error": "outcome",
    "assert_held": "outcome",
    "assert_ok": "outcome",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'chalie.testing' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value
