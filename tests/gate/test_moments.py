"""Times as people write them: the next such time, never one that is over, and nothing is guessed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from chalie.gate.moments import moment
from hypothesis import given
from hypothesis import strategies as st

NOW = datetime(2030, 5, 17, 12, 30, 20, tzinfo=UTC)


@given(st.integers(0, 23), st.integers(0, 59))
def test_a_time_of_day_is_its_next_one(hour: int, minute: int) -> None:
    found = moment(f"{hour}:{minute:02}", NOW)
    assert (found.astimezone().hour, found.minute, found.second) == (hour, minute, 0)
    assert NOW < found <= NOW + timedelta(days=1, hours=1)  # a day may have 25 hours


def test_a_date_is_of_this_zone_unless_it_names_another() -> None:
    assert moment("2030-05-18T01:00+02:00", NOW) == datetime(2030, 5, 17, 23, tzinfo=UTC)
    assert moment(" 2030-06-01 09:00 ", NOW) == datetime(2030, 6, 1, 9).astimezone()


@pytest.mark.parametrize(
    "text", ["", "soon", "24:00", "7", "12:3", "2030-06-01", "2030-02-30 10:00", "１２:00"]
)
def test_what_is_no_time_is_refused_with_how_one_looks(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no time such as 18:30, '2030-01-31 18:30' or"):
        moment(text, NOW)


@pytest.mark.parametrize("text", ["2030-05-17T12:30:20Z", "2001-01-01 00:00"])
def test_a_time_that_is_over_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is over already"):
        moment(text, NOW)
