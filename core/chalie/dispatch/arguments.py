"""A call's arguments on their way from a model to a tool: taken apart, repaired, checked.

The order is fixed. The host's own parameters come off first. Then a bounded walk makes sure that the rest is
JSON of a size that can be looked at; keys and values are repaired where there is one way to read them; the
action and what it requires are checked, all at once; last comes JSON Schema. Everything after this file sees
the repaired form. Where a handle stands for a kept result, it is the expanded form that is checked.
"""

from __future__ import annotations

import json
import string
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from itertools import accumulate, islice
from typing import Any, Final

from attrs import frozen

from ..catalogue.descriptor import Descriptor
from ..errors import ArgumentRefused, SchemaRefused
from ..names import normal, shown
from ..result import ToolResult
from ..schema import INJECTED, compiled, digest, work_by_depth
from .bounds import MOST_BYTES, step, too_large, walk
from .handles import MOST_EXPANDED, Handles, has_handle
from .healing import MOST_VALUES as MOST_WHOLE_VALUES
from .healing import Repairs, json_object

__all__ = ["Prepared", "copied", "expanded", "prepare", "take_injected"]

# Values times the subschemas that speak of one; about half a second of validating.
_MOST_WORK: Final = 20_000_000
# As much of it as is repaired, and searched for every problem, in a fraction of a second.
_MOST_REPAIR_WORK: Final = 50_000
_MOST_REPAIRS: Final = 1_000
_MOST_TOLD: Final = 50
_PLAIN: Final = frozenset({str, int, float, bool, type(None)})
#: How many parameters a call may have that is looked at in one go.
_MOST_PLAIN: Final = 32
_LONGEST_SUMMARY: Final = 500
_MOST_PROBLEMS: Final = 5
_MOST_VALIDATORS: Final = 256
_YES: Final = frozenset({"true", "yes", "on", "1"})
_INJECTED_NORMAL: Final = {normal(name): name for name in INJECTED}
_FIRST_LETTERS: Final = frozenset(letter for name in INJECTED for letter in (name[0], name[0].upper()))
_MARKS: Final = string.punctuation + string.whitespace


@frozen
class Prepared:
    """Arguments fit to be judged and run.

    Attributes:
        arguments: repaired, validated, and a copy of its own; handles are bound.
        healed: each repair in words; empty for arguments that came as they should.
        whole: the same with handles expanded, which is what was validated; None where there are none.
    """

    arguments: dict[str, Any]
    healed: tuple[str, ...] = ()
    whole: dict[str, Any] | None = None


def take_injected(arguments: Any) -> tuple[Any, str, bool]:
    """Take the host's own parameters off a call.

    Args:
        arguments: what the model sent: a mapping, the JSON text of an object, or None.

    Returns:
        The rest, what the model says the call is for (empty if it does not), and whether it is to run in
        the background. `"false"`, `"no"`, `0`, null and whatever is not clearly yes are no. What is no object
        at all is returned as it is, for `prepare` to refuse.
    """
    if type(arguments) is not dict:
        if isinstance(arguments, (str, bytes, bytearray)) and len(arguments) <= MOST_BYTES:
            try:
                arguments = json_object(_text(arguments))
            except ArgumentRefused:
                return arguments, "", False
        if not isinstance(arguments, Mapping):
            return arguments, "", False
    rest = dict(arguments)
    taken = {name: rest.pop(name) for name in INJECTED if name in rest}
    for key in [key for key in rest if isinstance(key, str) and len(key) < 24 and _may_be_injected(key)]:
        name = _INJECTED_NORMAL.get(normal(key.strip(" \"'`")))
        if name is not None and name not in taken:
            taken[name] = rest.pop(key)
    return rest, _summary(taken.get("act_summary")), _is_yes(taken.get("async"))


def _may_be_injected(key: str) -> bool:
    """Whether a key is worth the fold: both names begin with `a`, only blanks and marks may stand before."""
    return key.lstrip(_MARKS)[:1] in _FIRST_LETTERS or not key.isascii()


