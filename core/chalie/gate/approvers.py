"""Who answers: a person at this terminal, or somebody who proved to be allowed to and said yes beforehand."""

from __future__ import annotations

import contextvars
import os
import re
import select
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from ..calls import Answer, AnswerKind, HoldView
from ..errors import NotAuthorised
from .authority import login, terminal
from .display import arguments_lines, escaped, quoted, wrapped
from .moments import moment

__all__ = ["ProvenApprover", "TerminalApprover", "answer_by", "prompt_lines", "settled"]

_ANSWERS: Final = {
    "o": AnswerKind.ONCE,
    "once": AnswerKind.ONCE,
    "a": AnswerKind.ALWAYS,
    "always": AnswerKind.ALWAYS,
    "d": AnswerKind.DECLINE,
    "deny": AnswerKind.DECLINE,
    "n": AnswerKind.DECLINE,
    "no": AnswerKind.DECLINE,
    "never": AnswerKind.DECLINE_ALWAYS,
}
_TRIES: Final = 3
_MINUTES: Final = re.compile(r"[1-9][0-9]{0,5}")
_COLUMNS: Final = 80  # of a terminal that does not say
_LONG: Final = 20  # lines; above that the beginning may have scrolled away

#: when the gate stops waiting (monotonic seconds): nobody is kept at a question whose answer is not heard
answer_by: Final[contextvars.ContextVar[float]] = contextvars.ContextVar("answer_by", default=float("inf"))

#: raised when the question was answered from elsewhere, or nobody listens to the answer any more
settled: Final[contextvars.ContextVar[threading.Event | None]] = contextvars.ContextVar(
    "settled", default=None
)

#: seconds between looks at whether it was.
_LOOK_S: Final = 0.25

#: one question at a time: two calls must not ask on one terminal at once
_asking: Final = threading.Lock()


class TerminalApprover:
    """Asks the person at this process's own terminal.

    Shown are the exact arguments, whole, secrets masked. What was typed before the question is no answer.

    Args:
        timeout_s: seconds to wait for an answer; after that the call stays among the holds.
    """

    def __init__(self, timeout_s: float = 300.0) -> None:
        self._timeout_s = timeout_s

    def ask(self, hold: HoldView) -> Answer:
        """Return the person's answer; the end of input is a decline.

        Raises:
            NotAuthorised: this process has no terminal.
            TimeoutError: nobody answered in time, somebody answered elsewhere, or another question kept the
                terminal all the time.
        """
        deadline = min(time.monotonic() + self._timeout_s, answer_by.get())
        if not _asking.acquire(timeout=max(0.0, deadline - time.monotonic())):
            raise TimeoutError("another question is still open on this terminal")
        try:
            return self._ask(hold, deadline)
        finally:
            _asking.release()

    def _ask(self, hold: HoldView, deadline: float) -> Answer:
        with terminal() as tty:
            width = os.get_terminal_size(tty).columns or _COLUMNS
            _write(tty, "\n".join(prompt_lines(hold, width)) + "\n")
            _forget_typed(tty)
            kind, until = self._answer(tty, hold, deadline)
            return Answer(kind, f"terminal:{login()}", until)

    def _answer(self, tty: int, hold: HoldView, deadline: float) -> tuple[AnswerKind, datetime | None]:
        question = "[o]nce  [d]eny  [?]" if hold.must_ask else "[o]nce  [a]lways  [d]eny  [?]"
        tries = _TRIES
        while tries:
            _write(tty, f"{question} > ")
            line = _line(tty, deadline)
            if line is None:
                if _is_settled():
                    _write(tty, "\nno answer is needed any more\n")
                    raise TimeoutError("it was answered elsewhere, or too late")
                _write(tty, f"\nno answer; it can be given later: chalie approve {hold.id}\n")
                raise TimeoutError("nobody answered in time")
            if not line:
                _write(tty, "\nno answer: denied\n")
                return AnswerKind.DECLINE, None
            if line.strip() == "?":
                width = os.get_terminal_size(tty).columns or _COLUMNS
                _write(tty, "\n".join(answer_lines(hold, width)) + "\n")
                continue
            tries -= 1
            try:
                kind, until = _read(line)
            except ValueError as error:
                _write(tty, f"{escaped(str(error))}\n")
                continue
            if kind in (AnswerKind.ALWAYS, AnswerKind.UNTIL) and hold.must_ask:
                _write(tty, "this has to be asked each time\n")
            elif kind is not None:
                return kind, until
        _write(tty, "denied\n")
        return AnswerKind.DECLINE, None


