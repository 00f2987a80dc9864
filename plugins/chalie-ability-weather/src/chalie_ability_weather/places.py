"""From what a person writes or a device knows to one point on the map."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from .open_meteo import Service, Trouble

__all__ = ["Place", "UnknownPlace", "device_place", "find", "point"]

#: places asked for, so that a qualifier ("Paris, Texas") finds one that is not the largest.
_CANDIDATES = 30
_POINT = re.compile(r"\s*([+-]?\d{1,3}(?:\.\d+)?)\s*[,; ]\s*([+-]?\d{1,3}(?:\.\d+)?)\s*")

#: what people write -> ISO 3166-1 code, where it is not the code itself.
_COUNTRIES = {"uk": "gb", "great britain": "gb", "england": "gb", "usa": "us", "america": "us", "uae": "ae"}
#: USPS abbreviation -> state, as in "Portland, OR" (USPS Publication 28, appendix B).
_STATE_LIST = (
    "al=alabama|ak=alaska|az=arizona|ar=arkansas|ca=california|co=colorado|ct=connecticut|de=delaware|"
    "dc=district of columbia|fl=florida|ga=georgia|hi=hawaii|id=idaho|il=illinois|in=indiana|ia=iowa|"
    "ks=kansas|ky=kentucky|la=louisiana|me=maine|md=maryland|ma=massachusetts|mi=michigan|mn=minnesota|"
    "ms=mississippi|mo=missouri|mt=montana|ne=nebraska|nv=nevada|nh=new hampshire|nj=new jersey|"
    "nm=new mexico|ny=new york|nc=north carolina|nd=north dakota|oh=ohio|ok=oklahoma|or=oregon|"
    "pa=pennsylvania|ri=rhode island|sc=south carolina|sd=south dakota|tn=tennessee|tx=texas|ut=utah|"
    "vt=vermont|va=virginia|wa=washington|wv=west virginia|wi=wisconsin|wy=wyoming"
)
_STATES = dict(pair.split("=") for pair in _STATE_LIST.split("|"))


class UnknownPlace(Exception):
    """No place of that name, or none with that qualifier.

    Args:
        message: one sentence for the model.
        hint: the next step.
        valid: places of that name that do exist.
    """

    def __init__(self, message: str, *, hint: str, valid: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.valid = tuple(valid)


@frozen
class Place:
    """A point with a label.

    Attributes:
        label: for people: `Valletta, MT`.
        latitude: degrees north, WGS84.
        longitude: degrees east, WGS84.
        others: labels of other places with the same name, larger ones first.
    """

    label: str
    latitude: float
    longitude: float
    others: tuple[str, ...] = ()


def point(text: str) -> Place | None:
    """Return the place of a pair like `35.9, 14.5`; None for anything else.

    Raises:
        UnknownPlace: a pair that is not on the map.
    """
    match = _POINT.fullmatch(text)
    if match is None:
        return None
    latitude, longitude = float(match[1]), float(match[2])
    if not _on_map(latitude, longitude):
        raise UnknownPlace(
            f"{text.strip()} is not on the map",
            hint="latitude comes first, from -90 to 90, then longitude, from -180 to 180",
        )
    return Place(_coordinates(latitude, longitude), latitude, longitude)


def device_place(client: Mapping[str, Any]) -> Place | None:
    """Return where the user's device says it is, or None.

    Args:
        client: the turn's client telemetry: `latitude` and `longitude` (or `lat` and `lon`) in degrees,
            at the top or under `location` or `coordinates`; with `label` or `city`, if known, for display.
    """
    for found in (client.get("location"), client.get("coordinates"), client):
        if not isinstance(found, Mapping):
            continue
        latitude = _number(found.get("latitude", found.get("lat")))
        longitude = _number(found.get("longitude", found.get("lon", found.get("lng"))))
        if latitude is None or longitude is None or not _on_map(latitude, longitude):
            continue
        named = found.get("label") or found.get("city")
        label = " ".join(named.split())[:80] if isinstance(named, str) else ""
        return Place(label or _coordinates(latitude, longitude), latitude, longitude)
    return None


def find(service: Service, text: str) -> Place:
    """Return the place a person means by `Valletta`, `Valletta, Malta` or `Portland, OR`.

    Raises:
        UnknownPlace: there is none, or none with that country or region.
        Trouble: the service gave no usable answer.
    """
    name, *qualifiers = (part.strip() for part in text.split(","))
    qualifiers = [part for part in qualifiers if part]
    if len(name) < 2:  # the service finds nothing for a single letter
        raise UnknownPlace(
            f"{text.strip()[:80]!r} is no place name", hint="pass a town's name, as in 'Valletta, Malta'"
        )
    found = _results(service.places(name, _CANDIDATES))
    if not found:
        raise UnknownPlace(
            f"no place called {name[:80]!r} was found",
            hint="check the spelling, leave out street and postcode, or pass a larger town nearby",
        )
    fitting = [result for result in found if all(_fits(result, part) for part in qualifiers)]
    if not fitting:
        raise UnknownPlace(
            f"no {name[:80]} was found in {', '.join(qualifiers)[:80]}",
            hint="pass one of the places listed, or another spelling of the country or region",
            valid=list(dict.fromkeys(_label(result, full=True) for result in found))[:5],
        )
    best = fitting[0]
    namesakes = [result for result in found if result["name"].casefold() == best["name"].casefold()]
    label = _label(best, full=len(namesakes) > 1)
    others = dict.fromkeys(_label(result, full=True) for result in namesakes if result in fitting[1:])
    return Place(
        label, best["latitude"], best["longitude"], tuple(other for other in others if other != label)[:4]
    )


def _results(answer: Any) -> list[dict[str, Any]]:
    """Return the usable results. No `results` key is how the service says that there are none."""
    found = answer.get("results", []) if isinstance(answer, dict) else None
    usable: list[dict[str, Any]] = []
    for result in found if isinstance(found, list) else ():
        if not isinstance(result, dict) or not isinstance(result.get("name"), str):
            continue
        latitude, longitude = _number(result.get("latitude")), _number(result.get("longitude"))
        if latitude is not None and longitude is not None and _on_map(latitude, longitude):
            usable.append({**result, "latitude": latitude, "longitude": longitude})
    if not isinstance(found, list) or (found and not usable):
        raise Trouble(
            "the geocoding service answered in a form this tool does not know",
            code="bad-answer",
            hint="its interface may have changed; tell the user to upgrade chalie-ability-weather",
        )
    return usable


def _fits(result: Mapping[str, Any], qualifier: str) -> bool:
    wanted = qualifier.casefold().strip(". ")
    code = str(result.get("country_code", "")).casefold()
    names = {str(result.get(key, "")).casefold() for key in ("country", "admin1", "admin2", "admin3")} - {""}
    if wanted in names or wanted == code or _COUNTRIES.get(wanted) == code:
        return True
    if code == "us" and _STATES.get(wanted) in names:
        return True
    return len(wanted) > 3 and any(name.startswith(wanted) for name in names)


def _label(result: Mapping[str, Any], *, full: bool) -> str:
    region = result.get("admin1") if full else None
    country = result.get("country_code") or result.get("country")
    parts = [result["name"], region if region != result["name"] else None, country]
    return ", ".join(str(part) for part in parts if part)


def _coordinates(latitude: float, longitude: float) -> str:
    return f"{latitude:.4g}, {longitude:.4g}" if abs(longitude) < 100 else f"{latitude:.4g}, {longitude:.5g}"


def _on_map(latitude: float, longitude: float) -> bool:
    return -90 <= latitude <= 90 and -180 <= longitude <= 180


def _number(value: object) -> float | None:
    """Return degrees; None for what is no number or far off the map (also the ones no float can hold)."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -360 <= value <= 360:
        return None
    return float(value)
