"""The weather ability against a real HTTP server: what it says, and how each failure is told."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from chalie import Context, ToolResult
from chalie_ability_weather.ability import Weather
from chalie_ability_weather.conditions import CONDITIONS, condition, direction
from chalie_ability_weather.open_meteo import service_from
from chalie_ability_weather.places import device_place
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def weather(client: Mapping[str, Any] | None = None, **params: Any) -> ToolResult:
    context = SimpleNamespace(principal="ada", conversation=None, channel="chat", client=client or {})
    result = Weather().bind(cast(Context, context)).run(params)
    assert isinstance(result, ToolResult)
    return result


def test_a_place_gets_its_current_weather_and_three_days(open_meteo: Any) -> None:
    result = weather(location="Valletta")
    assert result.status == "success"
    assert result.meta == {"source": "Open-Meteo.com"}
    assert {key: result.body[key] for key in ("location", "condition", "temperature_c")} == {
        "location": "Valletta, MT",
        "condition": "Clear",
        "temperature_c": 24.1,
    }
    assert result.body["wind_from"] == "NW"
    assert result.body["daylight"] is True
    assert (result.body["local_time"], result.body["time_zone"]) == ("2026-05-04T12:15", "Europe/Malta")
    assert [day["date"] for day in result.body["forecast"]] == ["2026-05-04", "2026-05-05", "2026-05-06"]
    assert result.body["forecast"][0] == {
        "date": "2026-05-04",
        "condition": "Partly cloudy",
        "high_c": 27.3,
        "low_c": 19.8,
        "rain_chance_percent": 5,
        "precipitation_mm": 0.0,
        "wind_max_kmh": 18.0,
        "sunrise": "2026-05-04T06:01",
        "sunset": "2026-05-04T19:54",
    }
    assert "other_places_of_that_name" not in result.body


def test_no_days_means_current_conditions_only(open_meteo: Any) -> None:
    assert "forecast" not in weather(location="Valletta", days=0).body
    assert "daily" not in open_meteo.requests[-1][1]


def test_as_many_days_as_asked_for_are_given(open_meteo: Any) -> None:
    assert len(weather(location="Valletta", days=7).body["forecast"]) == 7


def test_imperial_units_are_asked_for_and_named(open_meteo: Any) -> None:
    body = weather(location="Valletta", units="imperial").body
    assert body["temperature_f"] == 75.4
    assert "temperature_c" not in body
    query = open_meteo.requests[-1][1]
    assert [query[f"{name}_unit"] for name in ("temperature", "wind_speed", "precipitation")] == [
        "fahrenheit",
        "mph",
        "inch",
    ]


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Paris, Texas", "Paris, Texas, US"),
        ("Paris, TX", "Paris, Texas, US"),
        ("paris , KY , USA", "Paris, Kentucky, US"),
        ("Paris, France", "Paris, Île-de-France, FR"),
        ("Paris, fr", "Paris, Île-de-France, FR"),
        ("London, UK", "London, GB"),
        ("London, United", "London, GB"),
    ],
)
def test_a_country_or_region_chooses_among_places_of_one_name(open_meteo: Any, text: str, label: str) -> None:
    assert weather(location=text).body["location"] == label


def test_other_places_of_the_name_are_named_so_that_the_model_can_correct_itself(open_meteo: Any) -> None:
    body = weather(location="Paris").body
    assert body["location"] == "Paris, Île-de-France, FR"
    assert body["other_places_of_that_name"] == ["Paris, Texas, US", "Paris, Kentucky, US"]


def test_coordinates_need_no_search(open_meteo: Any) -> None:
    assert weather(location="35.9, -14.5").body["location"] == "35.9, -14.5"
    assert [path for path, _ in open_meteo.requests] == ["/v1/forecast"]


@pytest.mark.parametrize(
    "client",
    [
        {"latitude": 35.9, "longitude": 14.5},
        {"location": {"lat": 35.9, "lon": 14.5, "city": "Valletta"}},
        {"location": "at home", "coordinates": {"latitude": 35.9, "lng": 14.5}},
    ],
)
def test_without_a_location_the_device_says_where(open_meteo: Any, client: dict[str, Any]) -> None:
    result = weather(client)
    assert result.status == "success"
    query = open_meteo.requests[-1][1]
    assert (query["latitude"], query["longitude"]) == ("35.90000", "14.50000")


@pytest.mark.parametrize(
    "client",
    [
        {},
        {"latitude": 35.9},
        {"latitude": "35.9", "longitude": "14.5"},
        {"latitude": 95, "longitude": 14.5},
        {"latitude": float("nan"), "longitude": 14.5},
        {"latitude": True, "longitude": True},
    ],
)
def test_without_location_and_position_it_asks_for_one(open_meteo: Any, client: dict[str, Any]) -> None:
    result = weather(client)
    assert (result.code, result.valid) == ("no-location", ("location",))
    assert "ask the user" in (result.hint or "")
    assert open_meteo.requests == []


@pytest.mark.parametrize("text", ["Nowhereville", "V", ", Malta", "91, 0", "0, 181"])
def test_an_unknown_place_is_told_with_a_way_on(open_meteo: Any, text: str) -> None:
    result = weather(location=text)
    assert result.code == "unknown-place"
    assert result.hint


def test_a_wrong_country_lists_the_places_there_are(open_meteo: Any) -> None:
    result = weather(location="Paris, Spain")
    assert result.code == "unknown-place"
    assert result.message == "no Paris was found in Spain"
    assert result.valid == ("Paris, Île-de-France, FR", "Paris, Texas, US", "Paris, Kentucky, US")


def test_no_network_is_an_error_that_names_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused at once
        monkeypatch.setenv("CHALIE_WEATHER_URL", f"http://127.0.0.1:{taken.getsockname()[1]}")
        result = weather(location="Valletta")
    assert result.code == "unreachable"
    assert result.message.startswith("the geocoding service at 127.0.0.1:")
    assert "do not retry at once" in (result.hint or "")


@pytest.mark.parametrize("path", ["/v1/search", "/v1/forecast"])
def test_a_service_that_hangs_is_given_up_in_time(
    open_meteo: Any, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    open_meteo.stuck.add(path)
    monkeypatch.setenv("CHALIE_WEATHER_TIMEOUT_S", "0.2")
    result = weather(location="Valletta")
    assert result.code == "unreachable"
    assert "did not answer within 0.2 s" in result.message


def test_a_service_that_trickles_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    stop = threading.Event()

    def trickle(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while not stop.wait(0.02):
                try:
                    connection.sendall(b" ")
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=trickle, args=(listener,))
        thread.start()
        monkeypatch.setenv("CHALIE_WEATHER_URL", f"http://127.0.0.1:{listener.getsockname()[1]}")
        monkeypatch.setenv("CHALIE_WEATHER_TIMEOUT_S", "0.3")
        result = weather(location="Valletta")
        stop.set()
        thread.join()
    assert "did not answer within 0.3 s" in result.message


@pytest.mark.parametrize("path", ["/v1/search", "/v1/forecast"])
@pytest.mark.parametrize(
    "body",
    [
        b"<html>Please log in</html>",
        b"",
        b"\xff\xfe\x00",
        b"null",
        b"[]",
        b'{"results": 7, "current": 7}',
        b'{"results": [7], "current": {}}',
        b'{"results": [{"name": "Valletta"}], "current": {"temperature_2m": "warm"}}',
        b'{"results": [{"name": "V", "latitude": 1e999, "longitude": 0}]}',
        b"[" * 100_000,
        b" " * 2_000_000 + b"{}",
        b'{"current": {"temperature_2m": NaN}}',
        b'{"results": [{"name": "V", "latitude": 1%s, "longitude": 0}]}' % (b"0" * 400),
    ],
    ids=lambda body: repr(body[:24]),
)
def test_a_bad_answer_is_told_as_one(open_meteo: Any, path: str, body: bytes) -> None:
    open_meteo.say(path, body)
    result = weather(location="Valletta")
    assert result.code == "bad-answer", result
    assert result.hint


def test_an_answer_without_a_forecast_is_bad_only_where_one_was_asked_for(open_meteo: Any) -> None:
    open_meteo.say("/v1/forecast", {"current": {"temperature_2m": 20.0}, "daily": {"time": []}})
    assert weather(location="Valletta").code == "bad-answer"
    assert weather(location="Valletta", days=0).body == {"location": "Valletta, MT", "temperature_c": 20.0}


def test_fields_the_service_leaves_empty_are_left_out(open_meteo: Any) -> None:
    daily = {"time": ["2026-05-04"], "temperature_2m_max": [None], "weather_code": [3], "sunrise": []}
    open_meteo.say(
        "/v1/forecast", {"current": {"temperature_2m": 20, "wind_speed_10m": None}, "daily": daily}
    )
    body = weather(location="Valletta").body
    assert body["forecast"] == [{"date": "2026-05-04", "condition": "Overcast"}]
    assert "wind_kmh" not in body


@pytest.mark.parametrize(
    ("status", "code", "hint"),
    [
        (500, "service-error", "try once more in a minute"),
        (503, "service-error", "try once more in a minute"),
        (400, "request-refused", "do not repeat the call unchanged"),
        (401, "request-refused", "API key"),
        (302, "bad-answer", "login page"),
    ],
)
def test_a_refusal_has_its_own_code_and_repeats_the_service_s_reason(
    open_meteo: Any, status: int, code: str, hint: str
) -> None:
    open_meteo.say("/v1/forecast", {"error": True, "reason": "because\n of that"}, status, Location="/login")
    result = weather(location="Valletta")
    assert result.code == code
    assert hint in (result.hint or "")
    assert f"HTTP {status}" in result.message
    if status >= 400:
        assert result.message.endswith(": because of that")


def test_too_many_requests_say_how_long_to_wait(open_meteo: Any) -> None:
    reason = "Minutely API request limit exceeded. Please try again in one minute."
    open_meteo.say("/v1/search", {"error": True, "reason": reason}, 429, Retry_After="60")
    result = weather(location="Valletta")
    assert (result.code, result.meta) == ("rate-limited", {"retry_after_s": 60})
    assert reason in result.message
    assert "wait at least a minute" in (result.hint or "")


@pytest.mark.parametrize("url", ["ftp://example.org", "example.org", "http://", "http://[::1"])
def test_a_wrong_address_in_the_environment_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("CHALIE_WEATHER_GEOCODING_URL", url)
    result = weather(location="Valletta")
    assert result.code == "bad-setting"
    assert "CHALIE_WEATHER_GEOCODING_URL" in (result.hint or "")


@pytest.mark.parametrize("text", ["soon", "0", "-1", "inf", "nan"])
def test_a_wrong_time_limit_names_the_variable(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("CHALIE_WEATHER_TIMEOUT_S", text)
    assert "CHALIE_WEATHER_TIMEOUT_S" in (weather(location="Valletta").hint or "")


def test_an_api_key_is_sent_and_never_shown(open_meteo: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHALIE_WEATHER_API_KEY", "s3cret")
    open_meteo.say("/v1/forecast", b"nonsense", 401)
    result = weather(location="Valletta")
    assert [query["apikey"] for _, query in open_meteo.requests] == ["s3cret", "s3cret"]
    assert "s3cret" not in repr(result)


def test_each_address_can_be_set_alone() -> None:
    service = service_from({"CHALIE_WEATHER_URL": "http://a", "CHALIE_WEATHER_FORECAST_URL": "http://b"})
    assert (service.forecast_url, service.geocoding_url) == ("http://b", "http://a")
    assert service_from({}).forecast_url == "https://api.open-meteo.com"


def test_describing_it_imports_no_network_library() -> None:
    source = str(Path(__file__).parents[1] / "src")
    script = (
        f"import sys; sys.path.append({source!r}); from chalie_ability_weather.ability import Weather; "
        "w = Weather(); "
        "w.name(), w.summary(), w.examples(), w.search_tooltip(), w.parameters(); "
        "print([name for name in ('httpx', 'httpcore', 'ssl', 'asyncio') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_its_facts_are_accepted_by_the_host() -> None:
    from chalie.ability import facts

    described = facts(Weather(), dist="chalie-ability-weather", dist_version="0.1.0", target="x:Weather")
    assert described["name"] == "weather"
    assert len(described["examples"]) == 8
    assert str(described["side_effect"]) == "read"


def test_every_code_of_the_table_has_words_and_others_keep_their_number() -> None:
    assert len(CONDITIONS) == 28
    assert (condition(0), condition(99.0), condition(4)) == (
        "Clear",
        "Thunderstorm with heavy hail",
        "WMO code 4",
    )
    assert [condition(value) for value in (None, True, "3", 1e999, 10**400)] == [None] * 5
    assert [direction(value) for value in (0, 44, 359, 225, None, 1e999)] == [
        "N",
        "NE",
        "N",
        "SW",
        None,
        None,
    ]


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["location", "latitude", "longitude", "lat", "lon", "city"]), inner)
    ),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    client=st.dictionaries(st.sampled_from(["location", "coordinates", "latitude", "longitude"]), json_values)
)
def test_no_telemetry_makes_it_raise_or_leave_the_map(client: dict[str, Any]) -> None:
    place = device_place(client)
    assert place is None or (-90 <= place.latitude <= 90 and -180 <= place.longitude <= 180)
