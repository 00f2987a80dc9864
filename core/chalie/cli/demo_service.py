"""A weather service on this machine, in the shape of Open-Meteo's two, for the demo to call."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

__all__ = ["PLACES", "serving"]

#: name, country, its code, region, latitude, longitude, time zone, degrees Celsius, WMO weather code.
PLACES = (
    ("Valletta", "Malta", "MT", "South Eastern", 35.89968, 14.5148, "Europe/Malta", 24.1, 0),
    ("Lisbon", "Portugal", "PT", "Lisbon District", 38.71667, -9.13333, "Europe/Lisbon", 19.6, 2),
    ("Oslo", "Norway", "NO", "Oslo County", 59.91273, 10.74609, "Europe/Oslo", 3.4, 71),
)
#: how far from a known place a forecast still is that place's, in degrees.
_NEAR = 0.5
_FIRST_DAY = date(2026, 6, 1)


@contextmanager
def serving() -> Iterator[str]:
    """Serve on a free port of the loopback address for the length of a block; yield the base address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answer) as server:
        thread = threading.Thread(target=server.serve_forever, name="demo weather service", daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = {key: values[-1] for key, values in parse_qs(url.query).items()}
        try:
            body = {"/v1/search": _search, "/v1/forecast": _forecast}[url.path](query)
        except KeyError as missing:
            self._send(400, {"error": True, "reason": f"no such path or parameter: {missing}"})
        else:
            self._send(200, body)

    def _send(self, status: int, body: Mapping[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing: the demo tells its own story."""


def _search(query: Mapping[str, str]) -> dict[str, Any]:
    wanted = query["name"].casefold()
    found = [
        {
            "id": number,
            "name": name,
            "latitude": latitude,
            "longitude": longitude,
            "country": country,
            "country_code": code,
            "admin1": region,
            "timezone": zone,
            "population": 100_000,
            "feature_code": "PPLC",
        }
        for number, (name, country, code, region, latitude, longitude, zone, _, _) in enumerate(PLACES, 1)
        if name.casefold().startswith(wanted)
    ]
    return {"results": found, "generationtime_ms": 0.1} if found else {"generationtime_ms": 0.1}


def _forecast(query: Mapping[str, str]) -> dict[str, Any]:
    latitude, longitude = float(query["latitude"]), float(query["longitude"])
    zone, degrees, code = "UTC", 15.0, 3
    for place in PLACES:
        if abs(place[4] - latitude) < _NEAR and abs(place[5] - longitude) < _NEAR:
            zone, degrees, code = place[6:]
    answer: dict[str, Any] = {"latitude": latitude, "longitude": longitude, "timezone": zone}
    answer["current"] = {"time": f"{_FIRST_DAY}T12:00", "interval": 900, "is_day": 1} | {
        name: _now(name, degrees, code) for name in query.get("current", "").split(",") if name != "is_day"
    }
    if "daily" in query:
        days = [_FIRST_DAY + timedelta(days=number) for number in range(int(query.get("forecast_days", "7")))]
        answer["daily"] = {"time": [day.isoformat() for day in days]} | {
            name: _daily(name, degrees, code, days) for name in query["daily"].split(",")
        }
    return answer


def _now(name: str, degrees: float, code: int) -> float:
    known = {
        "weather_code": code,
        "relative_humidity_2m": 60,
        "precipitation": 0.0,
        "wind_direction_10m": 315,
    }
    return degrees if "temperature" in name else known.get(name, 12)


def _daily(name: str, degrees: float, code: int, days: Sequence[date]) -> list[Any]:
    if name in ("sunrise", "sunset"):
        return [f"{day}T{'05:45' if name == 'sunrise' else '20:15'}" for day in days]
    value = {"weather_code": code, "temperature_2m_max": degrees + 3, "temperature_2m_min": degrees - 5}.get(
        name, 10
    )
    return [value] * len(days)
