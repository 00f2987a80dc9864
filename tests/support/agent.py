"""An agent in a process of its own: opens a host, then calls what each line on standard input tells it to.

A line is the JSON of `[name, arguments]`, or `"turn"` for a new turn. Each is answered by one line: the JSON
of the envelope, or of the names that can be called. Uses nothing but the standard library and Chalie.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def main() -> None:
    from chalie import Answer, AnswerKind, Host

    class Yes:
        def ask(self, hold: Any) -> Answer:
            return Answer(AnswerKind.ONCE, by="test")

    with Host.open(approver=Yes()) as host:
        turn = host.turn("chat", principal="ada")
        for line in sys.stdin:
            asked = json.loads(line)
            if asked == "turn":
                turn = host.turn("chat", principal="ada")
                said: object = list(turn.names)
            else:
                said = turn.call(asked[0], asked[1])
            print(json.dumps(said), flush=True)


class Agent:
    """The other side: starts that process and speaks with it.

    Args:
        python: the interpreter to start.
        env: its environment.
    """

    def __init__(self, python: str, env: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [python, str(Path(__file__).resolve())],
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        finally:
            self._process.kill()
            self._process.wait()

    def turn(self) -> Sequence[str]:
        """Begin a new turn; return the names that can be called."""
        names: Sequence[str] = self._ask("turn")
        return names

    def call(self, name: str, **arguments: Any) -> str:
        """Call a tool in the current turn and return its envelope."""
        text: str = self._ask([name, arguments])
        return text

    def finds(self, entry: str) -> list[str]:
        """Begin a turn, search, and return the names of what was found."""
        from chalie.envelope import parse

        self.turn()
        body = json.loads(parse(self.call("find_tools", query=[entry])).body)
        return [row["name"] for row in body["injected"]]

    def _ask(self, what: object) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the agent ended with {self._process.wait()}"
        return json.loads(line)


if __name__ == "__main__":
    main()
