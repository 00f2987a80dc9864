"""Which action a command is, and that nothing outside the closed table is ever taken for reading."""

from __future__ import annotations

import os
from pathlib import Path

import command_fuzz
import pytest
from chalie_ability_workspace.bash import Bash
from chalie_ability_workspace.refusal import AlwaysAsk
from chalie_ability_workspace.shell import judging
from chalie_ability_workspace.shell.grammar import outline
from chalie_ability_workspace.shell.table import READERS
from chalie_ability_workspace.shell.words import split
from hypothesis import example, given, settings
from hypothesis import strategies as st


def judged(command: str, **more: object) -> str:
    return Bash().classify({"command": command, **more})


@pytest.mark.parametrize(
    "command, action",
    [
        ("ls -la", "read"), ("cat a.txt | grep -n one | head -5", "read"), ("cd src && cat main.py", "read"),
        ("find . -name '*.py' -not -empty", "read"), ("sed -n '1,$p' a.txt", "read"),
        ("grep -rn --include='*.py' 'def ' src", "read"), ("# what is here\nls\n", "read"),
        ("mkdir -p x/y && touch x/y/z", "write"), ("cp a.txt b.txt", "write"), ("mv a.txt b.txt", "write"),
        ("echo hi > b.txt", "write"), ("ls 2>/dev/null", "write"), ("sort < a.txt", "write"),
        ("curl -sSL https://example.org/x", "network"), ("ls && ping -c 1 example.org", "network"),
        ("pip install rich", "install"), ("python3 -m pip install rich && ls", "install"),
        ("npm ci", "install"), ("rm a.txt", "destructive"), ("ls; rm a.txt", "destructive"),
        ("python main.py", "destructive"), ("git status", "destructive"),
        ("curl -o x https://e.org", "destructive"),
    ],
)  # fmt: skip
def test_a_command_is_as_strict_as_its_strictest_part(command: str, action: str, work: Path) -> None:
    assert judged(command) == action


def test_the_folder_it_runs_in_counts(work: Path) -> None:
    assert judged("cat ../a.txt", folder="src") == "read"
    assert judged("cat ../../a.txt", folder="src") == "destructive"
    assert judged("ls", folder="../outside") == "destructive"


def test_the_model_can_ask_for_more_caution_and_never_for_less(work: Path) -> None:
    with pytest.raises(AlwaysAsk, match="I am not sure"):
        judged("ls", approvalRequired=True, approvalReason="I am not sure")
    assert judged("rm a.txt", approvalRequired=False, approvalReason="safe") == "destructive"


def test_a_change_of_folder_may_have_failed_so_both_folders_count(work: Path) -> None:
    (work / "sub").mkdir()
    (work / "sub" / "link").symlink_to(work.parent / "outside")
    assert judged("cd sub; cat link/far.txt") == "destructive"
    assert judged("cd src; cat ../a.txt") == "destructive"
    assert judged("cd inner && cat main.py") == "read"
    assert judged("cd inner/.. && ls") == "destructive"


def test_a_moved_link_cannot_lead_later_words_astray(work: Path) -> None:
    assert judged("mv out x") == "destructive"
    assert judged("mv a.txt x && cat x/far.txt") == "destructive"


