"""Playbooks in the open form: what is read leniently, what is reported, and what is never widened."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from chalie.catalogue.descriptor import EntryPoint, Playbook, Problem
from chalie.catalogue.front_matter import FRONT_MATTER_LIMIT
from chalie.catalogue.playbooks import FILE_LIMIT, read, read_folder
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

ENTRY = EntryPoint("acme-skills", "chalie.skills", "acme", "acme_skills")


def written(folder: Path, text: str | bytes, name: str = "tidy-a-room") -> Path:
    file = folder / name / "SKILL.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
    return file


def front(*lines: str, body: str = "# Steps\n\nDo it.\n") -> str:
    return "\n".join(["---", *lines, "---", "", body])


def good(found: Playbook | Problem) -> Playbook:
    assert isinstance(found, Playbook), found
    return found


def bad(found: Playbook | Problem) -> Problem:
    assert isinstance(found, Problem), found
    return found


def test_a_playbook_is_read_with_its_name_description_tools_and_body(tmp_path: Path) -> None:
    text = front("name: tidy-a-room", "description: Tidies a room.", "allowed-tools: Read Bash(git log:*)")
    file = written(tmp_path, text)
    playbook = good(read(file, dist="acme-skills"))
    assert playbook.key == ("acme-skills", "tidy-a-room")
    assert playbook.description == "Tidies a room."
    assert playbook.allowed_tools == ("Read", "Bash(git log:*)")
    assert playbook.body == "# Steps\n\nDo it.\n"
    assert playbook.path == str(file)
    assert len(playbook.hash) == 64


def test_a_folder_stands_for_the_skill_file_in_it(tmp_path: Path) -> None:
    file = written(tmp_path, front("description: d"))
    assert read(file.parent) == read(file)


def test_without_a_name_the_folder_gives_it(tmp_path: Path) -> None:
    assert good(read(written(tmp_path, front("description: d")))).name == "tidy-a-room"


@pytest.mark.parametrize(
    ("lines", "description"),
    [
        (["description: Use it when: always"], "Use it when: always"),
        (["description: d", "argument-hint: [x]"], "d"),
        (["description: d", "argument-hint: [x] and more"], "d"),
        (['description: "never closed'], '"never closed'),
        (["description:\ttabbed"], "tabbed"),
        (["description:glued"], "glued"),
        (["description: >-", "  one", "  two"], "one two"),
        (["description: a: b", "  goes on"], "a: b goes on"),
        (["description: |", "  a: b", "other: [", "more: x"], "a: b"),
        (["description: 2026-01-01"], "2026-01-01"),
        (["description: *important* words"], "*important* words"),
        (["description: d", "no colon here"], "d"),
    ],
)
def test_front_matter_that_is_no_yaml_is_read_line_by_line(
    tmp_path: Path, lines: list[str], description: str
) -> None:
    assert good(read(written(tmp_path, front(*lines)))).description == description


def test_a_byte_order_mark_and_carriage_returns_do_no_harm(tmp_path: Path) -> None:
    text = "\ufeff" + front("name: x", "description: d", "allowed-tools: Read").replace("\n", "\r\n")
    playbook = good(read(written(tmp_path, text)))
    assert (playbook.name, playbook.allowed_tools) == ("x", ("Read",))
    assert "\r" not in playbook.body


def test_front_matter_that_is_never_closed_is_reported_with_file_and_line(tmp_path: Path) -> None:
    file = written(tmp_path, "\n---\nname: x\ndescription: d\n\n# Steps\n")
    problem = bad(read(file, dist="acme-skills", entry_point="chalie.skills: acme = acme_skills"))
    assert problem.reason == f"{file}:2: the front matter is never closed"
    assert problem.fix == "add a line `---` after the front matter"
    assert (problem.dist, problem.phase, problem.quarantined) == ("acme-skills", "playbook", False)
    assert problem.entry_point == "chalie.skills: acme = acme_skills"


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 1, "is empty"),
        ("\n \n", 1, "is empty"),
        ("# Just Markdown\n", 1, "has no front matter"),
        (front("name: x"), 2, "has no description"),
        (front("name: x", "description:"), 3, "cannot be read as text"),
        (front("name: x", "description: {a: b}"), 3, "cannot be read as text"),
        (front("name: x", f"description: {'d' * 5000}"), 3, "4096 at most"),
        (front(f"name: {'n' * 65}", "description: d"), 2, "1 to 64 printable characters"),
        (front('name: "a\\u202eb"', "description: d"), 2, "printable characters"),
        (b"---\nname: x\ndescription: caf\xe9\n---\n", 3, "is not UTF-8"),
        (front("<<: {a: b}", "description: d"), 2, "merge key"),
        (front("description: d", f"x: {'y' * FRONT_MATTER_LIMIT}"), 1, "front matter is over 16 KiB"),
    ],
)
def test_what_cannot_be_used_is_reported_with_file_and_line(
    tmp_path: Path, text: str | bytes, line: int, reason: str
) -> None:
    file = written(tmp_path, text)
    problem = bad(read(file))
    assert problem.reason.startswith(f"{file}:{line}: ")
    assert reason in problem.reason
    assert problem.fix


def test_a_file_of_two_megabytes_is_refused_without_reading_it_whole(tmp_path: Path) -> None:
    file = written(tmp_path, front("description: d", body="x" * 2_000_000))
    assert f"is over {FILE_LIMIT // 1024} KiB" in bad(read(file)).reason


def test_what_is_no_regular_file_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    folder = tmp_path / "trap"
    folder.mkdir()
    os.mkfifo(folder / "SKILL.md")
    assert "is not a regular file" in bad(read(folder)).reason


def test_a_missing_file_is_a_problem_and_not_an_exception(tmp_path: Path) -> None:
    assert "is not a regular file" in bad(read(tmp_path / "gone.md")).reason
    assert "File name too long" in bad(read(tmp_path / ("x" * 300))).reason
    (tmp_path / "empty").mkdir()
    assert "the folder has no SKILL.md" in bad(read(tmp_path / "empty")).reason


def test_an_alias_bomb_is_never_expanded(tmp_path: Path) -> None:
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 40)]
    text = front("description: d", "l0: &l0 [lol]", *levels)
    assert good(read(written(tmp_path, text))).description == "d"
    restricted = text.replace("description: d", "description: d\nallowed-tools: *l39")
    assert "allowed-tools" in bad(read(written(tmp_path, restricted))).reason


def test_nesting_a_thousand_deep_neither_crashes_nor_hides_the_rest(tmp_path: Path) -> None:
    assert good(read(written(tmp_path, front("description: d", "x: " + "[" * 12_000)))).description == "d"


def test_a_python_tag_runs_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    tag = f"!!python/object/apply:pathlib.Path.touch [!!python/object/apply:pathlib.Path ['{mark}']]"
    assert good(read(written(tmp_path, front("description: d", f"x: {tag}")))).description == "d"
    assert "cannot be read as text" in bad(read(written(tmp_path, front(f"description: {tag}")))).reason
    assert (
        "allowed-tools"
        in bad(read(written(tmp_path, front("description: d", f"allowed-tools: {tag}")))).reason
    )
    assert not mark.exists()


@pytest.mark.parametrize(
    ("value", "tools"),
    [
        ("Read", ("Read",)),
        ("Read, Grep Glob", ("Read", "Grep", "Glob")),
        ("Bash(git add:*), Bash(git commit:*)", ("Bash(git add:*)", "Bash(git commit:*)")),
        ("[Read, Grep]", ("Read", "Grep")),
        ("\n- Read\n- Bash(npm test:*)", ("Read", "Bash(npm test:*)")),
        ('"Read Grep"', ("Read", "Grep")),
        ("Read Read", ("Read",)),
        ("[]", ()),
    ],
)
@pytest.mark.parametrize("description", ["fine", "breaks: YAML"])
def test_a_restriction_is_read_whether_or_not_the_rest_is_yaml(
    tmp_path: Path, value: str, tools: tuple[str, ...], description: str
) -> None:
    text = front(f"description: {description}", f"allowed-tools: {value}", "license: Apache-2.0")
    assert good(read(written(tmp_path, text))).allowed_tools == tools


@pytest.mark.parametrize(
    "lines",
    [
        ["allowed-tools:"],
        ['allowed-tools: ""'],
        ["allowed-tools: [Read"],
        ["allowed-tools: Bash(git"],
        ["allowed-tools: {Read: true}"],
        ["allowed-tools: [[Read]]"],
        ["allowed-tools: [Read, null]"],
        ['allowed-tools: ["Re\\u202ead"]'],
        ["allowed-tools:Read"],
        ["allowed-tools Read"],
        ["allowed-tools = Read"],
        ["allowed\u2011tools\uff1aRead"],
        ["allowed-tools: Read", "allowed-tools: Bash"],
        ["allowed-tools: Read", "allowed_tools: Bash"],
        ["allowed-tool: Read"],
        ["alowed-tools: Read"],
        ["tools: Read"],
        ["disallowed-tools: Bash"],
        ["metadata:", "  allowed-tools: Read"],
        ["description: broken: line", "  allowed-tools: Read"],
        ["description: >", "  folded", "  allowed-tools: Read"],
        ["description: broken: line", '"allowed-tools": Read'],
        ["x: &r {allowed-tools: Read}", "<<: *r"],
        ["---", "allowed-tools: Read"],
        ["{allowed-tools: Read}"],
        ["broken: YAML: x", "other: {allowed-tools: Read}"],
        ["description: d", "  more: {a: b, allowed-tools: Read"],
        ["tools-allowed: Read"],
        ["permitted-tools: Read"],
        ["allowed_tool: Read"],
        ["toolsAllowed: Read"],
        ["onlyTools: [Read]"],
        ["tools_only: Read"],
        ["Restricted Tools: Read"],
        ["tool-restrictions: Read"],
        ["toolwhitelist allowed: Read"],
        ["deny-tools: Bash"],
        ["the-tools-it-is-permitted: Read"],
        ["tools that are allowed: Read"],
        ["\uff50ermitted-\uff54ools: Read"],
        ["metadata: {tools-allowed: Read}"],
        ["metadata: {allowed-tools: Read}"],
        ["metadata:", "  - more: {permitted_tools: Read}"],
        ["metadata:", "  permitted tools: Read"],
        ["? {permitted-tools: Read}", ": x"],
        ["broken: YAML: x", "tools-allowed: Read"],
        ["broken: YAML: x", "other: {tools-allowed: Read}"],
        ["description: broken: line", "  permitted-tools: Read"],
        ["---", "permitted-tools: Read"],
    ],
)
def test_a_restriction_that_cannot_be_read_for_certain_makes_the_playbook_unusable(
    tmp_path: Path, lines: list[str]
) -> None:
    text = front(*([] if lines[0].startswith("description") else ["description: d"]), *lines)
    file = written(tmp_path, text)
    problem = bad(read(file))
    assert problem.reason.startswith(f"{file}:")
    assert problem.fix


def test_a_restriction_that_stands_twice_on_one_line_is_no_clearer(tmp_path: Path) -> None:
    text = front("{description: d, allowed-tools: Read, allowed-tools: Bash}")
    assert "says `allowed-tools` twice" in bad(read(written(tmp_path, text))).reason


@pytest.mark.parametrize("key", ["allowed-tools", "Allowed-Tools", "allowed_tools", "allowedTools"])
def test_other_spellings_of_the_restriction_restrict_as_well(tmp_path: Path, key: str) -> None:
    text = front("description: d", f"{key}: Read")
    assert good(read(written(tmp_path, text))).allowed_tools == ("Read",)


@pytest.mark.parametrize(
    "line",
    [
        "required-tools: hammer",
        "toolbox: hammer",
        "commonly-used-tools: hammer",
        "only-on: linux",
        "allowed-hosts: example.org",
        "restricted: false",
        "metadata: {tool-version: 3, permits: none}",
    ],
)
def test_a_key_that_restricts_no_tools_makes_nothing_unusable(tmp_path: Path, line: str) -> None:
    assert good(read(written(tmp_path, front("description: d", line)))).allowed_tools is None


def test_a_long_description_may_speak_of_the_only_tool(tmp_path: Path) -> None:
    text = front("description: >", "  Helps where there is only one tool: a hammer.", "  Use it with care.")
    assert good(read(written(tmp_path, text))).allowed_tools is None


def test_a_description_may_speak_of_allowed_tools(tmp_path: Path) -> None:
    text = front('description: "Explains what allowed-tools: Read means"')
    assert good(read(written(tmp_path, text))).allowed_tools is None


def test_a_package_is_read_by_folder_and_bad_ones_cost_only_themselves(tmp_path: Path) -> None:
    written(tmp_path, front("name: b", "description: d"), "b")
    written(tmp_path, front("name: a", "description: d"), "a")
    broken = written(tmp_path, "no front matter", "c")
    again = written(tmp_path, front("name: a", "description: d"), "z")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__init__.py").write_text("raise SystemExit")
    playbooks, problems = read_folder(tmp_path, entry_point=ENTRY)
    assert [playbook.key for playbook in playbooks] == [("acme-skills", "a"), ("acme-skills", "b")]
    assert [problem.reason.split(": ")[0] for problem in problems] == [f"{broken}:1", str(again)]
    assert f"taken by {tmp_path / 'a' / 'SKILL.md'}" in problems[1].reason
    assert {problem.entry_point for problem in problems} == {"chalie.skills: acme = acme_skills"}


def test_three_hundred_playbooks_are_all_read(tmp_path: Path) -> None:
    for number in range(300):
        written(tmp_path, front(f"description: number {number}"), f"skill-{number:03}")
    playbooks, problems = read_folder(tmp_path, dist="d")
    assert (len(playbooks), problems) == (300, ())
    assert playbooks[299].description == "number 299"


def test_a_package_without_any_playbook_says_so(tmp_path: Path) -> None:
    playbooks, problems = read_folder(tmp_path, entry_point=ENTRY)
    assert playbooks == ()
    assert problems[0].reason == f"{tmp_path} holds no folder with a SKILL.md"
    assert read_folder(tmp_path / "gone", dist="d")[1][0].dist == "d"


noise = st.text(alphabet=st.sampled_from(list("ab:-_ \t\n\"'[]{}#&*!|>%@`,?=T")), max_size=60)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.binary(max_size=300) | noise.map(lambda text: f"---\n{text}\n---\n".encode()))
def test_no_bytes_make_reading_raise(tmp_path: Path, data: bytes) -> None:
    assert isinstance(read(written(tmp_path, data)), Playbook | Problem)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    before=noise,
    after=noise,
    indent=st.sampled_from(["", " ", "\t", "  "]),
    key=st.sampled_from(["allowed-tools", "allowed_tools", "Allowed-Tools"]),
)
def test_a_line_that_restricts_never_ends_as_an_unrestricted_playbook(
    tmp_path: Path, before: str, after: str, indent: str, key: str
) -> None:
    text = f"---\ndescription: d\n{before}\n{indent}{key}: Read\n{after}\n---\nbody\n"
    found = read(written(tmp_path, text))
    assert isinstance(found, Problem) or found.allowed_tools is not None
