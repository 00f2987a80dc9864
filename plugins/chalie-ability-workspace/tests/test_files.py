"""Files of the workspace: what is read, written, changed, listed, deleted, handed over, and what is not."""

from __future__ import annotations

import base64
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chalie import Ability, SideEffect
from chalie.ability import facts
from chalie_ability_workspace import opening
from chalie_ability_workspace.bash import Bash
from chalie_ability_workspace.deleting import FileDelete
from chalie_ability_workspace.delivering import FileDeliver
from chalie_ability_workspace.editing import Edit
from chalie_ability_workspace.listing import FileList
from chalie_ability_workspace.plan import Plan
from chalie_ability_workspace.reading import LONGEST_LINE, MOST_BYTES, Read
from chalie_ability_workspace.refusal import AlwaysAsk, Refused
from chalie_ability_workspace.roots import resolve, roots
from chalie_ability_workspace.writing import Write

Call = Callable[..., Any]
ALL = (Bash, Edit, FileDelete, FileDeliver, FileList, Plan, Read, Write)
#: every ability that takes a path, with what else it needs.
ON_PATHS: tuple[tuple[type[Ability], dict[str, Any]], ...] = (
    (Read, {}),
    (Write, {"content": "GONE\n"}),
    (Edit, {"edits": [{"old": "CANARY", "new": "GONE"}]}),
    (FileDeliver, {}),
)
LEADING_OUT = (
    "../outside/far.txt", "out/far.txt", "out.txt", "src/../../outside/far.txt", "//outside",
    "inner/../../outside/far.txt", "./out//far.txt", "out/../outside/far.txt",
)  # fmt: skip


def outside(work: Path) -> dict[str, str]:
    folder = work.parent / "outside"
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.parametrize("cls", ALL)
def test_every_ability_can_be_described_without_a_context(cls: type[Ability]) -> None:
    found = facts(cls(), dist="chalie-ability-workspace", dist_version="0.1.0", target=f"x:{cls.__name__}")
    assert 6 <= len(found["examples"]) <= 8


@pytest.mark.parametrize("cls", [cls for cls in ALL if cls is not Plan])
def test_nobody_but_the_account_itself_may_use_its_powers(cls: type[Ability], call: Call, bound: Any) -> None:
    bound.principal = "eve"
    result = call(cls, path="a.txt", command="ls", content="x", edits=[{"old": "one", "new": "x"}])
    assert (result.status, result.code) == ("error", "not-allowed")


# reading


def test_lines_are_read_by_number_and_the_next_one_is_told(call: Call) -> None:
    assert call(Read, path="a.txt").body == "one\ntwo\nthree\n"
    result = call(Read, path="a.txt", start_line=2, lines=1)
    assert result.body == "two\n"
    assert (result.meta["lines"], result.meta["next_line"]) == (1, 3)
    assert "next_line" not in call(Read, path="a.txt", start_line=3).meta
    assert call(Read, path="a.txt", start_line=9).body == ""


def test_bytes_are_read_by_offset_and_come_as_base64_where_they_are_no_text(call: Call, work: Path) -> None:
    (work / "b.bin").write_bytes(bytes(range(256)))
    result = call(Read, path="b.bin", start_byte=250, bytes=4)
    assert base64.b64decode(result.body) == bytes([250, 251, 252, 253])
    assert (result.meta["next_byte"], result.meta["encoding"]) == (254, "base64")
    assert call(Read, path="a.txt", start_byte=4, bytes=3).body == "two"


def test_a_binary_file_is_not_shown_as_text(call: Call, work: Path) -> None:
    (work / "b.bin").write_bytes(b"ELF\0\1\2")
    result = call(Read, path="b.bin")
    assert result.code == "binary-file"
    assert "start_byte=" in result.hint


def test_a_huge_file_comes_in_pieces_that_join_to_the_whole(call: Call, work: Path) -> None:
    whole = "".join(f"line {number} {'x' * 200}\n" for number in range(3000))
    (work / "huge.txt").write_text(whole)
    got, start = "", 1
    while start:
        result = call(Read, path="huge.txt", start_line=start)
        assert len(result.body) <= MOST_BYTES
        got += result.body
        start = result.meta.get("next_line", 0)
    assert got == whole


