"""Pinned tools: the host's own, and those a channel names."""

from __future__ import annotations

import subprocess
import sys

import pytest
from chalie import __version__
from chalie.ability import Ability, facts
from chalie.catalogue.tables import descriptor_of
from chalie.meta.find_skills import FindSkills
from chalie.meta.find_tools import FindTools
from chalie.meta.read_result import ReadResult
from chalie.names import OWN_DIST
from chalie.pins import own_descriptors


@pytest.mark.parametrize("kind", [FindTools, FindSkills, ReadResult])
def test_the_hosts_own_descriptors_say_what_reading_them_would(kind: type[Ability]) -> None:
    read = descriptor_of(facts(kind(), dist=OWN_DIST, dist_version=__version__, target=""))
    assert own_descriptors()[kind().name()] == read


def test_the_hosts_own_descriptors_are_there_without_the_schema_validator() -> None:
    code = "import sys, chalie.pins; chalie.pins.own_descriptors(); print('jsonschema_rs' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout == "False\n"
