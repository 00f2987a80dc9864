"""A clock for tests: the code of packages sees it, everything else keeps the real time."""

from __future__ import annotations

import datetime as datetimes
import sys
import time as times
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any, Final

__all__ = ["Clock", "ticking"]

_Time: Final = times.time
_TimeNs: Final = times.time_ns
_Datetime: Final = datetime
_Date: Final = date
#: the clock in force; read by what stands in for the real functions, which modules may keep for good.
_now: list[Clock] = []


class Clock:
    """A time that stands still until it is moved.

    What `time.time`, `time.time_ns`, `datetime.now`, `datetime.utcnow`, `datetime.today` and `date.today` say
    to the modules it reaches. `time.monotonic` and `time.sleep` stay real, as does all of a worker process.

    Args:
        start: a moment with a time zone.
        modules: top-level import names whose code sees this time.
    """

    def __init__(self, start: datetime, modules: Collection[str] = ()) -> None:
        self._moment = _aware(start)
        self._modules = set(modules)

    def now(self) -> datetime:
        """Return the moment it shows, in UTC."""
        return self._moment

    def time(self) -> float:
        """Return the moment it shows in seconds since 1970."""
        return self._moment.timestamp()

    def set(self, moment: datetime | str) -> None:
        """Set it to a moment with a time zone, or to its ISO form as in `2026-05-04T12:00:00+02:00`."""
        self._moment = _aware(_Datetime.fromisoformat(moment) if isinstance(moment, str) else moment)

    def move(self, **by: float) -> None:
        """Move it on, by what `timedelta` takes: `clock.move(hours=3)`."""
        self._moment += timedelta(**by)

    def reach(self, *modules: str) -> None:
        """Let the code of further modules see it, by top-level import name."""
        self._modules.update(modules)

    def _reaches(self, name: object) -> bool:
        return isinstance(name, str) and name.partition(".")[0] in self._modules


def _aware(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError(f"{moment} has no time zone; say which one, as in 2026-05-04T12:00:00+00:00")
    return moment.astimezone(UTC)


def _clock(depth: int = 2) -> Clock | None:
    """Return the clock in force, where the code that asks for the time sees it."""
    if not _now:
        return None
    caller = sys._getframe(depth).f_globals.get("__name__")
    return _now[-1] if _now[-1]._reaches(caller) else None


def _time() -> float:
    clock = _clock()
    return _Time() if clock is None else clock.time()


def _time_ns() -> int:
    clock = _clock()
    return _TimeNs() if clock is None else int(clock.time() * 1e6) * 1000


class _Standing(type):
    """Makes a stand-in for a class: its instances are the real class's, and so are its checks."""

    real: type

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.real)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, cls.real)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls in (_StandingDatetime, _StandingDate):
            return cls.real(*args, **kwargs)
        return super().__call__(*args, **kwargs)  # a subclass of a package's own


class _StandingDatetime(datetime, metaclass=_Standing):
    real = _Datetime

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        clock = _clock()
        if clock is None:
            return _Datetime.now(tz)
        local = clock.now().astimezone(tz)
        return local if tz is not None else local.replace(tzinfo=None)

    @classmethod
    def utcnow(cls) -> datetime:  # type: ignore[override]
        clock = _clock()
        return (_Datetime.now(UTC) if clock is None else clock.now()).replace(tzinfo=None)

    @classmethod
    def today(cls) -> datetime:  # type: ignore[override]
        clock = _clock()
        return _Datetime.today() if clock is None else clock.now().astimezone().replace(tzinfo=None)


class _StandingDate(date, metaclass=_Standing):
    real = _Date

    @classmethod
    def today(cls) -> date:  # type: ignore[override]
        clock = _clock()
        return _Date.today() if clock is None else clock.now().astimezone().date()


_STAND_INS: Final[tuple[tuple[object, object], ...]] = (
    (_Time, _time),
    (_TimeNs, _time_ns),
    (_Datetime, _StandingDatetime),
    (_Date, _StandingDate),
)


@contextmanager
def ticking(clock: Clock, patch: Callable[[Any, str, object], None]) -> Iterator[Clock]:
    """Put a clock in force for the length of the block.

    Args:
        clock: the clock.
        patch: sets an attribute and sets it back at the end of the test (`monkeypatch.setattr`).
    """
    patch(times, "time", _time)
    patch(times, "time_ns", _time_ns)
    patch(datetimes, "datetime", _StandingDatetime)
    patch(datetimes, "date", _StandingDate)
    for name, module in list(sys.modules.items()):
        if clock._reaches(name):  # it has taken the real ones by name already
            for attribute, value in list(vars(module).items()):
                for real, stand_in in _STAND_INS:
                    if value is real:
                        patch(module, attribute, stand_in)
    _now.append(clock)
    try:
        yield clock
    finally:
        _now.remove(clock)
