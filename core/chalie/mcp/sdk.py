"""The MCP SDK, which comes with the extra `chalie[mcp]`: is it there, and is it one that fits."""

from __future__ import annotations

from typing import Final

from ..errors import ChalieError

__all__ = ["require"]

_INSTALL: Final = 'python -m pip install "chalie[mcp]"'
#: the major version whose interface is used here.
_MAJOR: Final = "2"


def require() -> None:
    """Make sure that the SDK can be imported, without importing it.

    Raises:
        ChalieError: `extra-missing`: it is not installed, or in a version that does not fit.
    """
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version("mcp")
    except PackageNotFoundError:
        raise ChalieError(f"MCP needs the extra: {_INSTALL}", code="extra-missing") from None
    if found.partition(".")[0] != _MAJOR:
        raise ChalieError(
            f"MCP needs the package mcp in a version from 2 up to 3, and {found} is installed",
            code="extra-missing",
            hint=_INSTALL,
        )
