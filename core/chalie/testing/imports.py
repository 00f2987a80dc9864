"""What the import of a package may cost and do."""

from __future__ import annotations

from .bench import IMPORT_LIMIT_S, Bench, Fault

__all__ = ["quick", "traceless"]

_MENDING = {
    "network": "connect in run(), when the service is needed",
    "files": "write in run(), into self.context.data_folder",
    "processes": "start it in run()",
}
_DOING = {
    "network": "opens a connection",
    "files": "changes a file",
    "processes": "starts a process",
}


def quick(bench: Bench) -> list[Fault]:
    """Return that its import is slow, if it is: every program pays that at its first call."""
    seconds = bench.import_seconds()
    if seconds <= IMPORT_LIMIT_S:
        return []
    what = f"importing it takes {seconds * 1000:.0f} ms of processor time, over {IMPORT_LIMIT_S * 1000:.0f}"
    fix = f"import heavy modules inside run(); find them: python -X importtime -c 'import {_first(bench)}'"
    return [Fault(_first(bench), what, fix)]


def traceless(bench: Bench) -> list[Fault]:
    """Return what its import leaves behind, or needs from outside."""
    found = bench.watched_import()
    faults = [
        Fault(
            one["where"] or _first(bench),
            f"importing it {_DOING[one['kind']]}: {one['what']}",
            f"{_MENDING[one['kind']]}: to read its facts is to import it",
        )
        for one in found["seen"]
    ]
    if found["failed"]:
        what = f"its import failed without a network, in an empty home: {found['failed']}"
        fix = "let the import succeed anywhere, and say in run() what is missing"
        faults.append(Fault(_first(bench), what, fix))
    return faults


def _first(bench: Bench) -> str:
    return bench.modules()[0]
