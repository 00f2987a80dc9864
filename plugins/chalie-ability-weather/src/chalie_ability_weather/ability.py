"""The ability `weather`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chalie import Ability, SideEffect, ToolResult

from .conditions import condition, direction
from .open_meteo import Service, Trouble, service_from
from .places import Place, UnknownPlace, device_place, find, point

__all__ = ["Weather"]

#: days Open-Meteo forecasts at most (https://open-meteo.com/en/docs, `forecast_days`).
_MOST_DAYS = 16
_USUAL_DAYS = 3

#: Open-Meteo's variable -> our field, metric and imperial. None stays out where it is unknown.
_NOW = {
    "temperature_2m": ("temperature_c", "temperature_f"),
    "apparent_temperature": ("feels_like_c", "feels_like_f"),
    "relative_humidity_2m": ("humidity_percent", "humidity_percent"),
    "precipitation": ("precipitation_mm", "precipitation_in"),
    "cloud_cover": ("cloud_percent", "cloud_percent"),
    "wind_speed_10m": ("wind_kmh", "wind_mph"),
    "wind_gusts_10m": ("gusts_kmh", "gusts_mph"),
}
_DAILY = {
    "temperature_2m_max": ("high_c", "high_f"),
    "temperature_2m_min": ("low_c", "low_f"),
    "precipitation_probability_max": ("rain_chance_percent", "rain_chance_percent"),
    "precipitation_sum": ("precipitation_mm", "precipitation_in"),
    "wind_speed_10m_max": ("wind_max_kmh", "wind_max_mph"),
    "sunrise": ("sunrise", "sunrise"),
    "sunset": ("sunset", "sunset"),
}


class Weather(Ability):
    """Current conditions and a forecast for a place, from Open-Meteo."""

    side_effect = SideEffect.READ
    latency = "medium"
    time_limit_s = 25.0
    aliases = {"place": "location", "city": "location", "forecast_days": "days", "unit": "units"}

    def name(self) -> str:
        """Return what the model calls it by."""
        return "weather"

    def summary(self) -> str:
        """Say what it does, for the model and for search."""
        return (
            "Current weather and the forecast for the coming days in any city or place: temperature, rain, "
            "wind, sunrise and sunset. Without a location it uses where the user's device is."
        )

    def examples(self) -> list[str]:
        """Return what people say who need it."""
        return [
            "what's the weather like in Valletta",
            "will it rain tomorrow",
            "do I need an umbrella or a jacket today",
            "is there a way to check the weather in another city",
            "forecast for the weekend in Lisbon",
            "how cold will it get in Oslo tonight",
            "is it windy enough to sail this afternoon",
            "when does the sun set today",
        ]

    def search_tooltip(self) -> str:
        """Return a few words for a user interface."""
        return "Weather now and forecast"

    def parameters(self) -> dict[str, Any]:
        """Return the JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": {
                "location": {
                    "type": "string",
                    "description": "A town, with country or region where the name is common: 'Valletta', "
                    "'Paris, Texas', 'Portland, OR'; or 'latitude, longitude'. Default: where the user is.",
                },
                "days": {
                    "type": "integer",
                    "minimum": 0,
                    "maximum": _MOST_DAYS,
                    "default": _USUAL_DAYS,
                    "description": "Days of forecast, today included; 0 for current conditions only.",
                },
                "units": {
                    "type": "string",
                    "enum": ["metric", "imperial"],
                    "default": "metric",
                    "description": "metric: °C, km/h, mm; imperial: °F, mph, inch.",
                },
            },
            "additionalProperties": False,
        }

    def run(self, params: Mapping[str, Any]) -> ToolResult:
        """Look the place up, then its weather."""
        imperial = params.get("units", "metric") == "imperial"
        days = int(params.get("days", _USUAL_DAYS))
        try:
            service = service_from()
            place = self._place(service, str(params.get("location") or "").strip())
            if place is None:
                return ToolResult.error(
                    "no location was given and the position of the user's device is not known",
                    code="no-location",
                    hint="ask the user which town they mean and pass it as location=",
                    valid=("location",),
                )
            answer = service.forecast(_query(place, days, imperial))
            body = _report(place, answer, days, imperial)
        except UnknownPlace as unknown:
            return ToolResult.error(
                unknown.message, code="unknown-place", hint=unknown.hint, valid=unknown.valid
            )
        except Trouble as trouble:
            return ToolResult.error(trouble.message, code=trouble.code, hint=trouble.hint, **trouble.meta)
        return ToolResult.ok(body, source="Open-Meteo.com")

    def _place(self, service: Service, text: str) -> Place | None:
        if not text:
            return device_place(self.context.client)
        return point(text) or find(service, text)


def _query(place: Place, days: int, imperial: bool) -> dict[str, str]:
    query = {
        "latitude": f"{place.latitude:.5f}",
        "longitude": f"{place.longitude:.5f}",
        "current": ",".join((*_NOW, "weather_code", "wind_direction_10m", "is_day")),
        "timezone": "auto",
    }
    if days:
        query |= {"daily": ",".join((*_DAILY, "weather_code")), "forecast_days": str(days)}
    if imperial:
        query |= {"temperature_unit": "fahrenheit", "wind_speed_unit": "mph", "precipitation_unit": "inch"}
    return query


def _report(place: Place, answer: Any, days: int, imperial: bool) -> dict[str, Any]:
    """Return the body of the result; fields the service left empty stay out.

    Raises:
        Trouble: the answer lacks what makes it an answer.
    """
    now = answer.get("current") if isinstance(answer, dict) else None
    if not isinstance(now, dict) or not isinstance(now.get("temperature_2m"), int | float):
        raise _odd("current conditions")
    body: dict[str, Any] = {"location": place.label, "condition": condition(now.get("weather_code"))}
    body |= _fields(now, _NOW, imperial)
    body["wind_from"] = direction(now.get("wind_direction_10m"))
    body["daylight"] = {0: False, 1: True}.get(now.get("is_day", -1))
    body["local_time"] = now.get("time")
    body["time_zone"] = answer.get("timezone")
    if days:
        body["forecast"] = _forecast(answer.get("daily"), imperial)
    if place.others:
        body["other_places_of_that_name"] = list(place.others)
    return {key: value for key, value in body.items() if value is not None}


def _forecast(daily: Any, imperial: bool) -> list[dict[str, Any]]:
    dates = daily.get("time") if isinstance(daily, dict) else None
    if not isinstance(dates, list) or not dates:
        raise _odd("forecast")
    rows = []
    for index, date in enumerate(dates):
        day = {
            key: values[index]
            for key, values in daily.items()
            if isinstance(values, list) and len(values) == len(dates)
        }
        row = {
            "date": date,
            "condition": condition(day.get("weather_code")),
            **_fields(day, _DAILY, imperial),
        }
        rows.append({key: value for key, value in row.items() if value is not None})
    return rows


def _fields(
    values: Mapping[str, Any], names: Mapping[str, tuple[str, str]], imperial: bool
) -> dict[str, Any]:
    return {
        ours[imperial]: values[theirs] for theirs, ours in names.items() if values.get(theirs) is not None
    }


def _odd(what: str) -> Trouble:
    return Trouble(
        f"the forecast service answered without a usable {what}",
        code="bad-answer",
        hint="try once more; if it stays so, tell the user to upgrade chalie-ability-weather",
    )
