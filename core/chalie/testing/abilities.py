"""What the contract asks of abilities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from . import model_apis
from .bench import Bench, Called, Fault

if TYPE_CHECKING:
    from ..catalogue.descriptor import Descriptor
    from ..host import Host

__all__ = ["accepted", "answering", "described", "found", "withstanding"]

_FEWEST: Final = 6
_MOST: Final = 8
_FIRST: Final = 3
#: faults of one check that are worth reading.
_SHOWN: Final = 8

#: code -> what it says of the ability, and the edit.
_FAILURES: Final = {
    "unhandled-exception": (
        "raised an exception",
        "check the argument first, or catch it in run() and return ToolResult.error(..., code=..., hint=...)",
    ),
    "non-canonical-result": (
        "returned no ToolResult",
        "return ToolResult.ok(...) or ToolResult.error(...) on every path through run()",
    ),
    "timed-out": ("did not finish in time", "give what it waits for a time limit, and check sizes first"),
    "worker-died": ("ended its process", "never call os._exit or sys.exit; return ToolResult.error(...)"),
    "describe-failed": ("cannot be imported", "import in run() what may be missing"),
    "not-ready": ("cannot be imported", "leave the package's files alone while it runs"),
    "busy": ("left its calls hanging", "give what it waits for a time limit"),
}


def described(bench: Bench) -> list[Fault]:
    """Return why its facts cannot be read, differ between readings, or are not complete."""
    with bench.host() as host:
        faults = [
            Fault(problem.entry_point or problem.dist, problem.reason, problem.fix)
            for problem in host.snapshot.problems()
            if problem.dist == bench.dist
            and problem.phase in ("import", "describe", "check", "metadata", "scan")
        ]
        found = bench.abilities(host)
        for ability in found:
            count = len(ability.examples)
            if not _FEWEST <= count <= _MOST:
                what = f"examples() has {count}"
                fix = "give six to eight things people say who need it, each in other words"
                faults.append(Fault(ability.name, what, fix))
        if not found and not faults:
            fix = "define a class derived from chalie.Ability in the module its entry point names"
            faults.append(Fault(bench.dist, "it brings no ability", fix))
    return faults


def accepted(bench: Bench) -> list[Fault]:
    """Return what makes a model API refuse one of its tools; what strict modes ask for goes to the output."""
    faults: list[Fault] = []
    with bench.host() as host:
        for ability in bench.abilities(host):
            objections = model_apis.refusals(ability.name, ability.summary, ability.parameters)
            faults += [
                Fault(f"{ability.name}, {one.where}", f"{one.reason}: {one.api} refuses that", one.fix)
                for one in objections
            ]
            for note in model_apis.notes(ability.parameters):
                print(f"note: {ability.name}, {note.where}: {note.reason} ({note.api})")  # noqa: T201
        return faults or _unread(bench, host)


def found(bench: Bench) -> list[Fault]:
    """Return the examples that others win: each has to find its own ability among everything installed."""
    faults: list[Fault] = []
    with bench.host() as host:
        for ability in bench.abilities(host):
            if ability.discoverable:
                faults += [fault for text in ability.examples if (fault := _lost(host, ability, text))]
        return faults or _unread(bench, host)


def _lost(host: Host, ability: Descriptor, text: str) -> Fault | None:
    answer = host.find([text])
    names = [hit.item.key for hit in answer.hits]
    if ability.key in names[:_FIRST]:
        return None
    if answer.degraded:
        what = f"search could not be asked whether {text!r} finds it: {'; '.join(answer.causes)}"
        return Fault(ability.name, what, "python -m pip install chalie-model-static, then chalie index")
    if not names:
        what = f"the example {text!r} finds nothing"
        return Fault(ability.name, what, "say it in words that the summary or another example shares")
    winners = ", ".join(f"{name} ({dist})" for dist, name in names[:_FIRST])
    what = f"the example {text!r} finds {winners} first"
    return Fault(ability.name, what, "reword it to what only this ability does, or name that in summary()")


def answering(bench: Bench) -> list[Fault]:
    """Return the plain calls that fail, and the incomplete ones that are not refused."""
    calls = bench.called()
    faults = [fault for call in calls if call.kind != "hostile" and (fault := _failed(call, bench.limit_s))]
    faults += [
        Fault(
            call.ability,
            f"{call.label}: the call ran, and what it lacks is required",
            "name the parameter under required, or in action_required",
        )
        for call in calls
        if call.kind == "refused" and call.status == "success"
    ]
    return _short(faults) or _uncalled(bench, calls)


def withstanding(bench: Bench) -> list[Fault]:
    """Return the hostile calls that crash, hang or come to no result."""
    calls = bench.called()
    faults = [fault for call in calls if call.kind == "hostile" and (fault := _failed(call, bench.limit_s))]
    return _short(faults) or _uncalled(bench, calls)


def _failed(call: Called, limit_s: float) -> Fault | None:
    detail = f" ({call.detail})" if call.detail else ""
    if call.status == "died":
        what = f"{call.label or 'opening the host'}: the process ended with the call{detail}"
        return Fault(call.ability, what, _FAILURES["worker-died"][1])
    if call.status == "broken":
        what = f"{call.label}: its answer is no envelope{detail}"
        return Fault(call.ability, what, "report this to Chalie: the host renders every answer")
    if call.code == "timed-out" and call.seconds < limit_s:
        return None  # a limit of its own, which it keeps
    if call.code in _FAILURES:
        happened, fix = _FAILURES[call.code]
        return Fault(call.ability, f"{call.label}: {happened}{detail}", fix)
    return None


def _short(faults: list[Fault]) -> list[Fault]:
    """Return the first few faults, one of each kind of failure before the second of any."""
    by_kind: dict[tuple[str, str], list[Fault]] = {}
    for fault in faults:
        by_kind.setdefault((fault.where, fault.what.partition("(")[2] or fault.fix), []).append(fault)
    chosen = list(_round(list(by_kind.values())))
    left = len(chosen) - _SHOWN
    if left > 0:
        chosen[_SHOWN:] = [Fault("and", f"{left} more", "mend these first")]
    return chosen


def _round(groups: list[list[Fault]]) -> Iterator[Fault]:
    for place in range(max(map(len, groups), default=0)):
        yield from (group[place] for group in groups if place < len(group))


def _uncalled(bench: Bench, calls: list[Called]) -> list[Fault]:
    if calls:
        return []
    with bench.host() as host:
        return _unread(bench, host) or [Fault(bench.dist, "no call could be made", "chalie doctor")]


def _unread(bench: Bench, host: Host) -> list[Fault]:
    """Return that nothing could be checked, where its facts could not be read."""
    if bench.abilities(host):
        return []
    return [Fault(bench.dist, "its abilities could not be read", "mend what the check is-described says")]
