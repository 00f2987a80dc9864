"""What a package's pyproject.toml says to lint: `[tool.chalie.lint]`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, get_args

from attrs import frozen

from ..errors import ConfigError
from .parameters import Case

__all__ = ["Settings", "load"]

_KEYS: Final = ("parameters", "exceptions")


@frozen
class Settings:
    """A package's choices.

    Attributes:
        parameters: how its parameters are spelled.
        exceptions: `NAME`, `NAME.PARAMETER` or `NAME:RULE` -> the reason.
        path: the file they stand in; None where there is none.
    """

    parameters: Case = "camelCase"
    exceptions: Mapping[str, str] = MappingProxyType({})
    path: Path | None = None


def load(path: Path) -> Settings:
    """Read the settings of a pyproject.toml; a file that is not there, or says nothing, has none.

    Raises:
        ConfigError: naming the file, the key and what is expected there.
    """
    try:
        data = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        return Settings()
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    given: Any = data.get("tool", {})
    for key in ("chalie", "lint"):
        given = given.get(key, {}) if isinstance(given, Mapping) else None
    if not isinstance(given, Mapping):
        raise ConfigError(f"{path}: tool.chalie.lint must be a table")
    for key in given:
        if key not in _KEYS:
            raise ConfigError(
                f"{path}: [tool.chalie.lint] has no option {key!r}; it may be {' or '.join(_KEYS)}"
            )
    case = given.get("parameters", "camelCase")
    if case not in get_args(Case):
        raise ConfigError(f"{path}: parameters must be {' or '.join(get_args(Case))}, not {case!r}")
    exceptions = given.get("exceptions", {})
    if not isinstance(exceptions, Mapping) or not all(isinstance(why, str) for why in exceptions.values()):
        raise ConfigError(
            f"{path}: [tool.chalie.lint.exceptions] holds a name and its reason a line",
            hint='as in: file_deliver = "it hands a file over, which no other verb says"',
        )
    return Settings(case, MappingProxyType(dict(exceptions)), path)
