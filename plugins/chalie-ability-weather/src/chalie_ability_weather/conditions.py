"""Weather codes in words.

Source: the "WMO Weather interpretation codes (WW)" table of Open-Meteo's documentation
(https://open-meteo.com/en/docs), a selection from code table 4677 of the World Meteorological
Organization's Manual on Codes (WMO-No. 306, Volume I.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeGuard

__all__ = ["CONDITIONS", "condition", "direction"]

#: WMO code -> words.
CONDITIONS: Final[Mapping[int, str]] = MappingProxyType(
    {
        0: "Clear",
        1: "Mainly clear",
        2: "Partly cloudy",
        3: "Overcast",
        45: "Fog",
        48: "Depositing rime fog",
        51: "Light drizzle",
        53: "Moderate drizzle",
        55: "Dense drizzle",
        56: "Light freezing drizzle",
        57: "Dense freezing drizzle",
        61: "Slight rain",
        63: "Moderate rain",
        65: "Heavy rain",
        66: "Light freezing rain",
        67: "Heavy freezing rain",
        71: "Slight snowfall",
        73: "Moderate snowfall",
        75: "Heavy snowfall",
        77: "Snow grains",
        80: "Slight rain showers",
        81: "Moderate rain showers",
        82: "Violent rain showers",
        85: "Slight snow showers",
        86: "Heavy snow showers",
        95: "Thunderstorm",
        96: "Thunderstorm with slight hail",
        99: "Thunderstorm with heavy hail",
    }
)

_POINTS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")


def condition(code: object) -> str | None:
    """Return a WMO code in words; None for no code, and the number itself for one the table lacks."""
    if not _is_number(code):
        return None
    return CONDITIONS.get(int(code), f"WMO code {int(code)}")


def direction(degrees: object) -> str | None:
    """Return the compass point the wind blows from, of eight; None for no direction.

    Args:
        degrees: clockwise from north, 0 to 360.
    """
    if not _is_number(degrees):
        return None
    return _POINTS[round(float(degrees) / 45) % 8]


def _is_number(value: object) -> TypeGuard[int | float]:
    """Tell whether a value is a number of a size that codes and degrees have; infinity and NaN are not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -1000 < value < 1000
