"""What a call came to, and the assertions about it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import field, frozen

from ..envelope import parse
from ..result import Scalar

__all__ = ["Outcome", "assert_error", "assert_held", "assert_ok"]

_HOLD: Final = re.compile(r"\bchalie approve (\S+?)[,\s]")


@frozen
class Outcome:
    """A call's envelope, taken apart.

    Attributes:
        text: the envelope as the model sees it.
        name: the tool that answered.
        ok: whether it is a success.
        body: of a success: the JSON value, or the text where it is none. None for an error.
        message: of an error: what it says.
        code: of an error: its code, else None.
        hint: of an error: the next step, or None.
        valid: of an error: what would have been accepted.
        meta: the facts of the first line.
    """

    text: str = field(repr=False)
    name: str
    ok: bool
    body: Any = None
    message: str = ""
    code: str | None = None
    hint: str | None = None
    valid: tuple[str, ...] = ()
    meta: Mapping[str, Scalar] = field(factory=dict)

    @classmethod
    def of(cls, text: str) -> Outcome:
        """Return the outcome that an envelope tells of.

        Raises:
            ValueError: the text is not exactly one envelope.
        """
        frame = parse(text)
        ok = frame.status == "success"
        return cls(
            text,
            frame.name,
            ok,
            _value(frame.body) if ok else None,
            "" if ok else frame.body,
            frame.code,
            frame.hint,
            frame.valid,
            frame.meta,
        )


def assert_ok(outcome: Outcome | str) -> Any:
    """Return the body of a success; fail, with the whole envelope, where the call was refused or failed."""
    __tracebackhide__ = True
    found = _outcome(outcome)
    if not found.ok:
        raise AssertionError(f"{found.name} was expected to succeed and ended as {found.code}:\n{found.text}")
    return found.body


def assert_error(outcome: Outcome | str, code: str) -> Outcome:
    """Return the outcome of a call that ended with this code; fail, with the envelope, for any other end.

    Args:
        outcome: what `call` returned, or an envelope.
        code: the error's code, as in `unknown-place`.
    """
    __tracebackhide__ = True
    found = _outcome(outcome)
    if found.code != code:
        ended = "succeeded" if found.ok else f"ended as {found.code}"
        raise AssertionError(f"{found.name} was expected to end as {code} and {ended}:\n{found.text}")
    return found


def assert_held(outcome: Outcome | str) -> str:
    """Return the id of the hold that a call waits in; fail where it does not wait for a person.

    The id is what `host.answer` takes.
    """
    __tracebackhide__ = True
    found = assert_error(outcome, "approval-pending")
    hold = _HOLD.search(found.hint or "")
    if hold is None:
        raise AssertionError(f"{found.name} waits, and its envelope names no hold:\n{found.text}")
    return hold.group(1)


def _outcome(outcome: Outcome | str) -> Outcome:
    return Outcome.of(outcome) if isinstance(outcome, str) else outcome


def _value(body: str) -> Any:
    if body[:1] not in ("{", "[", '"') and body not in ("true", "false", "null"):
        try:
            return int(body) if str(int(body)) == body else body
        except ValueError:
            return body
    try:
        return json.loads(body)
    except ValueError:
        return body