def test_what_is_guarded_by_its_place_or_name_is_not_moved_out_of_it(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("data/home", ".config/gh", "plain/git"):
        (work / folder).mkdir(parents=True)
    monkeypatch.setenv("CHALIE_HOME", str(work / "data" / "home"))
    for command in (
        "mv .env plain.txt", "mv data elsewhere", "mv data/home x", "mv .config conf", "mv plain .config",
        "mv -f a.txt .env src",
    ):  # fmt: skip
        with pytest.raises(AlwaysAsk):
            judged(command)
    assert judged("mv plain other") == "write"


def test_a_search_through_a_folder_reads_no_secret_in_it(work: Path) -> None:
    deep = "grep -rn --include='*.py' KEY"
    assert judged(f"{deep} .") == judged(deep) == "read"
    (work / "src" / "secrets").mkdir()
    (work / "src" / "secrets" / "keys.txt").touch()
    assert judged(f"{deep} .") == "read"
    (work / "src" / "secrets" / "keys.py").touch()
    for command in (f"{deep} .", deep, f"{deep} src", f"cd src && {deep}"):
        with pytest.raises(AlwaysAsk, match=r"keys\.py holds secrets by its name \(secrets\)"):
            judged(command)
    assert judged("grep -rn --include='*.md' KEY .") == "read"


def test_a_folder_with_too_many_files_to_look_at_is_asked_about(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "_MOST_BELOW", 3)
    assert judged("grep -rn --include='*.py' KEY src") == "read"
    assert judged("grep -rn --include='*.py' KEY .") == "destructive"


def test_a_copy_into_a_folder_is_judged_by_the_place_it_takes_there(work: Path) -> None:
    (work / "src" / "a.txt").symlink_to(work.parent / "outside" / "far.txt")
    (work / "src" / ".bashrc").touch()
    assert judged("cp a.txt src") == "destructive"
    assert judged("cp a.txt src/b.txt") == "write"
    for command in ("cp src/.bashrc .", "cp src/.bashrc ./", "mv src/.bashrc ."):
        with pytest.raises(AlwaysAsk):
            judged(command)


@pytest.mark.parametrize("character", "*?[]{}~$`\\!&()<>#^\r\0\x1b\u00a0é'\"")
def test_only_characters_that_mean_themselves_stand_in_a_plain_word(character: str) -> None:
    """Without the grammar's help: each of the two readings holds alone."""
    commands = split(f"cat a{character}b")
    assert commands is None or (character == "^" and commands[0].words == ["cat", f"a{character}b"])


@pytest.mark.parametrize("inside", ["$x", "$(x)", "`x`", "\\", "${x}"])
def test_double_quotes_hold_nothing_to_expand(inside: str) -> None:
    assert split(f'echo "a{inside}b"') is None
    assert split(f"echo 'a{inside}b'") is not None


def test_nothing_is_read_where_the_listed_commands_lie_in_the_workspace(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHALIE_WORKSPACE_ROOTS", "/usr")
    assert judged("ls") == "destructive"


def test_nesting_and_length_have_bounds(work: Path) -> None:
    for command in ("(" * 200 + "ls" + ")" * 200, " && ".join(["true"] * 150), "ls " + "a" * 9000):
        with pytest.raises(AlwaysAsk):
            judged(command)
    assert judged(" && ".join(["true"] * 50)) == "read"


def test_a_reading_the_grammar_does_not_share_is_always_asked_about(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def astray(text: str) -> object:
        return split("ls") if "cat" in text else split(text)

    monkeypatch.setattr(judging, "split", astray)
    with pytest.raises(AlwaysAsk, match="grammar reads it otherwise"):
        judged("cat a.txt")


def test_the_table_names_only_commands_known_to_read() -> None:
    assert set(READERS) | set(judging._SPECIAL) == command_fuzz.HARMLESS


def test_simple_commands_are_seen_alike_by_both_readings(work: Path) -> None:
    for command in command_fuzz._READ:
        commands = split(command)
        assert commands is not None
        assert outline(command).agrees(commands), command


def test_thousands_of_made_and_spoilt_commands_hold_no_false_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = command_fuzz.Folder(tmp_path.resolve())
    monkeypatch.setenv("CHALIE_WORKSPACE_ROOTS", str(folder.work))
    found, wrong = command_fuzz.fuzz(6000, 150, seed=20, folder=folder)
    assert wrong == []
    assert found["read"] > 600
    assert found["destructive"] > 600
    assert found["always"] > 300


def test_the_check_by_bash_notices_what_runs_and_what_is_written(tmp_path: Path) -> None:
    folder = command_fuzz.Folder(tmp_path.resolve())
    assert folder.objection("ls | cat") is None
    assert "touch" in (folder.objection("ls $(touch x)") or "")
    assert "bash runs" in (folder.objection("cat *.txt") or "")
    assert folder.objection("cd src; > new") == "the folder is not as it was"


_PIECES = st.sampled_from(
    [*command_fuzz._READ, *command_fuzz._OTHER, *command_fuzz._JOIN, *command_fuzz._CHARS, "rm", "\\", "''"]
)


@given(st.lists(_PIECES, max_size=8).map("".join))
@example("ls\\\nrm")
@example("l's' ''\n#'\nrm x\n#'")
@example("cat 'a'\"b\"#c")
@settings(max_examples=600)
def test_no_join_of_pieces_is_read_that_another_reading_objects_to(command: str) -> None:
    os.environ["CHALIE_WORKSPACE_ROOTS"] = str(Path(__file__).parent)
    try:
        if command_fuzz.judged(command) == "read":
            assert command_fuzz.objection(command) is None
    finally:
        del os.environ["CHALIE_WORKSPACE_ROOTS"]


@given(st.text(max_size=40))
def test_any_text_at_all_is_judged_or_always_asked_about(command: str) -> None:
    assert command_fuzz.judged(command) in (*judging.ACTIONS, "always")
