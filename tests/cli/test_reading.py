"""What the reading commands say: of everything that was asked, and where there is nothing to say."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from chalie.cli import exits, output
from chalie.cli.find import NEXT_STEPS
from chalie.discovery.found import Reason

from tests.support import packages

Chalie = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("installed")


def skills_package(site: Path) -> None:
    text = "---\nname: tidy-up\ndescription: Tidy a folder up.\n---\nMove things.\n"
    packages.install(
        site,
        packages.Package(
            dist="chalie-books",
            files={"chalie_books/tidy-up/SKILL.md": text, "chalie_books/__init__.py": ""},
            entry_points={"chalie.skills": {"books": "chalie_books"}},
        ),
    )


def test_a_disabled_package_is_listed_with_the_line_that_brings_it_back(chalie: Chalie) -> None:
    assert chalie("disable", "chalie-ability-dice").code == exits.OK
    rows = {row["package"]: row for row in chalie("list", "--json").json["packages"]}
    assert rows["chalie-ability-dice"]["state"] == "disabled: chalie enable chalie-ability-dice"
    assert rows["chalie-ability-dice"]["version"] == "1.0"
    assert "disabled: chalie enable chalie-ability-dice" in chalie("list").out


@pytest.mark.parametrize("name", ["dice", "chalie-ability-dice"])
def test_what_belongs_to_a_disabled_package_says_so(chalie: Chalie, name: str) -> None:
    assert chalie("disable", "chalie-ability-dice").code == exits.OK
    shown = chalie("show", name)
    assert shown.code == exits.NOTHING
    assert "disabled" in shown.err and "chalie enable chalie-ability-dice" in shown.err
    called = chalie("call", name)
    assert called.code == exits.NOTHING
    assert "disabled" in called.err and "chalie enable chalie-ability-dice" in called.err


def test_a_list_of_a_package_that_is_not_there_says_so(chalie: Chalie) -> None:
    done = chalie("list", "nope")
    assert done.code == exits.NOTHING
    assert done.out == ""
    assert "no package nope is installed" in done.err and "chalie install nope" in done.err


def test_a_mistyped_package_is_told_from_one_that_is_not_installed(chalie: Chalie) -> None:
    assert "did you mean chalie-ability-dice?" in chalie("list", "chalie-abilty-dice").err


def test_a_list_without_tools_does_not_begin_with_an_empty_line(chalie: Chalie, site: Path) -> None:
    skills_package(site)
    assert chalie("list", "chalie-books").out.startswith("PACKAGE")


def test_show_tells_of_a_package_without_tools_too(chalie: Chalie, site: Path) -> None:
    skills_package(site)
    done = chalie("show", "Chalie_Books", "--json")
    assert done.code == exits.OK
    assert (done.json["brings"], done.json["tools"]) == (["skills"], [])
    assert done.json["playbooks"] == ["tidy-up"]
    text = chalie("show", "chalie-books").out
    assert "tidy-up" in text and "chalie-books 1.0" in text


def test_show_of_a_package_that_was_set_aside_says_why(chalie: Chalie) -> None:
    done = chalie("show", "chalie-ability-broken")
    assert done.code == exits.OK
    assert "quarantined" in done.out and "no such luck" in done.out


@pytest.mark.parametrize("name", ["find_tools", "find_skills", "read_result"])
def test_show_knows_the_tools_of_the_host_itself(chalie: Chalie, name: str) -> None:
    row = chalie("show", name, "--json").json
    assert (row["name"], row["package"]) == (name, "chalie")
    assert row["permissions"][0]["settings"]["external_agent"] == "allow"


def test_show_lists_bounds_choices_and_defaults(chalie: Chalie, site: Path) -> None:
    parameters = {
        "type": "object",
        "properties": {
            "sides": {"type": "integer", "minimum": 2, "maximum": 1000, "default": 6},
            "how": {"enum": ["fair", "loaded"], "type": "string"},
            "names": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        },
        "required": ["how"],
    }
    packages.install(site, packages.ability_package("roller", parameters=parameters))
    text = chalie("show", "roller").out
    assert "integer, from 2, to 1000, default 6" in text
    assert 'string, required, one of "fair" | "loaded"' in text
    assert "array of string, items to 3" in text


def test_find_explained_has_one_row_for_every_entry_and_hit(chalie: Chalie) -> None:
    rows = chalie("find", "dice", "Dice", "notess", "--explain", "--json").json["injected"]
    assert [(row["entry"], row["name"], row["rung"]) for row in rows] == [
        ("dice", "dice", "exact"),
        ("Dice", "dice", "exact"),
        ("notess", "notes", "name"),
    ]
    plain = chalie("find", "dice", "Dice", "notess", "--json").json["injected"]
    assert [row["name"] for row in plain] == ["dice", "notes"]


def test_every_reason_of_a_miss_has_a_next_step_for_a_person() -> None:
    from typing import get_args

    assert set(NEXT_STEPS) == set(get_args(Reason))


def test_a_miss_names_its_reason_and_the_next_step(chalie: Chalie) -> None:
    assert "`chalie doctor` tells why" in chalie("find", "broken").err


def test_a_model_that_is_not_there_is_said_as_such(chalie: Chalie, home: Path) -> None:
    (home / "config.toml").write_text('[discovery]\nmodel = "/nowhere/model"\n')
    done = chalie("find", "is there something that rolls a die for me")
    assert done.code == exits.NOTHING
    assert "the model '/nowhere/model' is neither a folder nor an installed model" in done.err


def test_a_miss_by_meaning_shows_what_came_nearest_and_the_ceiling(chalie: Chalie, home: Path) -> None:
    (home / "config.toml").write_text("[discovery]\nceiling = 0.01\n")
    entry = "please throw something with six sides on the table"
    done = chalie("find", entry, "--explain", "--json")
    assert done.code == exits.NOTHING
    (miss,) = done.json["not_found"]
    nearest = miss["nearest"][0]
    assert (miss["reason"], nearest["name"]) == ("no-match", "dice")
    # what this very entry would have had to keep, after all allowances
    assert nearest["ceiling"] < 0.01 < nearest["distance"]
    said = chalie("find", entry, "--explain").err
    assert f"nearest: dice at {nearest['distance']:.2f}, where {nearest['ceiling']:.2f} would do" in said
    assert "nearest" not in chalie("find", entry, "--json").json["not_found"][0]
    (home / "config.toml").write_text("")
    (hit,) = chalie("find", entry, "--explain", "--json").json["injected"][:1]
    assert hit["distance"] <= hit["ceiling"]


def test_how_a_misspelt_entry_was_read_is_explained_whether_it_is_found_or_not(
    chalie: Chalie, home: Path
) -> None:
    entry = "please throw somethng with six sides on the table"
    right = entry.replace("somethng", "something")
    (home / "config.toml").write_text("[discovery]\nceiling = 2.0\n")
    row = chalie("find", entry, "--explain", "--json").json["injected"][0]
    assert (row["name"], row["entry"], row["read_as"]) == ("dice", entry, right)
    assert f"read as: {right}" in chalie("find", entry, "--explain").err
    assert "read_as" not in chalie("find", right, "--explain", "--json").json["injected"][0]
    (home / "config.toml").write_text("[discovery]\nceiling = 0.01\n")
    (miss,) = chalie("find", entry, "--explain", "--json").json["not_found"]
    assert miss["read_as"] == right
    assert f"read as: {right}" in chalie("find", entry, "--explain").err


def test_a_name_whose_package_is_out_of_order_or_switched_off_is_said_to_be(
    chalie: Chalie, home: Path
) -> None:
    (home / "config.toml").write_text("[discovery]\nceiling = 2.0\n")  # so that everything is near
    done = chalie("find", "broken", "--json")
    assert [(miss["entry"], miss["reason"]) for miss in done.json["not_found"]] == [("broken", "unavailable")]
    assert chalie("disable", "chalie-ability-dice").code == exits.OK
    assert "dice belongs to chalie-ability-dice, which is disabled" in chalie("find", "dice").err


def test_a_delegate_channel_is_refused_by_find_as_by_call(chalie: Chalie) -> None:
    for words in (["find", "dice"], ["call", "dice"]):
        done = chalie(*words, "--channel", "web_search")
        assert done.code == exits.USAGE and "web_search is a delegate" in done.err


@pytest.mark.parametrize(
    ("variable", "written"), [("model", ""), ("./model", ""), ("", "../model"), ("", "own")]
)
def test_a_relative_folder_of_a_model_is_the_same_to_every_process(
    home: Path, tmp_path: Path, variable: str, written: str
) -> None:
    import chalie_model_static

    shutil.copytree(Path(chalie_model_static.__file__).parent / "model", tmp_path / "model")
    home.mkdir(exist_ok=True)
    shutil.copytree(tmp_path / "model", home / "own")
    (home / "config.toml").write_text(f"[discovery]\nmodel = {json.dumps(written)}\n" if written else "")
    done = subprocess.run(
        [*(sys.executable, "-m", "chalie.cli.main", "find", "--json", "--explain"), "throw it on the table"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "CHALIE_MODEL": variable},
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == exits.OK, done.stderr.decode()
    assert json.loads(done.stdout)["injected"][0]["rung"] == "prose"


def test_a_channel_that_was_mistyped_is_a_usage_error(chalie: Chalie) -> None:
    for words in (["find", "dice"], ["call", "dice"]):
        done = chalie(*words, "--channel", "chatt")
        assert done.code == exits.USAGE, words
        assert "there is no channel 'chatt'; did you mean chat?" in done.err
    assert "is a delegate" in chalie("call", "dice", "--channel", "web_search").err


@pytest.mark.parametrize("name", ["DICE", "Dice", "chalie-ability-dice"])
def test_call_takes_the_names_that_show_takes(chalie: Chalie, token: str, name: str) -> None:
    done = chalie("call", name if name != "chalie-ability-dice" else "dice__dice", "--yes")
    assert done.code == exits.OK, done.out
    assert done.out.startswith("[dice(status=success)]")


def test_a_call_of_nothing_known_tells_a_person_how_to_go_on(chalie: Chalie) -> None:
    done = chalie("call", "dicee")
    assert done.code == exits.NOTHING
    assert "code=unknown-tool" in done.out
    assert "did you mean dice?" in done.err and 'chalie find "dicee"' in done.err


def test_what_a_tool_prints_stays_out_of_the_answer(
    token: str, site: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = (
        "print('to the screen'); import os, subprocess, sys; os.write(1, b'past python'); "
        "subprocess.run(['echo', 'by a child'], check=True); return ToolResult.ok('done')"
    )
    packages.install(site, packages.ability_package("loud", run=run))
    from chalie.cli.main import main

    capfd.readouterr()
    assert main(["call", "loud", "--yes", "--json"]) == exits.OK
    said = capfd.readouterr()
    assert json.loads(said.out)["body"] == "done"
    for text in ("to the screen", "past python", "by a child"):
        assert text in said.err


def test_standard_output_is_given_back_after_it_was_kept_apart(capfd: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout
    with pytest.raises(ZeroDivisionError), output.aside():
        os.write(1, b"aside")
        raise ZeroDivisionError
    assert sys.stdout is before
    os.write(1, b"back")
    said = capfd.readouterr()
    assert (said.out, said.err) == ("back", "aside")


def test_a_result_that_was_cut_can_be_read_to_its_end(chalie: Chalie, token: str, site: Path) -> None:
    packages.install(site, packages.ability_package("long", run="return ToolResult.ok('x' * 200_000)"))
    cut = chalie("call", "long", "--yes", "--json")
    handle = cut.json["meta"]["result"]
    assert f"chalie call read_result id={handle}" in cut.err
    read, offset = "", 0
    while offset is not None:
        page = chalie("call", "read_result", f"id={handle}", f"offset={offset}", "--json")
        assert page.code == exits.OK, page.out
        read, offset = read + page.json["body"], page.json["meta"].get("next")
        assert (offset is None) == (f"offset={offset}" not in page.err)
    assert read == "x" * 200_000


def test_a_tool_that_fails_points_at_its_row_on_the_trail(chalie: Chalie, token: str, site: Path) -> None:
    packages.install(site, packages.ability_package("faulty", run="raise ValueError('odd input')"))
    done = chalie("call", "faulty", "--yes")
    assert done.code == exits.FAILED
    words = done.err.strip().rpartition("hint: chalie ")[2].split()
    assert words[:2] == ["trail", "--call"]
    assert "odd input" in chalie(*words).out


def test_the_trail_gives_programs_arguments_as_an_object_and_times_in_utc(chalie: Chalie, token: str) -> None:
    assert chalie("call", "notes", "action=add", "count=3", "--yes").code == exits.OK
    (row,) = chalie("trail", "--event", "call.started", "--json").json
    assert row["arguments"] == {"action": "add", "count": 3}
    assert datetime.fromisoformat(row["at"]).utcoffset() == datetime.now(UTC).utcoffset()


def test_people_read_times_with_their_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "XYZ-02")
    time.tzset()
    try:
        assert output.local(datetime(2026, 1, 31, 9, tzinfo=UTC)) == "2026-01-31 11:00:00 XYZ"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_doctor_says_where_home_configuration_and_environment_are(chalie: Chalie, home: Path) -> None:
    from chalie.config import environment_key

    found = chalie("doctor", "--json").json
    assert (found["home"], found["config"]) == (str(home), str(home / "config.toml"))
    assert found["environment"] == environment_key()
    assert "not there yet" in chalie("doctor").out
    (home / "config.toml").write_text("")
    assert "not there yet" not in chalie("doctor").out


def test_doctor_advises_where_a_tool_has_too_few_examples(chalie: Chalie, site: Path) -> None:
    packages.install(site, packages.ability_package("terse", examples=["do it", "do that"]))
    (note,) = [
        row for row in chalie("doctor", "--json").json["notes"] if row["package"] == "chalie-ability-terse"
    ]
    assert "terse has 2 examples" in note["reason"] and "six to eight" in note["fix"]


def test_a_missing_playbook_has_a_code_of_its_own(chalie: Chalie, site: Path) -> None:
    skills_package(site)
    done = chalie("skills", "tidy-upp")
    assert done.code == exits.NOTHING
    assert "no playbook named 'tidy-upp' is installed [unknown-playbook]" in done.err
    assert "did you mean 'tidy-up'?" in done.err


@pytest.mark.parametrize(
    "words",
    [["list"], ["doctor"], ["find", "dice"], ["call", "dice"], ["trail"], ["index"], ["approvers", "list"]],
)
def test_a_home_that_was_named_and_is_not_there_is_not_made_by_reading(
    chalie: Chalie, tmp_path: Path, words: list[str]
) -> None:
    nowhere = tmp_path / "no" / "home"
    done = chalie("--home", str(nowhere), *words)
    assert done.code == exits.SETUP
    assert f"there is no home at {nowhere} [bad-config]" in done.err and "chalie install" in done.err
    assert not nowhere.parent.exists()


def test_the_default_home_is_made_where_there_is_none(
    chalie: Chalie, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = tmp_path / "fresh"
    monkeypatch.setenv("CHALIE_HOME", str(fresh))
    assert chalie("permissions", "list").code == exits.OK
    assert fresh.exists()
