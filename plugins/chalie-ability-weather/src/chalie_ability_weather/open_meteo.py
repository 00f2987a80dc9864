"""Open-Meteo's two services over HTTP, each failure with a code of its own.

httpx is imported when the first request is made: reading the ability's description needs no network
library, and must be quick.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from attrs import frozen

__all__ = ["FORECAST_URL", "GEOCODING_URL", "LIMIT_S", "Service", "Trouble", "service_from"]

FORECAST_URL: Final = "https://api.open-meteo.com"
GEOCODING_URL: Final = "https://geocoding-api.open-meteo.com"

#: seconds for one request; a usual one takes under half a second.
LIMIT_S: Final = 8.0
#: bytes of an answer; a real one has under 20 KiB.
_ANSWER_LIMIT = 1024 * 1024
_AGENT = "chalie-ability-weather"


class Trouble(Exception):
    """A request that gave no usable answer.

    Args:
        message: one sentence for the model.
        code: `unreachable`, `rate-limited`, `service-error`, `request-refused`, `bad-answer` or
            `bad-setting`.
        hint: the next step.
        meta: flat facts for the result.
    """

    def __init__(self, message: str, *, code: str, hint: str, **meta: Any) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = hint
        self.meta = meta


@frozen
class Service:
    """Where to ask, and for how long.

    Attributes:
        forecast_url: base address of the forecast service, without `/v1/forecast`.
        geocoding_url: base address of the geocoding service, without `/v1/search`.
        api_key: a key for Open-Meteo's commercial service, or None.
        limit_s: seconds for one request, from connecting to the last byte.
    """

    forecast_url: str = FORECAST_URL
    geocoding_url: str = GEOCODING_URL
    api_key: str | None = None
    limit_s: float = LIMIT_S

    def places(self, name: str, count: int) -> Any:
        """Ask the geocoding service for places of a name. Raises `Trouble`."""
        query = {"name": name, "count": str(count), "language": "en", "format": "json"}
        return self._answer("geocoding", self.geocoding_url, "/v1/search", query)

    def forecast(self, query: Mapping[str, str]) -> Any:
        """Ask the forecast service. Raises `Trouble`."""
        return self._answer("forecast", self.forecast_url, "/v1/forecast", query)

    def _answer(self, what: str, base: str, path: str, query: Mapping[str, str]) -> Any:
        host = _host(base, what)
        if self.api_key:
            query = {**query, "apikey": self.api_key}
        status, headers, body = self._fetched(what, host, base.rstrip("/") + path, query)
        if status != 200:
            raise _refusal(what, host, status, headers, body)
        try:
            return json.loads(body, parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            raise Trouble(
                f"the {what} service at {host} answered with something that is not JSON",
                code="bad-answer",
                hint="a proxy or login page may stand in between; try again, then tell the user",
            ) from error

    def _fetched(
        self, what: str, host: str, url: str, query: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Return (status, headers, body), read in pieces so that a trickling answer ends in time too."""
        import httpx

        deadline = time.monotonic() + self.limit_s
        body = bytearray()
        try:
            with (
                httpx.Client(timeout=self.limit_s, headers={"User-Agent": _AGENT}) as client,
                client.stream("GET", url, params=dict(query)) as response,
            ):
                for piece in response.iter_bytes():
                    body += piece
                    if len(body) > _ANSWER_LIMIT:
                        raise Trouble(
                            f"the {what} service at {host} sent over {_ANSWER_LIMIT // 1024} KiB",
                            code="bad-answer",
                            hint="a proxy or login page may stand in between; tell the user",
                        )
                    if time.monotonic() > deadline:
                        raise httpx.ReadTimeout("the answer takes too long")
                return response.status_code, response.headers, bytes(body)
        except httpx.TimeoutException as error:
            raise Trouble(
                f"the {what} service at {host} did not answer within {self.limit_s:g} s",
                code="unreachable",
                hint="try once more in a minute; if it stays so, tell the user",
            ) from error
        except httpx.DecodingError as error:
            raise Trouble(
                f"the {what} service at {host} sent an answer that cannot be decoded",
                code="bad-answer",
                hint="a proxy may stand in between; try again, then tell the user",
            ) from error
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise _bad_setting(url, what) from error
        except httpx.HTTPError as error:
            raise Trouble(
                f"the {what} service at {host} cannot be reached ({_reason(error)})",
                code="unreachable",
                hint="there may be no network; do not retry at once, tell the user the weather cannot be "
                "looked up now",
            ) from error


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON")


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text[:160] or type(error).__name__