def test_a_line_of_megabytes_is_cut_and_said_to_be(call: Call, work: Path) -> None:
    (work / "min.js").write_text("é" * 5_000_000 + "\nnext\n")
    result = call(Read, path="min.js")
    assert result.body == "é" * LONGEST_LINE + "…\nnext\n"
    assert result.meta["lines_cut"] == 1


def test_text_in_another_encoding_is_shown_and_said_to_be(call: Call, work: Path) -> None:
    (work / "latin.txt").write_bytes("café\n".encode("latin-1"))
    result = call(Read, path="latin.txt")
    assert (result.body, result.meta["encoding"]) == ("caf\ufffd\n", "not UTF-8")


def test_pipes_sockets_devices_and_folders_are_not_opened_as_files(call: Call, work: Path) -> None:
    os.mkfifo(work / "pipe")
    listening = socket.socket(socket.AF_UNIX)
    before = Path.cwd()
    os.chdir(work)  # a socket's path may only be short
    try:
        listening.bind("socket")
    finally:
        os.chdir(before)
    for name in ("pipe", "socket", "src"):
        assert call(Read, path=name).code in ("not-a-file", "not-possible"), name
    assert call(Write, path="pipe", content="x").code == "not-a-file"
    listening.close()


# confinement


@pytest.mark.parametrize("cls, more", ON_PATHS)
@pytest.mark.parametrize("path", LEADING_OUT)
def test_a_path_that_leads_outside_is_refused(
    cls: type[Ability], more: dict[str, Any], path: str, call: Call, work: Path
) -> None:
    result = call(cls, path=path, **more)
    assert result.code == "outside-workspace", result
    assert outside(work) == {"far.txt": "CANARY\n"}


def test_a_dangling_link_is_not_written_through(call: Call, work: Path) -> None:
    assert call(Write, path="dangling", content="x").code == "outside-workspace"
    assert not (work.parent / "outside" / "new.txt").exists()


def test_a_link_that_stays_inside_is_followed_and_what_it_leads_to_is_told(call: Call) -> None:
    result = call(Read, path="inner/main.py")
    assert result.body == "print('hello')\n"
    assert result.meta["path"] == "src/main.py"


@pytest.mark.parametrize("path", ["~/x", "~root/x", "a\0b", "\ud800"])
def test_what_is_no_plain_path_is_refused(path: str, call: Call) -> None:
    assert call(Read, path=path).code == "invalid-path"


def test_a_circle_of_links_is_refused(call: Call, work: Path) -> None:
    (work / "x").symlink_to("y")
    (work / "y").symlink_to("x")
    assert call(Read, path="x").code == "invalid-path"


