from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import chalie
import pytest


@pytest.mark.parametrize("name", chalie.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(chalie, name) is not None
    assert name in dir(chalie)


def test_a_name_that_is_not_public_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Hots'"):
        chalie.Hots  # noqa: B018


def test_the_version_is_that_of_the_distribution() -> None:
    project = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text())["project"]
    assert chalie.__version__ == project["version"]


def test_importing_chalie_imports_nothing_but_itself() -> None:
    code = (
        "import sys; before = set(sys.modules); import chalie; "
        "print(sorted(m for m in set(sys.modules) - before if m != '__future__'))"
    )
    found = subprocess.run(
        [sys.executable, "-I", "-c", "import typing\n" + code], capture_output=True, text=True, check=True
    ).stdout
    assert found.strip() == "['chalie']"
