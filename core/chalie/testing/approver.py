"""A person, scripted: what they will answer, and what they were asked."""

from __future__ import annotations

import threading
from collections import deque
from datetime import datetime
from typing import Final

from ..calls import Answer, AnswerKind, HoldView

__all__ = ["ScriptedApprover"]

_BY: Final = "test:person"
_AWAY: Final = "away"


class ScriptedApprover:
    """Answers what it was told to, call by call; says yes once where nothing was scripted.

    Attributes:
        asked: what was asked about, in order, as a person would have seen it.
    """

    def __init__(self) -> None:
        self.asked: list[HoldView] = []
        self._script: deque[str | Answer] = deque()
        self._otherwise: str | Answer = "once"
        self._lock = threading.Lock()

    def says(self, *answers: str | Answer) -> None:
        """Script the next answers: `once`, `always`, `decline`, `decline_always`, `away`, or an `Answer`.

        `away` gives no answer, so that the call is held.

        Raises:
            ValueError: a word is none of these.
        """
        checked = [_checked(answer) for answer in answers]
        with self._lock:
            self._script.extend(checked)

    def otherwise(self, answer: str | Answer) -> None:
        """Give this answer from now on to whatever the script does not cover."""
        self._otherwise = _checked(answer)

    def until(self, moment: datetime) -> None:
        """Script an allowance that ends at a moment with a time zone."""
        self.says(Answer(AnswerKind.UNTIL, _BY, moment))

    def ask(self, hold: HoldView) -> Answer:
        """Answer as scripted; the host calls this.

        Raises:
            TimeoutError: the person is away.
        """
        with self._lock:
            self.asked.append(hold)
            answer = self._script.popleft() if self._script else self._otherwise
        if answer == _AWAY:
            raise TimeoutError("nobody is there")
        return answer if isinstance(answer, Answer) else Answer(AnswerKind(answer), _BY)


def _checked(answer: str | Answer) -> str | Answer:
    words = [kind.value for kind in AnswerKind if kind is not AnswerKind.UNTIL] + [_AWAY]
    if isinstance(answer, str) and answer not in words:
        raise ValueError(f"{answer!r} is no answer; use one of {', '.join(words)}, or until(moment)")
    return answer
