"""A gate on a fresh ledger, fake policies, and real terminals."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from chalie.calls import Call, Channel, HoldView, SideEffect
from chalie.gate.gate import Gate
from chalie.ledger import Ledger

CHAT = Channel("chat", "chat", has_person=True, pins=(), background=True)
ALONE = Channel("external_agent", "external_agent", has_person=False, pins=(), background=False)

Make = Callable[..., Call]


def a_call(**changes: Any) -> Call:
    """A call of `email.send` on `chat`, with whatever is different."""
    facts: dict[str, Any] = {
        "dist": "chalie-ability-email",
        "name": "email",
        "permission": "email.send",
        "effect": SideEffect.EXTERNAL_SEND,
        "arguments": {"to": "eve@example.org"},
        "channel": "chat",
        "principal": "ada",
        "conversation": "talk",
        "descriptor_hash": "h",
    }
    return Call(**{**facts, **changes})


def a_view(**changes: Any) -> HoldView:
    """What a person is shown of that call."""
    facts: dict[str, Any] = {
        "id": "c1",
        "name": "email",
        "dist": "chalie-ability-email",
        "permission": "email.send",
        "effect": SideEffect.EXTERNAL_SEND,
        "arguments": {"to": "eve@example.org"},
        "channel": "chat",
        "principal": "ada",
        "conversation": "talk",
        "model_says": "I send the mail",
        "reasons": ("nobody has said anything about it",),
        "must_ask": False,
    }
    return HoldView(**{**facts, **changes})


class Hooks:
    """Policies as the loader gives them: distribution -> hook -> function."""

    def __init__(self, **policies: dict[str, Callable[[Call], object]]) -> None:
        self._policies = policies
        self.loaded = frozenset(policies)
        self.asked: list[str] = []

    def authors(self, hook: str) -> tuple[str, ...]:
        return tuple(dist for dist, hooks in self._policies.items() if hook in hooks)

    def deciding(self, hook: str) -> list[tuple[str, Callable[[Call], object]]]:
        return [(dist, self._noted(dist, hook)) for dist in self.authors(hook)]

    def _noted(self, dist: str, hook: str) -> Callable[[Call], object]:
        def decide(call: Call) -> object:
            self.asked.append(f"{dist}.{hook}")
            return self._policies[dist][hook](call)

        return decide


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "ledger.sqlite") as opened:
        yield opened


@pytest.fixture
def gate(ledger: Ledger) -> Gate:
    return Gate(ledger)


class Person:
    """A Python process whose controlling terminal the test types at and reads from."""

    def __init__(self, code: str, *arguments: object, stdin: bool = True) -> None:
        self._master, slave = pty.openpty()
        self._slave = slave  # kept open: without one the terminal would hang up before the process has it
        head = "import os, sys\nfrom pathlib import Path\nos.open(sys.argv.pop(1), os.O_RDWR)\n"
        self.process = subprocess.Popen(
            [sys.executable, "-c", head + dedent(code), os.ttyname(slave), *map(str, arguments)],
            stdin=slave if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # opening the terminal then makes it the process's own
        )
        self.screen = ""
        self._read = 0

    def reads(self, text: str, seconds: float = 30) -> str:
        """Wait until the screen shows a text after what was read before; return it and all before it."""
        end = time.monotonic() + seconds
        while text not in self.screen[self._read :]:
            if not select.select([self._master], [], [], max(0.0, end - time.monotonic()))[0]:
                raise AssertionError(f"no {text!r} on the screen:\n{self.screen}")
            try:
                got = os.read(self._master, 65536)
            except OSError:  # the process has closed its terminal
                raise AssertionError(f"no {text!r} on the screen:\n{self.screen}") from None
            self.screen += got.decode("utf-8", "replace")
        start, self._read = self._read, self.screen.index(text, self._read) + len(text)
        return self.screen[start : self._read]

    def types(self, text: str) -> None:
        os.write(self._master, text.encode())

    def ends(self) -> str:
        """Wait for the end; return what the process printed to its standard output."""
        out, err = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, err
        return out

    def fails(self) -> str:
        """Wait for the end by an exception; return what the process printed to its standard error."""
        _, err = self.process.communicate(timeout=60)
        assert self.process.returncode == 1, err
        return err

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        os.close(self._master)
        os.close(self._slave)


@pytest.fixture
def person() -> Iterator[Callable[..., Person]]:
    """Start a process at a terminal of its own."""
    started: list[Person] = []

    def start(code: str, *arguments: object, stdin: bool = True) -> Person:
        started.append(Person(code, *arguments, stdin=stdin))
        return started[-1]

    yield start
    for one in started:
        one.close()
