"""What the command line makes of words: arguments, moments, requirements, codes, tables."""

from __future__ import annotations

import io
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest
from chalie.cli import exits, output
from chalie.cli.call import gathered
from chalie.cli.installer import distribution_of
from chalie.cli.program import COMMANDS, program, run
from chalie.cli.trail import moment
from chalie.errors import CODES
from hypothesis import given
from hypothesis import strategies as st

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
KEYS = st.text(min_size=1).filter(lambda key: "=" not in key and key != "-")


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):  # type: ignore[no-untyped-def]
    def given(text: str) -> None:
        file = tmp_path / "stdin"
        file.write_text(text)
        monkeypatch.setattr("sys.stdin", file.open())

    return given


@given(st.dictionaries(KEYS, st.text()))
def test_every_key_value_word_arrives_as_it_was_typed(pairs: dict[str, str]) -> None:
    words = [f"{key}={value}" for key, value in pairs.items()]
    if words:
        assert gathered(words) == pairs


def test_a_word_without_an_equals_sign_is_refused() -> None:
    with pytest.raises(click.UsageError, match="'Valletta' is no argument; write KEY=VALUE, or -"):
        gathered(["Valletta"])


def test_a_key_given_twice_is_refused_instead_of_one_value_being_lost() -> None:
    with pytest.raises(click.UsageError, match="'a' is given twice"):
        gathered(["a=1", "a=2"])


def test_json_is_read_from_a_file_that_is_piped_in_where_there_are_no_words(stdin) -> None:  # type: ignore[no-untyped-def]
    stdin('{"location": "Valletta"}')
    assert gathered([]) == '{"location": "Valletta"}'


def test_words_replace_keys_of_the_json_on_standard_input(stdin) -> None:  # type: ignore[no-untyped-def]
    stdin('{"location": "Oslo", "days": 3}')
    assert gathered(["-", "location=Valletta"]) == {"location": "Valletta", "days": 3}


def test_standard_input_is_left_alone_where_words_say_everything(stdin) -> None:  # type: ignore[no-untyped-def]
    stdin("this is not JSON")
    assert gathered(["location=Oslo"]) == {"location": "Oslo"}


@pytest.mark.parametrize(("text", "said"), [("[1]", "a JSON list, not an object"), ("{", "not JSON")])
def test_standard_input_that_cannot_join_the_words_is_refused(stdin, text: str, said: str) -> None:  # type: ignore[no-untyped-def]
    stdin(text)
    with pytest.raises(click.UsageError, match=said):
        gathered(["-", "a=1"])


def test_a_pipe_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as pipe:
        pipe.write('{"a": 1}')
    with os.fdopen(reading) as file:
        monkeypatch.setattr("sys.stdin", file)
        assert gathered([]) == '{"a": 1}'


def test_an_empty_standard_input_means_no_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        assert gathered([]) == {}
    monkeypatch.setattr("sys.stdin", io.StringIO("ignored: no file behind it"))
    assert gathered([]) == {}


@pytest.mark.parametrize(
    ("text", "then"),
    [
        ("30s", NOW - timedelta(seconds=30)),
        ("15m", NOW - timedelta(minutes=15)),
        ("2h", NOW - timedelta(hours=2)),
        ("7d", NOW - timedelta(days=7)),
        ("2026-01-31T09:00+00:00", datetime(2026, 1, 31, 9, tzinfo=UTC)),
    ],
)
def test_a_moment_is_a_span_before_now_or_a_date(text: str, then: datetime) -> None:
    assert moment(text, NOW) == then


@given(st.text())
def test_a_moment_that_cannot_be_read_is_refused_and_nothing_else_happens(text: str) -> None:
    try:
        found = moment(text, NOW)
    except ValueError:
        return
    assert found.tzinfo is not None


