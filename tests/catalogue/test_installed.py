from __future__ import annotations

import os
import subprocess
from pathlib import Path

import importlib_metadata
import pytest
from chalie.catalogue import installed
from chalie.catalogue.installed import scan
from hypothesis import given
from hypothesis import strategies as st

from tests.support import packages

from .places import Place


def names(place: Place, **options: object) -> list[str]:
    return [one.name for one in place.scan(**options).distributions]  # type: ignore[arg-type]


def test_a_line_that_is_no_entry_point_costs_its_own_distribution_only(place: Place) -> None:
    place.install("good")
    bad = place.install("bad")
    points = bad.dist_info / "entry_points.txt"
    points.write_text(points.read_text() + "[chalie.abilities]\nno equals sign here\n")
    found = place.scan()
    assert [one.name for one in found.distributions] == ["chalie-ability-good"]
    (problem,) = found.problems
    assert problem.dist == "chalie-ability-bad"
    assert str(bad.dist_info) in problem.reason and "no equals sign here" in problem.reason
    assert "--force-reinstall chalie-ability-bad" in problem.fix


def test_another_groups_bad_line_in_the_same_file_is_not_ours_to_judge(place: Place) -> None:
    good = place.install("good")
    points = good.dist_info / "entry_points.txt"
    points.write_text("[other.group]\nbroken line\n" + points.read_text())
    with pytest.raises(TypeError):
        list(importlib_metadata.Distribution.at(good.dist_info).entry_points)
    assert names(place) == ["chalie-ability-good"]
    assert place.scan().problems == ()


def test_an_unrelated_packages_metadata_is_never_parsed(place: Place) -> None:
    other = packages.install(place.site, packages.Package("other", {"other.py": ""}))
    (other.dist_info / "entry_points.txt").write_bytes(b"[console_scripts]\n\xff\xfe broken\n")
    place.install("good")
    assert names(place) == ["chalie-ability-good"]
    assert place.scan().problems == ()


@pytest.mark.parametrize("folder", [".dist-info", "gone-1.0.dist-info"])
def test_an_empty_metadata_folder_is_named_and_costs_nobody_else(place: Place, folder: str) -> None:
    place.install("good")
    (place.site / folder).mkdir()
    found = place.scan()
    assert [one.name for one in found.distributions] == ["chalie-ability-good"]
    (problem,) = found.problems
    assert str(place.site / folder) in problem.reason
    assert problem.fix


def test_bytes_that_are_no_text_cost_their_own_distribution_only(place: Place) -> None:
    place.install("good")
    bad = place.install("bad")
    points = bad.dist_info / "entry_points.txt"
    points.write_bytes(points.read_bytes() + b"\xff\xff = x\n")
    found = place.scan()
    assert [one.name for one in found.distributions] == ["chalie-ability-good"]
    assert found.problems[0].dist == "chalie-ability-bad"
    assert found.broken == {"chalie-ability-bad": bad.dist_info}


def test_metadata_without_a_version_costs_its_own_distribution_only(place: Place) -> None:
    bad = place.install("bad")
    (bad.dist_info / "METADATA").write_text("Metadata-Version: 2.1\nName: chalie-ability-bad\n")
    assert "no Name or no Version" in place.scan().problems[0].reason