def _summary(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _LONGEST_SUMMARY else text[: _LONGEST_SUMMARY - 1] + "…"


def _is_yes(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in _YES
    return value is True or (isinstance(value, (int, float)) and value == 1)


def _text(arguments: str | bytes | bytearray) -> str:
    if isinstance(arguments, str):
        return arguments
    try:
        return bytes(arguments).decode()
    except UnicodeDecodeError as error:
        raise ArgumentRefused("the arguments are bytes that are not text") from error


def prepare(
    descriptor: Descriptor, arguments: Any, handles: Handles | None = None, principal: str = ""
) -> Prepared | ToolResult:
    """Return a call's arguments ready to be judged and run, or the error the model gets.

    Args:
        descriptor: of the tool that is called.
        arguments: what the model sent without the host's own parameters: a mapping, the JSON text of an
            object, or None for no arguments.
        handles: binds and expands handles of kept results; None takes them as they are.
        principal: whose results they must be.

    Raises:
        ChalieError: `result-unknown`.
        LedgerUnavailable: kept results cannot be read.

    The errors are `arguments-too-large`, `ambiguous-param`, `unknown-action`, `missing-params` (all at once)
    and `invalid-param` (the first five, each with its path). No error shows a value, for it may be a secret.
    """
    try:
        checks = _checks_of(descriptor)
        plain = _plain(checks, arguments)
        fixed, healed, may_nest = plain or _repaired(checks, arguments)
        if plain is None and handles is not None and has_handle(fixed):
            return _with_handles(descriptor, checks, handles, principal, fixed, healed)
        _check_action(descriptor, checks.repairs, fixed, healed)
        if checks.validator.is_valid(fixed):
            return Prepared(fixed, _told(healed))
        return _invalid(checks, _problems(checks.validator, fixed, every=may_nest))
    except ArgumentRefused as refused:
        return ToolResult.error(refused.message, code=refused.code, hint=refused.hint, valid=refused.valid)
    except SchemaRefused as refused:  # only of a descriptor that no describing process has checked
        return ToolResult.error(refused.message, code=refused.code, hint=refused.hint)


def _plain(checks: _Checks, arguments: Any) -> tuple[dict[str, Any], list[str], bool] | None:
    """Return what `_repaired` would of arguments so plain that nothing is to be repaired, else None.

    Most calls are: a few short texts and numbers, each under a parameter's own name.
    """
    if type(arguments) is not dict or len(arguments) > _MOST_PLAIN or not checks.repairs.leaves(arguments):
        return None
    return dict(arguments), [], _work(checks, len(arguments) + 1, 1) <= _MOST_REPAIR_WORK


def _repaired(checks: _Checks, arguments: Any) -> tuple[dict[str, Any], list[str], bool]:
    """Return a repaired copy of bounded arguments, each repair in words, and whether all could be looked at.

    Raises:
        ArgumentRefused: as `prepare` says.
    """
    given = _as_mapping(arguments)
    may_nest = _bounded(checks, given)
    fixed, done = checks.repairs.repaired(_copied(given), may_nest)
    healed = list(done)
    while done and len(healed) < _MOST_REPAIRS:  # decoding may have brought new values to light
        may_nest = _bounded(checks, fixed)
        fixed, done = checks.repairs.repaired(fixed, may_nest)
        healed.extend(done)
    if done:
        may_nest = _bounded(checks, fixed)
    return fixed, healed, may_nest


def expanded(
    descriptor: Descriptor, arguments: dict[str, Any], handles: Handles, principal: str
) -> dict[str, Any]:
    """Return bound arguments as they run: with each handle's text, or its JSON, in its place.

    Raises:
        ChalieError: `result-unknown`, `arguments-too-large`.
        LedgerUnavailable: kept results cannot be read.
    """
    return _whole(_checks_of(descriptor), handles.expand(principal, arguments), [])


def _with_handles(
    descriptor: Descriptor,
    checks: _Checks,
    handles: Handles,
    principal: str,
    arguments: dict[str, Any],
    healed: list[str],
) -> Prepared | ToolResult:
    """Check repaired arguments with their handles expanded."""
    bound = handles.bind(principal, arguments)
    whole = _whole(checks, handles.expand(principal, bound), healed)
    _check_action(descriptor, checks.repairs, whole, healed)
    if "action" in whole:
        bound.setdefault("action", whole["action"])
    if checks.validator.is_valid(whole):
        return Prepared(bound, _told(healed), whole)
    return _invalid(checks, _problems(checks.validator, whole, every=False))


def _whole(checks: _Checks, arguments: dict[str, Any], healed: list[str]) -> dict[str, Any]:
    """Return expanded arguments with JSON decoded where no text is wanted; refuse what is too large."""
    # the bytes of the texts were counted as they were expanded; values are counted with 4 bytes each
    most = MOST_WHOLE_VALUES, MOST_BYTES + 2 * MOST_EXPANDED + 4 * MOST_WHOLE_VALUES
    may_nest = _work(checks, *walk(arguments, *most)) <= _MOST_REPAIR_WORK
    whole, done = checks.repairs.repaired(arguments, may_nest)
    healed.extend(done)
    if done:
        _work(checks, *walk(whole, *most))
    return whole


def _told(healed: list[str]) -> tuple[str, ...]:
    more = len(healed) - _MOST_TOLD
    return tuple(healed) if more <= 0 else (*healed[:_MOST_TOLD], f"and {more} more")


@frozen
class _Checks:
    """What one descriptor's arguments are checked with, made once.

    Attributes:
        validator: the compiled schema.
        repairs: what can be repaired.
        work: for data so deep, how many subschemas may speak of one of its values (see `work_by_depth`).
    """

    validator: Any
    repairs: Repairs
    work: tuple[int, ...]


_kept: OrderedDict[str, _Checks] = OrderedDict()
_kept_lock = threading.Lock()


def _checks_of(descriptor: Descriptor) -> _Checks:
    key = descriptor.hash or digest([descriptor.parameters, dict(descriptor.aliases)])
    with _kept_lock:
        checks = _kept.get(key)
        if checks is not None:
            _kept.move_to_end(key)
            return checks
    parameters = descriptor.parameters
    work = tuple(accumulate(work_by_depth(parameters), max))
    checks = _Checks(compiled(parameters), Repairs(parameters, descriptor.aliases), work)
    with _kept_lock:
        _kept[key] = checks
        while len(_kept) > _MOST_VALIDATORS:
            _kept.popitem(last=False)
    return checks


def _as_mapping(arguments: Any) -> Mapping[str, Any]:
    if arguments is None:
        return {}
    if isinstance(arguments, (str, bytes, bytearray)):
        if len(arguments) > MOST_BYTES:
            raise too_large(f"are over {MOST_BYTES} bytes")
        text = _text(arguments)
        return json_object(text) if text.strip() not in ("", "null") else {}
    if not isinstance(arguments, Mapping):
        raise ArgumentRefused(
            f"the arguments are a {type(arguments).__name__}", hint="pass the arguments as one JSON object"
        )
    return arguments


def _bounded(checks: _Checks, arguments: Mapping[str, Any]) -> bool:
    """Refuse arguments out of bounds, and tell whether they can be repaired at every depth in good time."""
    return _work(checks, *walk(arguments)) <= _MOST_REPAIR_WORK


def _work(checks: _Checks, values: int, depth: int) -> int:
    """Return how much work it is to check so many values; refuse what takes too long."""
    work = values * checks.work[min(depth, len(checks.work) - 1)]
    if work > _MOST_WORK:
        raise too_large("take too long to check against the tool's alternatives")
    return work


def _copied(value: Any) -> Any:
    """Return walked arguments as containers of their own, so what is approved cannot change afterwards."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Mapping):
        return {str(key): _copied(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copied(item) for item in value]
    return next(plain(value) for plain in (str, int, float) if isinstance(value, plain))


def copied(value: Any) -> Any:
    """Return a copy of JSON values that shares no list or object with the original."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copied(item) for item in value]
    return value


def _check_action(
    descriptor: Descriptor, repairs: Repairs, arguments: dict[str, Any], healed: list[str]
) -> None:
    """Refuse an action the tool does not have, and a call that leaves out what it requires."""
    if not (repairs.required or descriptor.actions):
        return
    action = arguments.get("action")
    if descriptor.actions and not descriptor.classifies:
        if action is None:
            action = _default_action(descriptor, arguments, healed)
        elif not isinstance(action, str) or action not in descriptor.actions:
            raise ArgumentRefused(
                f"{descriptor.name} has no action {shown(str(action)[:80])}",
                code="unknown-action",
                hint="pass one of its actions as action=",
                valid=tuple(descriptor.actions),
            )
    needed = descriptor.action_required.get(action, ()) if isinstance(action, str) else ()
    missing = [name for name in dict.fromkeys(needed) if arguments.get(name) is None]
    missing += [
        name
        for name in repairs.required
        if name not in missing and (name not in arguments or repairs.is_absent(name, arguments[name]))
    ]
    if missing:
        unknown = [shown(key[:80]) for key in arguments if key not in repairs.names][:5]
        who = f"{descriptor.name} {action}" if needed and action else descriptor.name
        raise ArgumentRefused(
            f"{who} requires {_listed(missing)}",
            code="missing-params",
            hint=f"pass {_listed([f'{name}=' for name in missing])}"
            + (f"; {_listed(unknown)} is no parameter of it" if unknown else ""),
            valid=tuple(descriptor.actions) if missing == ["action"] else tuple(missing),
        )


def _default_action(descriptor: Descriptor, arguments: dict[str, Any], healed: list[str]) -> str | None:
    """Put the schema's own default in place of an action that is absent: gate and tool then see the same."""
    declared = (descriptor.parameters.get("properties") or {}).get("action")
    default = declared.get("default") if isinstance(declared, Mapping) else None
    if not isinstance(default, str) or default not in descriptor.actions:
        raise ArgumentRefused(
            f"{descriptor.name} requires action",
            code="missing-params",
            hint="pass one of its actions as action=",
            valid=tuple(descriptor.actions),
        )
    arguments["action"] = default
    healed.append(f"took action={default}, its default, since none was passed")
    return default


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _problems(validator: Any, arguments: dict[str, Any], *, every: bool) -> list[Any]:
    """Return what the validator has against the arguments: the first problems, of large data only the first.

    The validator finds every problem before it gives the first, with those of each alternative; of large
    data that takes minutes.
    """
    if every:
        return list(islice(validator.iter_errors(arguments), _MOST_PROBLEMS + 1))
    try:
        validator.validate(arguments)
    except ValueError as problem:
        return [problem]
    raise AssertionError("the validator refused the arguments and then did not say why")


def _invalid(checks: _Checks, problems: list[Any]) -> ToolResult:
    """Return problems as an error for the model: each with its path, no values shown."""
    lines = [f"{_path(problem)}: {_reason(problem)}" for problem in problems[:_MOST_PROBLEMS]]
    if len(problems) > _MOST_PROBLEMS:
        lines.append("and more")
    first = problems[0]
    details = first.kind.as_dict()
    hint = f"correct {_path(first)}"
    valid: tuple[str, ...] = ()
    if first.kind.name == "enum":
        hint = f"pass one of the listed values as {_path(first)}"
        valid = tuple(
            option if isinstance(option, str) else json.dumps(option) for option in details["options"]
        )
    elif first.kind.name == "additionalProperties":
        hint = "leave out what the tool does not have"
        valid = tuple(checks.repairs.names) if not first.instance_path else ()
    elif first.kind.name == "type":
        hint = f"pass {_path(first)} as {' or '.join(details['types'])}"
    where = {"path": _path(first)[:200]} if first.instance_path else {}
    return ToolResult.error(
        "; ".join(lines)[:2000], code="invalid-param", hint=hint, valid=valid[:100], **where
    )


def _path(problem: Any) -> str:
    path = ""
    for part in problem.instance_path:
        path = step(path, part)
    return path or "the arguments"


def _reason(problem: Any) -> str:
    """Return a validator's reason; for alternatives, what each of the first three has against the value."""
    context = problem.kind.as_dict().get("context")
    if not context or not any(context):
        return str(problem.message)[:300]
    reasons = dict.fromkeys(str(branch[0].message)[:120] for branch in context[:3] if branch)
    return f"fits none of its alternatives ({'; '.join(reasons)})"
