"""What the trail keeps of an exception: what it was and where it came from, and no values."""

from __future__ import annotations

import json

from chalie.dispatch.refusals import DETAIL_LENGTH, described


def caught(depth: int, message: str = "odd input") -> BaseException:
    def fall(left: int) -> None:
        password = "hunter2"  # noqa: F841  (it is on the frame, and must not be on the trail)
        if left:
            fall(left - 1)
        else:
            raise ValueError(message)

    try:
        fall(depth)
    except ValueError as error:
        return error
    raise AssertionError


def test_an_error_is_described_with_file_line_and_function_innermost_first() -> None:
    said = described(caught(0))
    assert said.startswith("ValueError: odd input (")
    first, second = said.partition("(")[2].rstrip(")").split(" < ")
    assert first.startswith(f"{__file__}:") and first.endswith(" in fall")
    assert second.endswith(" in caught")


def test_a_deep_traceback_is_kept_short_and_holds_no_values() -> None:
    said = described(caught(50, "x" * 10_000))
    assert said.count(" in fall") == 4
    assert "hunter2" not in said
    assert len(said) <= DETAIL_LENGTH


def test_frames_of_the_host_itself_are_left_out() -> None:
    from chalie.envelope import parse

    try:
        parse("no frame")
    except ValueError as error:
        assert "/chalie/envelope.py" not in described(error)
        assert __file__ in described(error)


def test_an_error_that_was_never_raised_is_its_type_and_message() -> None:
    assert described(KeyError("a")) == "KeyError: 'a'"
    try:
        json.loads("{")
    except ValueError as error:
        assert "decoder.py:" in described(error)
