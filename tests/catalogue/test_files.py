from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from chalie.catalogue import files
from chalie.catalogue.descriptor import Problem

from .places import Place

METADATA = "Metadata-Version: 2.1\nName: Some_Thing\nVersion: 1.0\n\nName: other\n"


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def terminal(path: Path) -> None:
    path.symlink_to("/dev/tty")


def listener(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(path.parent)  # the path of a socket is short
        try:
            listening.bind(path.name)
        finally:
            os.chdir(here)


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


@pytest.mark.parametrize("kind", [pipe, endless, terminal, listener, huge])
@pytest.mark.parametrize("name", ["entry_points.txt", "METADATA", "direct_url.json"])
def test_metadata_that_is_no_bounded_file_costs_its_own_distribution_only(
    place: Place, name: str, kind: object
) -> None:
    place.install("good")
    bad = place.install("bad").dist_info / name
    bad.unlink(missing_ok=True)
    kind(bad)  # type: ignore[operator]
    found = place.scan()
    assert [one.name for one in found.distributions] == ["chalie-ability-good"]
    (problem,) = found.problems
    assert problem.dist == "chalie-ability-bad"
    assert f"{name} is no regular file" in problem.reason or f"{name} has " in problem.reason


@pytest.mark.parametrize("kind", [pipe, endless, huge])
def test_a_record_or_a_file_it_names_that_is_none_is_never_waited_for(place: Place, kind: object) -> None:
    bad = place.install("bad", module="bad_module")
    source = bad.path("bad_module.py")
    source.unlink()
    kind(source)  # type: ignore[operator]
    with pytest.raises(ValueError, match=r"bad_module\.py (is no regular file|has )"):
        place.found("chalie-ability-bad").footprint().files_hash()
    record = bad.dist_info / "RECORD"
    record.unlink()
    kind(record)  # type: ignore[operator]
    with pytest.raises(ValueError, match=r"RECORD (is no regular file|has )"):
        place.found("chalie-ability-bad").footprint()


def test_a_leftover_is_named_by_its_folder_where_its_metadata_is_none(place: Place) -> None:
    leftover = place.site / "~ood-1.0.dist-info"
    leftover.mkdir()
    pipe(leftover / "METADATA")
    (problem,) = place.scan().problems
    assert problem == Problem(
        str(leftover), "", "scan", problem.reason, f"rm -r '{leftover}'", quarantined=False
    )


def test_a_name_and_a_version_are_those_of_the_headers(tmp_path: Path) -> None:
    (tmp_path / "PKG-INFO").write_text(METADATA.replace("Some_Thing", "Old"))
    assert files.facts_of(tmp_path) == ("Old", "1.0")
    (tmp_path / "METADATA").write_bytes(b"\xef\xbb\xbf" + METADATA.encode())
    assert files.facts_of(tmp_path) == ("Some_Thing", "1.0")
    (tmp_path / "METADATA").write_text("Name: x\n")
    assert files.facts_of(tmp_path) == ("x", "")


def test_a_file_that_is_longer_than_it_says_is_read_no_further(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    assert files.read_bytes(file, 5) == b"12345"
    with pytest.raises(ValueError, match="has 5 bytes, over 4"):
        files.read_bytes(file, 4)
    with pytest.raises(IsADirectoryError):
        files.read_bytes(tmp_path)