@pytest.mark.parametrize("cls, more", ON_PATHS)
@pytest.mark.parametrize("part", ["folder", "file"])
def test_a_link_put_there_after_the_check_leads_nowhere(
    cls: type[Ability],
    more: dict[str, Any],
    part: str,
    call: Call,
    work: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The swap happens between looking at the path and opening it, in every place it can happen."""
    (work / "deep").mkdir()
    (work / "deep" / "far.txt").write_text("CANARY inside\n")
    real = opening.open_folder

    def swapped(*args: Any, **kwargs: Any) -> int:
        target = work / "deep" / "far.txt" if part == "file" else work / "deep"
        if not target.is_symlink():
            target.rename(work / "aside")
            target.symlink_to(work.parent / "outside" / ("far.txt" if part == "file" else ""))
        return real(*args, **kwargs)

    monkeypatch.setattr(opening, "open_folder", swapped)
    result = call(cls, path="deep/far.txt", **more)
    assert outside(work) == {"far.txt": "CANARY\n"}
    if result.status == "success":  # a link in the last place is replaced by the file, never followed
        assert (cls, part) == (Write, "file") or result.body is None
    else:
        assert result.code in ("outside-workspace", "not-a-file"), result
        assert "CANARY" not in result.message


def test_a_hard_link_to_a_file_outside_is_not_written_through(call: Call, work: Path) -> None:
    os.link(work.parent / "outside" / "far.txt", work / "hard.txt")
    assert call(Write, path="hard.txt", content="mine\n").status == "success"
    assert call(Edit, path="hard.txt", edits=[{"old": "mine", "new": "ours"}]).status == "success"
    assert outside(work) == {"far.txt": "CANARY\n"}
    assert (work / "hard.txt").read_text() == "ours\n"


def test_several_folders_can_be_named_and_each_is_a_workspace(
    call: Call, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = work.parent / "outside"
    monkeypatch.setenv("CHALIE_WORKSPACE_ROOTS", f"{work}:{other}")
    assert call(Read, path="out.txt").body == "CANARY\n"
    assert call(Read, path=str(other / "far.txt")).meta["path"] == str(other.resolve() / "far.txt")


@pytest.mark.parametrize("value", ["relative", "/not/there/at/all"])
def test_a_workspace_that_cannot_be_is_said_to_be_none(
    value: str, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHALIE_WORKSPACE_ROOTS", value)
    result = call(Read, path="a.txt")
    assert result.code == "no-workspace"
    assert "CHALIE_WORKSPACE_ROOTS" in result.hint


def test_a_folder_whose_name_only_begins_like_the_workspace_is_outside(work: Path) -> None:
    (work.parent / "work2").mkdir()
    with pytest.raises(Refused, match="outside the workspace"):
        resolve("../work2/x")
    assert roots() == (str(work.resolve()),)


# writing and changing


def test_writing_makes_folders_keeps_the_mode_and_leaves_nothing_aside(call: Call, work: Path) -> None:
    result = call(Write, path="new/deep/file.txt", content="hi")
    assert (result.meta["new"], result.meta["bytes"]) == (True, 2)
    (work / "new/deep/file.txt").chmod(0o750)
    assert call(Write, path="new/deep/file.txt", content="ho").meta["new"] is False
    assert (work / "new/deep/file.txt").stat().st_mode & 0o777 == 0o750
    assert [path.name for path in (work / "new/deep").iterdir()] == ["file.txt"]


def test_a_file_that_is_there_is_kept_where_that_was_asked(call: Call, work: Path) -> None:
    assert call(Write, path="a.txt", content="x", if_exists="refuse").code == "exists"
    assert (work / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert call(Write, path="b.txt", content="x", if_exists="refuse").meta["new"] is True
    assert not list(work.glob("*chalie*")) and not list(work.glob(".*chalie*"))


def test_several_edits_are_made_together_or_not_at_all(call: Call, work: Path) -> None:
    edits = [{"old": "one", "new": "1"}, {"old": "nowhere", "new": "x"}]
    result = call(Edit, path="a.txt", edits=edits)
    assert (result.code, result.message[:7]) == ("text-not-found", "edit 2:")
    assert (work / "a.txt").read_text() == "one\ntwo\nthree\n"
    call(Edit, path="a.txt", edits=[{"old": "one", "new": "1"}, {"old": "1\ntwo", "new": "2"}])
    assert (work / "a.txt").read_text() == "2\nthree\n"


@pytest.mark.parametrize("text, old", [("aXbXc", "X"), ("aaa", "aa")])
def test_an_old_text_that_occurs_twice_is_refused_overlapping_too(
    text: str, old: str, call: Call, work: Path
) -> None:
    (work / "t").write_text(text)
    assert call(Edit, path="t", edits=[{"old": old, "new": ""}]).code == "text-not-unique"


def test_an_edit_keeps_bytes_that_are_no_text(call: Call, work: Path) -> None:
    (work / "t").write_bytes(b"\xff\r\nold\r\n\xfe")
    assert call(Edit, path="t", edits=[{"old": "old", "new": "new"}]).status == "success"
    assert (work / "t").read_bytes() == b"\xff\r\nnew\r\n\xfe"


def test_an_edit_does_not_undo_what_somebody_else_wrote_meanwhile(
    call: Call, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from chalie_ability_workspace import editing

    real = editing.read_whole

    def then_changed(*args: Any) -> Any:
        got = real(*args)
        (work / "a.txt").write_text("theirs: one\n")
        return got

    monkeypatch.setattr(editing, "read_whole", then_changed)
    assert call(Edit, path="a.txt", edits=[{"old": "one", "new": "1"}]).code == "changed-meanwhile"
    assert (work / "a.txt").read_text() == "theirs: one\n"


# deleting, listing, delivering


def test_a_file_a_link_and_an_empty_folder_are_deleted_and_nothing_else(call: Call, work: Path) -> None:
    (work / "empty").mkdir()
    assert call(FileDelete, path="a.txt").status == "success"
    assert call(FileDelete, path="out").status == "success"
    assert call(FileDelete, path="out.txt").status == "success"
    assert call(FileDelete, path="empty").meta["deleted"] == "folder"
    assert call(FileDelete, path="src").code == "folder-not-empty"
    assert call(FileDelete, path=".").code == "not-a-file"
    assert call(FileDelete, path="a.txt").code == "no-such-file"
    assert call(FileDelete, path="../outside/far.txt").code == "outside-workspace"
    assert outside(work) == {"far.txt": "CANARY\n"}


def test_a_list_shows_links_and_does_not_follow_them(call: Call) -> None:
    result = call(FileList, depth=5)
    rows = {row["path"]: row["type"] for row in result.body["entries"]}
    assert rows["out"] == rows["inner"] == "link"
    assert rows["src/main.py"] == "file"
    assert not any(path.startswith(("out/", "inner/", ".git/")) for path in rows)


def test_files_are_found_by_name_and_by_path_up_to_a_limit(call: Call, work: Path) -> None:
    for number in range(20):
        (work / "src" / f"m{number}.py").touch()
    assert call(FileList, pattern="*.py").meta["count"] == 21
    assert call(FileList, pattern="src/m1*.py").meta["count"] == 11
    limited = call(FileList, pattern="*.py", limit=3)
    assert (limited.meta["count"], limited.meta["more"]) == (3, True)
    assert call(FileList, path="out").code == "outside-workspace"


def test_a_file_is_delivered_to_the_conversation_of_its_call_and_nowhere_else(bound: Any) -> None:
    assert dict(FileDeliver.actions) == {"deliver": SideEffect.EXTERNAL_SEND}
    assert FileDeliver().bind(bound).destination({"path": "a.txt", "to": "eve"}) == "talk"
    bound.conversation = None
    assert FileDeliver().bind(bound).destination({"path": "a.txt"}) is None


def test_a_delivered_file_comes_with_the_bytes_that_were_checked(call: Call) -> None:
    result = call(FileDeliver, path="a.txt", caption="the list")
    assert base64.b64decode(result.rich["base64"]) == b"one\ntwo\nthree\n"
    assert (result.rich["name"], result.body["media_type"], result.body["size"]) == (
        "a.txt",
        "text/plain",
        14,
    )
    assert "base64" not in result.body


# what is always asked about


@pytest.mark.parametrize(
    "path",
    [
        ".git/hooks/pre-commit", ".git/config", ".GIT/config", "src/.git/config", ".bashrc", "src/.zshrc",
        ".git\u200d/config", "\uff0egit/config", "src/../.git/x", ".//.git//x", ".envrc",
        ".ssh/authorized_keys",
        ".config/fish/config.fish", ".gitmodules", ".git",
    ],
)  # fmt: skip
def test_what_others_run_is_written_only_with_a_yes_each_time(path: str, work: Path) -> None:
    for ability, more in ((Write(), {"content": "x"}), (Edit(), {"edits": []}), (FileDelete(), {})):
        with pytest.raises(AlwaysAsk):
            ability.classify({"path": path, **more})


def test_a_link_does_not_hide_what_it_leads_to(call: Call, work: Path) -> None:
    """A harmless name is judged harmless, so it is never followed to what is always asked about."""
    (work / "innocent").symlink_to(".git")
    (work / "notes.txt").symlink_to(".env")
    edits = [{"old": "KEY", "new": "x"}]
    for cls, path, more in (
        (Write, "innocent/hooks/post-merge", {"content": "x"}),
        (Edit, "notes.txt", {"edits": edits}),
        (Read, "notes.txt", {}),
        (FileDeliver, "notes.txt", {}),
        (FileDelete, "innocent/config", {}),
        (Bash, ".", {"command": "ls", "folder": "innocent"}),
    ):
        params = {"path": path, **more}
        result = call(cls, **params)
        assert result.code == "hidden-by-link", result
        assert str(work.resolve()) in result.hint
    assert (work / ".env").read_text() == "KEY=CANARY\n"
    assert call(FileDelete, path="innocent").status == "success"  # the link itself is no such place


def test_a_name_that_is_special_is_asked_about_wherever_it_leads(work: Path) -> None:
    (work / ".bashrc").symlink_to("a.txt")
    (work / ".env.local").symlink_to("a.txt")
    with pytest.raises(AlwaysAsk):
        Write().classify({"path": ".bashrc", "content": ""})
    with pytest.raises(AlwaysAsk):
        Read().classify({"path": ".env.local"})


def test_the_home_of_the_host_is_always_asked_about(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHALIE_WORKSPACE_ROOTS", str(work.parent))
    for ability in (Read(), Write(), Edit(), FileDelete()):
        with pytest.raises(AlwaysAsk, match="Chalie's own home"):
            ability.classify({"path": "home/ledger.sqlite"})


@pytest.mark.parametrize(
    "path", [".env", ".env.local", "prod.env", "id_rsa", "tls/server.key", ".aws/config", "x/credentials",
             ".git/config", "secrets.yaml", ".ENV"],
)  # fmt: skip
def test_secrets_are_read_only_with_a_yes_each_time(path: str, work: Path) -> None:
    with pytest.raises(AlwaysAsk):
        Read().classify({"path": path})


@pytest.mark.parametrize(
    "path", ["a.txt", ".env.example", ".gitignore", "src/environment.py", "id_rsa.pub", "keys.py", "../x"]
)
def test_ordinary_files_are_not_asked_about_as_secrets(path: str, work: Path) -> None:
    assert Read().classify({"path": path}) == "read"
    assert Write().classify({"path": path, "content": ""}) == "write"


def test_classes_say_what_each_ability_leaves_behind() -> None:
    assert dict(Read.actions) == {"read": SideEffect.READ}
    assert dict(FileDelete.actions) == {"delete": SideEffect.DESTRUCTIVE}
    assert FileList.side_effect is SideEffect.READ
    assert Plan.side_effect is SideEffect.COMPUTATION
    assert list(Bash.actions) == ["read", "write", "network", "install", "destructive"]


# the plan


def test_a_plan_is_kept_for_its_conversation_and_principal(call: Call, bound: Any) -> None:
    steps = [{"text": "look", "state": "done"}, {"text": "change", "state": "in_progress"}, {"text": "test"}]
    assert call(Plan, steps=steps).meta == {"count": 3, "left": 2}
    assert call(Plan).body["steps"][2] == {"text": "test", "state": "pending"}
    bound.conversation = "another"
    assert call(Plan).body == {"steps": []}
    bound.conversation, bound.principal = "talk", "eve"
    assert call(Plan).body == {"steps": []}


def test_two_steps_in_progress_are_refused_and_an_empty_plan_clears_it(call: Call) -> None:
    both = [{"text": "a", "state": "in_progress"}, {"text": "b", "state": "in_progress"}]
    call(Plan, steps=[{"text": "a"}])
    assert call(Plan, steps=both).code == "several-in-progress"
    assert call(Plan).meta["count"] == 1
    assert call(Plan, steps=[]).meta["count"] == call(Plan).meta["count"] == 0
