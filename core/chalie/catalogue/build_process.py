"""A build in a child process, followed from a thread."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ..config import model_of_environment
from ..errors import ChalieError
from .footprint import QUIET_S
from .generations import LOG, Generations, unwritable

__all__ = ["BuildProcess"]

#: bytes at the end of its log that are looked at for its last words
_TAIL: Final = 4096


class BuildProcess:
    """A build in a process of its own, and what it has told so far.

    Args:
        home: the home's folder.
        paths: the import path to look at.
        root: where it publishes, and keeps what it says of failures nobody expected.

    Raises:
        IndexUnreadable: nothing can be written there.

    Attributes:
        reading: the distributions it waits for or reads.
        error: why it failed.
        done: whether it has ended.
    """

    def __init__(self, home: Path, paths: Sequence[str], root: Path) -> None:
        import subprocess

        self.reading: tuple[str, ...] = ()
        self._started = time.monotonic()
        self._settling = False
        self.error: ChalieError | None = None
        self._news = threading.Condition()
        self.done = False
        own = str(Path(__file__).parents[2])
        Generations(root).make()
        self._log = root / LOG
        try:
            with self._log.open("wb") as log:
                self.process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "chalie.build"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    cwd=home,
                    env={
                        **os.environ,
                        "PYTHONPATH": os.pathsep.join([*paths, own]),
                        "CHALIE_MODEL": model_of_environment() or "",
                    },
                    # What it publishes is for every process of the home, so it outlives the one that
                    # started it.
                    start_new_session=True,
                )
        except OSError as error:
            raise unwritable(root, error) from error
        task = {"home": str(home), "paths": list(paths)}
        threading.Thread(target=self._follow, args=(json.dumps(task).encode(),), daemon=True).start()

    def _follow(self, task: bytes) -> None:
        process = self.process
        assert process.stdin is not None and process.stdout is not None
        try:
            with process.stdin as pipe:
                pipe.write(task)
            with process.stdout as lines:
                for line in lines:
                    self._told(json.loads(line))
        except (OSError, ValueError):
            pass
        status = process.wait()
        with self._news:
            if status != 0 and self.error is None:
                said = self._last_words()
                self.error = ChalieError(
                    f"the process that reads installed packages ended with status {status}: {said}",
                    code="index-unreadable",
                    hint=f"see {self._log} for all of it, or run `chalie index` to see it here",
                )
            self.reading = () if self.error is None else self.reading
            self.done = True
            self._news.notify_all()

    def _last_words(self) -> str:
        """Return the last line it wrote on standard error: of a traceback, the error."""
        try:
            with self._log.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL))
                lines = log.read().decode("utf-8", "replace").strip().splitlines()
        except OSError:
            lines = []
        return lines[-1].strip()[:300] if lines else "it said nothing"

    def _told(self, line: Mapping[str, Any]) -> None:
        with self._news:
            if "reading" in line:
                # The last ones read are still to be published: nobody sees them until this process ends.
                self.reading = tuple(line["reading"]) or self.reading
                settling = bool(line["reading"]) and line["total"] == 0
                if settling or self._settling:
                    self._started = time.monotonic()
                self._settling = settling
            if "error" in line:
                self.error = ChalieError(line["error"], code="index-unreadable", hint=line["hint"])
            self._news.notify_all()

    def wait(self, seconds: float | None) -> None:
        """Wait for its end, but no longer than `seconds` after its start: one turn waits, the next does not.

        The time begins once the files that are to be read have come to rest, a matter of two seconds.
        """
        with self._news:
            while not self.done:
                if seconds is None:
                    self._news.wait()
                    continue
                left = self._started + seconds + (QUIET_S if self._settling else 0.0) - time.monotonic()
                if left <= 0:
                    return
                self._news.wait(left)

    def wait_for_news(self) -> None:
        """Wait for the next thing it tells, half a second at most."""
        with self._news:
            if not self.done:
                self._news.wait(0.5)
