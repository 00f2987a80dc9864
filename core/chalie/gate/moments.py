"""Moments as people write them: when something that they allow ends."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

__all__ = ["FORMS", "moment"]

#: what is taken, for messages.
FORMS: Final = "18:30, '2030-01-31 18:30' or 2030-01-31T18:30+02:00"

_TIME: Final = re.compile(r"(\d{1,2}):(\d{2})", re.ASCII)


def moment(text: str, now: datetime) -> datetime:
    """Return the moment that a person means, which is after now, with its time zone.

    Args:
        text: a time of day, whose next one is meant, or a date with a time; of this machine's zone unless it
            names another.
        now: timezone-aware.

    Raises:
        ValueError: it is none of these, or over already.
    """
    here = now.astimezone()
    day = _TIME.fullmatch(text.strip())
    try:
        if day is not None:
            found = here.replace(hour=int(day[1]), minute=int(day[2]), second=0, microsecond=0, tzinfo=None)
            if found <= here.replace(tzinfo=None):
                found += timedelta(days=1)
        elif ":" in text:
            found = datetime.fromisoformat(text.strip())
        else:
            raise ValueError(text)
        found = found.astimezone()
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{text!r} is no time such as {FORMS}") from None
    if found <= now:
        raise ValueError(f"{text!r} is over already")
    return found