class ProvenApprover:
    """Says yes to one call, in the name of somebody who proved to be allowed to (`Authority.prove`).

    Args:
        by: who that is.
    """

    def __init__(self, by: str) -> None:
        self._by = by
        self._unused = threading.Semaphore(1)

    def ask(self, hold: HoldView) -> Answer:
        """Approve the first call it is asked about.

        Raises:
            NotAuthorised: it was asked before: one yes is for one call.
        """
        if not self._unused.acquire(blocking=False):
            raise NotAuthorised("that yes was for one call, which has been made")
        return Answer(AnswerKind.ONCE, self._by)


def prompt_lines(hold: HoldView, width: int) -> Iterator[str]:
    """Give the lines of the question, none wider than the terminal.

    Args:
        hold: what is asked about.
        width: columns of the terminal.
    """
    yield ""
    yield from wrapped(f"May {escaped(hold.name)} run? It is part of {escaped(hold.dist)}.", width, "")
    facts = [
        f"permission: {escaped(hold.permission)} ({hold.effect.value})",
        f"on {escaped(hold.channel)}, for {escaped(hold.principal)}",
    ]
    if hold.conversation is not None:
        facts.append(f"conversation: {quoted(hold.conversation)}")
    facts += [f"because: {escaped(reason)}" for reason in hold.reasons]
    for fact in facts:
        yield from wrapped(fact, width, "  ", words=True)
    # quoted: what the model says about its own call is a claim, and must look like one
    if hold.model_says:
        yield from wrapped(f"the model says: {quoted(hold.model_says)}", width, "  ")
    if not hold.arguments:
        yield "  arguments: none"
        return
    yield "  arguments:"
    shown = 0
    for line in arguments_lines(hold.arguments):
        for piece in wrapped(line, width, "  | "):
            shown += 1
            yield piece
    if shown > _LONG:
        yield f"  ({len(hold.arguments)} arguments on {shown} lines; scroll up to see all of them)"


def answer_lines(hold: HoldView, width: int) -> Iterator[str]:
    """Give the lines that say what each answer does."""
    allowed = f"{escaped(hold.permission)} on {escaped(hold.channel)}"
    always = f"always: it runs, and from now on {allowed} is not asked about"
    standing = (always, "for 60, until 18:30: the same for so many minutes, until that time")
    never = f"never: it does not run, and from now on {allowed} is denied"
    for sentence in (
        "once: this call runs, with these arguments",
        *(("(always is no answer: this has to be asked each time)",) if hold.must_ask else standing),
        "deny: it does not run, and is not asked again in this conversation",
        never,
        "anything else is asked again, and counts as deny the third time",
    ):
        yield from wrapped(sentence, width, "  ", words=True)


def _read(line: str) -> tuple[AnswerKind | None, datetime | None]:
    """Return what a typed line says; None where it says nothing.

    Raises:
        ValueError: it names a time that is none, or over.
    """
    word, _, rest = line.strip().lower().partition(" ")
    now = datetime.now(UTC)
    if word == "until" and rest:
        return AnswerKind.UNTIL, moment(rest.upper(), now)  # which a date may have a letter of
    if word == "for" and _MINUTES.fullmatch(rest.strip()):
        return AnswerKind.UNTIL, now + timedelta(minutes=int(rest))
    return _ANSWERS.get(line.strip().lower()), None


def _write(tty: int, text: str) -> None:
    data = text.encode("utf-8", "backslashreplace")
    while data:
        data = data[os.write(tty, data) :]


def _forget_typed(tty: int) -> None:
    import termios

    termios.tcflush(tty, termios.TCIFLUSH)


def _is_settled() -> bool:
    event = settled.get()
    return event is not None and event.is_set()


def _line(tty: int, deadline: float) -> str | None:
    """Return the line that is typed, empty where input ends, or None where none is in time or wanted."""
    data = b""
    while not data.endswith((b"\n", b"\r")):
        left = deadline - time.monotonic()
        if left <= 0 or _is_settled():
            return None
        if not select.select([tty], [], [], min(left, _LOOK_S))[0]:
            continue
        got = os.read(tty, 1024)
        if not got:
            return ""
        data += got
    return data.decode("utf-8", "replace")
