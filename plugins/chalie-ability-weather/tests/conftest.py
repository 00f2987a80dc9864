"""A real HTTP server shaped like Open-Meteo, and a context like the host's."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

# The ability is tested from its source; it is installed only where a test is about installing.
sys.path.append(str(Path(__file__).parents[1] / "src"))

PLACES: list[dict[str, Any]] = [
    {"id": 2562305, "name": "Valletta", "latitude": 35.89968, "longitude": 14.5148, "elevation": 53.0,
     "feature_code": "PPLC", "country_code": "MT", "admin1": "Il-Belt Valletta", "timezone": "Europe/Malta",
     "population": 6794, "country": "Malta"},
    {"id": 2988507, "name": "Paris", "latitude": 48.85341, "longitude": 2.3488, "country_code": "FR",
     "admin1": "Île-de-France", "timezone": "Europe/Paris", "country": "France"},
    {"id": 4717560, "name": "Paris", "latitude": 33.66094, "longitude": -95.55551, "country_code": "US",
     "admin1": "Texas", "timezone": "America/Chicago", "country": "United States"},
    {"id": 4303602, "name": "Paris", "latitude": 38.2098, "longitude": -84.25299, "country_code": "US",
     "admin1": "Kentucky", "timezone": "America/New_York", "country": "United States"},
    {"id": 2643743, "name": "London", "latitude": 51.50853, "longitude": -0.12574, "country_code": "GB",
     "admin1": "England", "timezone": "Europe/London", "country": "United Kingdom"},
]  # fmt: skip


def forecast(query: Mapping[str, str]) -> dict[str, Any]:
    """Answer as the forecast service does: only the variables asked for, in the units asked for."""
    values = {
        "temperature_2m": 24.1, "apparent_temperature": 25.0, "relative_humidity_2m": 61,
        "precipitation": 0.0, "cloud_cover": 12, "wind_speed_10m": 14.4, "wind_gusts_10m": 23.0,
        "weather_code": 0, "wind_direction_10m": 315, "is_day": 1,
    }  # fmt: skip
    daily: dict[str, list[Any]] = {
        "temperature_2m_max": [27.3], "temperature_2m_min": [19.8], "precipitation_probability_max": [5],
        "precipitation_sum": [0.0], "wind_speed_10m_max": [18.0], "weather_code": [2],
        "sunrise": ["2026-05-04T06:01"], "sunset": ["2026-05-04T19:54"],
    }  # fmt: skip
    if query.get("temperature_unit") == "fahrenheit":
        values["temperature_2m"] = 75.4
    answer: dict[str, Any] = {
        "latitude": float(query["latitude"]),
        "longitude": float(query["longitude"]),
        "generationtime_ms": 0.05,
        "utc_offset_seconds": 7200,
        "timezone": "Europe/Malta",
        "timezone_abbreviation": "GMT+2",
        "elevation": 53.0,
        "current": {"time": "2026-05-04T12:15", "interval": 900}
        | {name: values[name] for name in query["current"].split(",")},
    }
    if "daily" in query:
        days = int(query["forecast_days"])
        answer["daily"] = {"time": [f"2026-05-{4 + day:02}" for day in range(days)]} | {
            name: daily[name] * days for name in query["daily"].split(",")
        }
    return answer


def search(query: Mapping[str, str]) -> dict[str, Any]:
    """Answer as the geocoding service does: without `results` where there are none."""
    wanted = query["name"].casefold()
    found = [place for place in PLACES if place["name"].casefold() == wanted][: int(query["count"])]
    return ({"results": found} if found else {}) | {"generationtime_ms": 0.1}


Answer = tuple[int, dict[str, str], bytes]


class OpenMeteo:
    """The server: what was asked, and how to make it misbehave.

    Attributes:
        url: its address.
        requests: (path, query) of every request.
        answers: path -> a function of the query that replaces the usual answer.
        stuck: path -> answered only once `release` is set.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.answers: dict[str, Callable[[dict[str, str]], Answer]] = {}
        self.stuck: set[str] = set()
        self.release = threading.Event()

    def say(self, path: str, body: Any, status: int = 200, **headers: str) -> None:
        """Answer every request to a path with this: bytes as they are, anything else as JSON."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.answers[path] = lambda _: (
            status,
            {key.replace("_", "-"): v for key, v in headers.items()},
            data,
        )

    def answer(self, path: str, query: dict[str, str]) -> Answer:
        self.requests.append((path, query))
        if path in self.stuck:
            self.release.wait(30)
        if path in self.answers:
            return self.answers[path](query)
        usual = {"/v1/search": search, "/v1/forecast": forecast}[path]
        return 200, {"Content-Type": "application/json"}, json.dumps(usual(query)).encode()


@pytest.fixture
def open_meteo(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenMeteo]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            status, headers, body = service.answer(parts.path, dict(parse_qsl(parts.query)))
            try:
                self.send_response(status)
                for key, value in headers.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except (BrokenPipeError, ConnectionResetError):
                pass  # the client gave up, as it should

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service = OpenMeteo(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    monkeypatch.setenv("CHALIE_WEATHER_URL", service.url)
    yield service
    service.release.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("URL", "FORECAST_URL", "GEOCODING_URL", "API_KEY", "TIMEOUT_S"):
        monkeypatch.delenv(f"CHALIE_WEATHER_{name}", raising=False)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
