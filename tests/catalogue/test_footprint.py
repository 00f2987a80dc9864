from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from chalie.catalogue import footprint
from chalie.catalogue.footprint import Footprint, locate

from tests.support import packages

from .places import Place

NAME = "chalie-ability-good"


def look(place: Place) -> Footprint:
    return place.found(NAME).footprint()


def later(seconds: float = 3600) -> float:
    return time.time() + seconds


def test_a_complete_distribution_that_has_come_to_rest_is_settled(place: Place) -> None:
    place.install("good")
    assert look(place).settles(later()) == 0.0


def test_a_distribution_changed_a_moment_ago_is_not_yet_settled(place: Place) -> None:
    packages.install(place.site, packages.ability_package("good"), age_s=0)
    seen = look(place)
    due = seen.settles(time.time())
    assert due is not None and due == pytest.approx(seen.changed + footprint.QUIET_S)
    assert seen.settles(due) == 0.0


def test_files_with_old_times_that_were_just_linked_in_are_not_yet_settled(place: Place) -> None:
    packages.install(place.site, packages.ability_package("good"), age_s=3600)
    assert look(place).settles(time.time()) not in (0.0, None)


@pytest.mark.parametrize("change", ["unlink", "shorten"])
def test_a_file_that_is_missing_or_of_another_size_keeps_it_in_progress(place: Place, change: str) -> None:
    module = place.install("good").path("chalie_ability_good.py")
    if change == "unlink":
        module.unlink()
    else:
        module.write_text("x")
    seen = look(place)
    assert seen.missing == str(module)
    assert seen.settles(later()) is None


def test_without_a_record_it_waits_ten_seconds_after_a_change(place: Place) -> None:
    packages.install(place.site, packages.ability_package("good"), record=False, age_s=0)
    seen = look(place)
    assert not seen.recorded
    assert seen.settles(seen.changed + 9.9) == pytest.approx(seen.changed + 10)
    assert seen.settles(seen.changed + 10) == 0.0


def test_a_time_in_the_future_is_not_waited_for(place: Place) -> None:
    module = place.install("good").path("chalie_ability_good.py")
    ahead = later(86_400)
    os.utime(module, (ahead, ahead))
    assert look(place).settles(later(60)) == 0.0


def test_compiled_files_count_neither_as_missing_nor_as_content(place: Place) -> None:
    good = place.install("good")
    before = look(place)
    record = good.dist_info / "RECORD"
    stat = record.stat()
    record.write_text(record.read_text() + "__pycache__/chalie_ability_good.cpython-311.pyc,,\n")
    os.utime(record, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    after = look(place)
    assert after.missing == "" and after.files_hash() == before.files_hash()


def test_the_files_hash_is_over_bytes_and_not_over_times_or_places(place: Place, tmp_path: Path) -> None:
    good = place.install("good")
    before = look(place)
    os.utime(good.path("chalie_ability_good.py"))
    touched = look(place)
    assert touched.stamp != before.stamp
    assert touched.files_hash() == before.files_hash()
    other = Place(tmp_path / "elsewhere", tmp_path, place.index)
    other.install("good")
    assert look(other).files_hash() == before.files_hash()


@pytest.mark.parametrize("file", ["chalie_ability_good.py", "entry_points.txt"])
def test_any_byte_of_code_or_entry_points_changes_the_files_hash(place: Place, file: str) -> None:
    good = place.install("good")
    before = look(place).files_hash()
    path = good.dist_info / file if file == "entry_points.txt" else good.path(file)
    path.write_text(path.read_text() + "\n#\n")
    assert look(place).files_hash() != before


def test_what_record_claims_of_a_file_is_not_believed(place: Place) -> None:
    good = place.install("good")
    before = look(place).files_hash()
    module = good.path("chalie_ability_good.py")
    text = module.read_text().replace("Do the thing", "Do any thing")
    assert len(text) == len(module.read_text())
    module.write_text(text)
    assert look(place).files_hash() != before


def test_a_file_replaced_by_one_of_the_same_size_and_time_changes_the_stamp(place: Place) -> None:
    module = place.install("good").path("chalie_ability_good.py")
    before, stat = look(place), module.stat()
    other = module.with_suffix(".new")
    other.write_bytes(module.read_bytes()[:-1] + b"#")
    os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    other.rename(module)
    assert look(place).stamp != before.stamp


def test_another_link_to_a_file_makes_it_compared_and_not_read_again(place: Place, tmp_path: Path) -> None:
    module = place.install("good").path("chalie_ability_good.py")
    first, before = place.build(), look(place)
    os.link(module, tmp_path / "of-another-environment.py")
    assert look(place).stamp != before.stamp and look(place).files_hash() == before.files_hash()
    (row,) = [row for row in place.build().snapshot.distributions() if row.name == NAME]
    assert row.files_hash == before.files_hash() and row.state == "ready"
    assert first.manifest.content == place.build().manifest.content


def test_a_path_with_a_comma_is_read_from_record(place: Place) -> None:
    package = packages.ability_package("good")
    good = packages.install(place.site, package)
    (place.site / "a, b.txt").write_text("xy")
    record = good.dist_info / "RECORD"
    record.write_text(record.read_text() + '"a, b.txt",sha256=x,2\n')
    assert look(place).missing == ""
    (place.site / "a, b.txt").write_text("xyz")
    assert look(place).missing.endswith("a, b.txt")


def test_an_editables_hash_covers_every_python_file_of_its_packages(place: Place, tmp_path: Path) -> None:
    project = tmp_path / "project"
    package = packages.Package(
        "chalie-ability-good",
        {
            "good_tool/__init__.py": "",
            "good_tool/ability.py": packages.ability_source("good"),
            "good_tool/deep/__init__.py": "x = 1",
            "unrelated.txt": "1",
        },
        {"chalie.abilities": {"good": "good_tool.ability"}},
    )
    packages.install_editable(place.site, project, package)
    before = look(place)
    hash_before = before.files_hash()
    assert place.found(NAME).editable
    assert before.roots == {"good_tool": str(project / "good_tool")}
    assert str(project / "good_tool" / "ability.py") in before.watch
    (project / "unrelated.txt").write_text("2")
    assert look(place).stamp == before.stamp
    (project / "good_tool" / "deep" / "__init__.py").write_text("x = 2")
    after = look(place)
    assert after.stamp != before.stamp and after.files_hash() != hash_before


def test_a_name_is_located_at_its_outermost_package_that_is_no_namespace(tmp_path: Path) -> None:
    (tmp_path / "space" / "pack").mkdir(parents=True)
    (tmp_path / "space" / "pack" / "__init__.py").touch()
    (tmp_path / "single.py").touch()
    (tmp_path / "books" / "one").mkdir(parents=True)
    folders = [str(tmp_path / "absent"), str(tmp_path)]
    assert locate("space.pack.mod", folders) == ("space.pack", str(tmp_path / "space" / "pack"))
    assert locate("single", folders) == ("single", str(tmp_path / "single.py"))
    assert locate("books", folders) == ("books", str(tmp_path / "books"))
    assert locate("nothing.here", folders) is None


@pytest.mark.parametrize("size", ["9" * 5_000, "9" * 20])
def test_a_size_that_no_file_can_have_is_a_file_that_is_not_there_yet(place: Place, size: str) -> None:
    record = place.install("good").dist_info / "RECORD"
    record.write_text(record.read_text() + f"chalie_ability_good.py,sha256=x,{size}\n")
    seen = look(place)
    assert seen.missing.endswith("chalie_ability_good.py")
    assert seen.settles(later()) is None