def _host(base: str, what: str) -> str:
    try:
        parts = urlsplit(base)
        host = parts.netloc.rpartition("@")[2]
    except ValueError as error:
        raise _bad_setting(base, what) from error
    if parts.scheme not in ("http", "https") or not host:
        raise _bad_setting(base, what)
    return host


def _bad_setting(url: str, what: str) -> Trouble:
    return Trouble(
        f"the address of the {what} service, {url.rpartition('@')[2][:120]!r}, is no http(s) address",
        code="bad-setting",
        hint=f"the user has to correct CHALIE_WEATHER_URL or CHALIE_WEATHER_{what.upper()}_URL",
    )


def _refusal(what: str, host: str, status: int, headers: Mapping[str, str], body: bytes) -> Trouble:
    """Return the trouble an answer other than 200 stands for. Open-Meteo says why in `reason`."""
    said = _said(body)
    if status == 429:
        wait = headers.get("retry-after", "")
        more = {"retry_after_s": int(wait)} if wait.isdecimal() and len(wait) < 7 else {}
        return Trouble(
            f"the {what} service at {host} has had too many requests from here{said}",
            code="rate-limited",
            hint="wait at least a minute before the next call; limits are per minute, hour and day",
            **more,
        )
    if status >= 500:
        return Trouble(
            f"the {what} service at {host} failed with HTTP {status}{said}",
            code="service-error",
            hint="try once more in a minute; if it stays so, tell the user",
        )
    if 400 <= status < 500:
        return Trouble(
            f"the {what} service at {host} refused the request with HTTP {status}{said}",
            code="request-refused",
            hint="do not repeat the call unchanged; if an API key is set, the user has to check it",
        )
    return Trouble(
        f"the {what} service at {host} answered HTTP {status} instead of a result",
        code="bad-answer",
        hint="a proxy or login page may stand in between; tell the user",
    )


def _said(body: bytes) -> str:
    try:
        reason = json.loads(body)["reason"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return f": {' '.join(reason.split())[:200]}" if isinstance(reason, str) and reason.strip() else ""


def service_from(environment: Mapping[str, str] | None = None) -> Service:
    """Return the service the environment asks for.

    Args:
        environment: `CHALIE_WEATHER_URL` sets both addresses, `CHALIE_WEATHER_FORECAST_URL` and
            `CHALIE_WEATHER_GEOCODING_URL` one each, `CHALIE_WEATHER_API_KEY` the key and
            `CHALIE_WEATHER_TIMEOUT_S` the seconds for one request (default: `os.environ`).

    Raises:
        Trouble: the time limit is no number of seconds.
    """
    values = os.environ if environment is None else environment

    def value(name: str) -> str:
        return values.get(f"CHALIE_WEATHER_{name}", "").strip()

    return Service(
        forecast_url=value("FORECAST_URL") or value("URL") or FORECAST_URL,
        geocoding_url=value("GEOCODING_URL") or value("URL") or GEOCODING_URL,
        api_key=value("API_KEY") or None,
        limit_s=_seconds(value("TIMEOUT_S")) if value("TIMEOUT_S") else LIMIT_S,
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 600:
        raise Trouble(
            f"the time limit {text[:40]!r} is no number of seconds up to 600",
            code="bad-setting",
            hint="the user has to correct CHALIE_WEATHER_TIMEOUT_S",
        )
    return seconds
