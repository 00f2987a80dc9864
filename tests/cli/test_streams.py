"""Standard streams that are full or closed: one line and an exit code, never a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from chalie.cli import exits

from tests.support import wheels as building


def run(line: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run a command line of a shell, with this environment's chalie."""
    chalie = f"{sys.executable} -m chalie.cli.main"
    return subprocess.run(
        ["sh", "-c", line.replace("chalie", chalie)],
        env=building.clean_environment(home),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("words", ["--version", "--help", "permissions list", "permissions list --json"])
def test_output_that_cannot_be_written_is_one_line(words: str, home: Path) -> None:
    done = run(f"chalie {words} >/dev/full", home)
    assert done.returncode == exits.UNWRITTEN
    assert done.stderr == "chalie: the output could not be written: No space left on device\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_reason_to_fail_and_no_file_of_the_home_takes_its_place(
    closed: str, home: Path
) -> None:
    done = run(f"chalie permissions list {closed}", home)
    assert (done.returncode, "Traceback" in done.stderr) == (exits.OK, False)
    again = run("chalie permissions list --json", home)
    assert again.returncode == exits.OK and "find_tools" in again.stdout