@pytest.mark.parametrize("name", ["x; rm -rf ~", "x y", "$(id)", "-r", "caf\u00e9"])
def test_a_name_that_is_none_is_no_part_of_any_command(place: Place, name: str) -> None:
    bad = place.install("bad")
    (bad.dist_info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    strange = place.site / f"{name}-1.0.dist-info"
    strange.mkdir()
    for problem in place.scan().problems:
        assert name not in problem.dist or problem.dist == str(strange)
        assert problem.fix in (
            "python -m pip install --force-reinstall chalie-ability-bad",
            f"rm -r '{strange}'",
        )


def test_a_folder_seen_again_through_a_link_is_read_once(place: Place, tmp_path: Path) -> None:
    place.install("good")
    link = tmp_path / "link"
    link.symlink_to(place.site)
    found = scan([str(link), str(place.site)])
    assert [one.name for one in found.distributions] == ["chalie-ability-good"]
    assert found.problems == ()


def test_the_same_version_in_a_checkout_and_installed_counts_once(place: Place, tmp_path: Path) -> None:
    package = packages.ability_package("good")
    packages.install(place.site, package)
    egg = tmp_path / "checkout" / "chalie_ability_good.egg-info"
    egg.mkdir(parents=True)
    (egg / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: chalie-ability-good\nVersion: 1.0\n")
    (egg / "entry_points.txt").write_text("[chalie.abilities]\ngood = chalie_ability_good\n")
    found = scan([str(egg.parent), str(place.site)])
    assert [one.path for one in found.distributions] == [egg]
    assert found.problems == ()


def test_two_versions_on_the_path_are_reported_and_the_first_counts(place: Place, tmp_path: Path) -> None:
    packages.install(place.site, packages.ability_package("good", version="1.0"))
    other = tmp_path / "other"
    packages.install(other, packages.ability_package("good", version="2.0"))
    found = scan([str(place.site), str(other)])
    assert [one.version for one in found.distributions] == ["1.0"]
    (problem,) = found.problems
    assert "1.0" in problem.reason and "2.0" in problem.reason and not problem.quarantined


def test_of_two_versions_in_one_folder_the_newer_complete_one_counts(place: Place) -> None:
    packages.install(place.site, packages.ability_package("good", version="9.0"))
    packages.install(place.site, packages.ability_package("good", version="10.0"))
    assert place.found("chalie-ability-good").version == "10.0"
    half = packages.ability_package("good", version="11.0", module="not_there")
    packages.install(place.site, half).path("not_there.py").unlink()
    assert place.found("chalie-ability-good").version == "10.0"


def test_a_disabled_distribution_is_not_parsed_at_all(place: Place) -> None:
    bad = place.install("bad")
    (bad.dist_info / "entry_points.txt").write_bytes(b"[chalie.abilities]\n\xff")
    assert place.scan().problems
    found = place.scan(["chalie-ability-bad"])
    assert found.problems == () and found.distributions == ()


def test_the_hosts_own_entry_points_never_count(place: Place) -> None:
    packages.install(place.site, packages.ability_package("mine", dist="chalie"))
    assert names(place) == []


def test_a_leftover_counts_only_while_no_distribution_of_that_name_stands_beside_it(place: Place) -> None:
    good = place.install("good")
    leftover = place.site / "~halie_ability_good-0.9.dist-info"
    leftover.mkdir()
    (leftover / "METADATA").write_text("Metadata-Version: 2.1\nName: chalie-ability-good\nVersion: 0.9\n\nx")
    found = place.scan()
    assert found.leaving == {}
    (problem,) = found.problems
    assert str(leftover) in problem.reason and f"rm -r '{leftover}'" == problem.fix
    good.uninstall()
    found = place.scan()
    assert found.leaving == {"chalie-ability-good": leftover}
    assert found.problems == ()


def test_compiled_files_beside_the_metadata_leave_the_listing_as_it_is(place: Place) -> None:
    place.install("good")
    before = installed.listing(str(place.site))
    (place.site / "__pycache__").mkdir()
    (place.site / "notes.txt").write_text("x")
    assert installed.listing(str(place.site)) == before
    place.install("more")
    assert installed.listing(str(place.site)) != before


def test_scanning_imports_nothing_of_a_package(place: Place, tmp_path: Path) -> None:
    place.install("nosy", before=f"open({str(tmp_path / 'seen')!r}, 'w').close()")
    assert names(place) == ["chalie-ability-nosy"]
    assert not (tmp_path / "seen").exists()


def test_a_link_to_itself_is_named_and_hides_nobody(place: Place) -> None:
    place.install("good")
    (place.site / "loop-1.0.dist-info").symlink_to("loop-1.0.dist-info")
    (place.site / "gone-1.0.dist-info").symlink_to("/nowhere/at/all")
    found = place.scan()
    assert [one.name for one in found.distributions] == ["chalie-ability-good"]
    assert [problem.dist for problem in found.problems] == ["gone", "loop"]
    assert "a link that leads nowhere" in found.problems[0].reason


@pytest.mark.parametrize("target", ["/nowhere/x.pth", "x.pth"])
@pytest.mark.parametrize("name", ["x.pth", "x-1.0.dist-info", "x.egg-link"])
def test_beside_a_link_that_leads_nowhere_installs_are_still_noticed(
    place: Place, name: str, target: str
) -> None:
    link = place.site / name
    link.symlink_to(name if target == "x.pth" else target)
    before = installed.listing(str(place.site))
    place.install("good")
    with_good = installed.listing(str(place.site))
    link.unlink()
    assert len({before, with_good, installed.listing(str(place.site)), ""}) == 4


@pytest.mark.parametrize("name", [b"caf\xe9", b"it's", b"a\nb", b"back\\slash'", "caf\u00e9 \u202e".encode()])
def test_the_line_that_removes_a_folder_removes_it_whatever_its_name(place: Place, name: bytes) -> None:
    folder = Path(os.fsdecode(os.fsencode(place.site) + b"/~" + name + b"-1.0.dist-info"))
    folder.mkdir()
    (problem,) = place.scan().problems
    assert problem.fix.isprintable()
    subprocess.run(["bash", "-c", problem.fix], check=True)
    assert not folder.exists()


def test_a_folder_on_the_path_that_cannot_be_listed_is_named(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.install("good")
    closed = tmp_path / "closed"
    closed.mkdir()
    real = os.scandir

    def scandir(path: str) -> object:
        if path == str(closed):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = scan([str(closed), str(place.site)])
    assert [one.name for one in found.distributions] == ["chalie-ability-good"]
    (problem,) = found.problems
    assert str(closed) in problem.reason and "Permission denied" in problem.reason


@pytest.mark.parametrize("version", ["1.0", "2!1.0.dev3", "1"])
def test_hyphens_left_in_the_name_of_a_metadata_folder_hide_nobody(place: Place, version: str) -> None:
    for name in ("good", "7zip"):
        good = packages.install(
            place.site,
            packages.ability_package("good", dist=f"chalie-ability-{name}", version=version),
            record=False,
        )
        good.dist_info.rename(place.site / f"chalie-ability-{name}-{version}.dist-info")
    assert names(place) == ["chalie-ability-7zip", "chalie-ability-good"]


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("chalie-1.0.dist-info", "chalie"),
        ("chalie.egg-info", "chalie"),
        ("chalie-0.1-py3.11.egg-info", "chalie"),
        ("a_b-0.1-py3.11-linux-x86_64.egg-info", "a_b"),
        ("chalie-py3-1.0.dist-info", "chalie-py3"),
        ("chalie-tools.dist-info", "chalie-tools"),
        (".dist-info", ""),
        ("caf\udce9-1.0.dist-info", ""),
    ],
)
def test_the_name_in_a_metadata_folders_name(folder: str, name: str) -> None:
    assert installed._stem(folder) == name


def test_a_byte_order_mark_hides_no_entry_points(place: Place) -> None:
    points = place.install("good").dist_info / "entry_points.txt"
    points.write_bytes(b"\xef\xbb\xbf" + points.read_bytes())
    assert [point.name for point in place.found("chalie-ability-good").entry_points] == ["good"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_entry_points_in_utf_16_are_named_instead_of_missed(place: Place, encoding: str) -> None:
    points = place.install("good").dist_info / "entry_points.txt"
    points.write_bytes(points.read_text().encode(encoding))
    (problem,) = place.scan().problems
    assert problem.dist == "chalie-ability-good" and "UTF-16" in problem.reason


@given(st.text(alphabet=st.sampled_from("[]chalie.abts =:#;\n\t \u00e9x"), max_size=200))
def test_any_text_is_read_as_entry_points_or_refused_as_a_value(text: str) -> None:
    try:
        points = installed._entry_points("x", "[chalie.abilities]\n" + text)
    except ValueError as error:
        assert "line " in str(error)
    else:
        assert all(point.group in installed.GROUPS and point.name and point.value for point in points)


_WORD = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)


@given(st.lists(st.tuples(st.sampled_from(installed.GROUPS), _WORD, _WORD, _WORD), max_size=6))
def test_entry_points_are_read_as_importlib_metadata_reads_them(lines: list[tuple[str, ...]]) -> None:
    text = "".join(f"[{group}]\n{name} = {module}:{attr}\n" for group, name, module, attr in lines)
    ours = {(p.group, p.name, p.value) for p in installed._entry_points("x", text)}
    theirs = importlib_metadata.EntryPoints._from_text(text)
    assert ours == {(p.group, p.name, p.value) for p in theirs}