@pytest.mark.parametrize("text", ["", "5", "d", "-1d", "99999999999d", "yesterday", "1y"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        moment(text, NOW)


@pytest.mark.parametrize(
    ("requirement", "dist"),
    [
        ("Chalie_Ability.Weather", "chalie-ability-weather"),
        ("chalie[standard]>=0.1", "chalie"),
        ("thing @ https://example.org/thing-1.0.tar.gz", "thing"),
        ("dist/chalie_ability_weather-0.1.0-py3-none-any.whl", "chalie-ability-weather"),
        ("https://example.org/x_y-2.0-py3-none-any.whl#sha256=00", "x-y"),
        ("downloads/x-y-2.0.tar.gz", "x-y"),
        ("git+https://example.org/thing.git", None),
        ("broken.whl", None),
        ("", None),
    ],
)
def test_the_distribution_of_a_requirement_is_told_from_its_words(requirement: str, dist: str | None) -> None:
    assert distribution_of(requirement) == dist


def test_the_distribution_of_a_folder_is_told_from_its_project_file(tmp_path: Path) -> None:
    assert distribution_of(str(tmp_path)) is None
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "My.Tool"\n')
    assert distribution_of(str(tmp_path)) == "my-tool"
    assert distribution_of(f"{tmp_path}[extra]") == "my-tool"


@given(st.text())
def test_no_requirement_makes_the_look_up_fail(requirement: str) -> None:
    distribution_of(requirement)


def test_every_error_code_has_an_exit_code_of_the_table() -> None:
    assert {exits.of(code) for code in CODES} <= set(exits.EXITS)
    assert exits.of(None) == exits.OK
    assert exits.of("an-abilitys-own-code") == exits.FAILED


def test_the_kinds_of_exit_codes_name_real_error_codes() -> None:
    assert set(exits._KINDS) <= set(CODES)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_file_and_a_line_of_help_and_a_first_sentence(name: str) -> None:
    context = click.Context(program, info_name="chalie")
    command = program.get_command(context, name)  # type: ignore[attr-defined]
    assert command.name == name
    assert command.help.splitlines()[0].rstrip().endswith((".", ":")) or "\n" in command.help
    assert COMMANDS[name].endswith(".")


READING = ("list", "show", "find", "index", "doctor", "skills", "trail", "call")


@pytest.mark.parametrize("name", [*READING, "permissions list", "approvers list"])
def test_every_reading_command_takes_json(name: str) -> None:
    context = click.Context(program, info_name="chalie")
    command: click.Command = program
    for word in name.split():
        assert isinstance(command, click.Group)
        found = command.get_command(context, word)
        assert found is not None
        command = found
    assert any("--json" in each.opts for each in command.params)


def test_json_goes_out_in_ascii_where_the_terminal_can_carry_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="ascii", write_through=True))
    output.emit({"text": "snö \ud800"})
    assert json.loads(raw.getvalue()) == {"text": "snö \ud800"}


def test_a_table_in_a_pipe_is_aligned_and_shows_what_would_steer_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    output.table(("name", "summary"), [["a", "red \x1b[31m and \u202e back"], ["longer", None]])
    assert capsys.readouterr().out.splitlines() == [
        "NAME    SUMMARY",
        "a       red \\u001b[31m and \\u202e back",
        "longer",
    ]


def test_a_wrong_word_is_a_usage_error_with_its_own_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["find"]) == exits.USAGE
    assert "Missing argument 'ENTRY...'" in capsys.readouterr().err
    assert run(["list", "--nonsense"]) == exits.USAGE


def test_the_version_is_the_same_on_both_roads(capsys: pytest.CaptureFixture[str]) -> None:
    from chalie import __version__
    from chalie.cli.main import main

    assert main(["--version"]) == exits.OK
    assert main(["-V"]) == exits.OK
    assert main(["--home", "/nowhere", "--version"]) == exits.OK
    assert capsys.readouterr().out.splitlines() == [f"chalie {__version__}"] * 3
