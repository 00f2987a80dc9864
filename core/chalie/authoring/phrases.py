"""The facts of a catalogue's row as a person reads them; the same words in Markdown and on the site."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["EFFECTS", "approval", "availability", "effects", "latency", "owner"]

#: class -> what it says to a person.
EFFECTS: Final[Mapping[str, str]] = {
    "read": "reads",
    "computation": "computes",
    "write": "writes here",
    "connect": "connects an account",
    "external_write": "writes elsewhere",
    "external_send": "sends to others",
    "destructive": "destroys",
}
_LATENCIES: Final[Mapping[str, str]] = {
    "low": "low: under a second",
    "medium": "medium: some seconds",
    "high": "high: longer than that",
    "interactive": "interactive: it waits for a person",
}


def owner(row: Mapping[str, Any]) -> str:
    """Return who answers a call."""
    version = f" {row['package_version']}" if row.get("package_version") else ""
    if row.get("answered_by") == "host":
        return f"the host, {row['package']}{version}"
    if row.get("answered_by") == "mcp-server":
        return f"the MCP server {row['package'].partition(':')[2] or row['package']}{version}"
    return f"{row['package']}{version}"


def effects(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (action, class), with an empty action where the tool has one class."""
    if row.get("actions"):
        return list(row["actions"].items())
    return [("", row.get("side_effect") or "write")]


def approval(row: Mapping[str, Any]) -> str:
    """Return when a person is asked."""
    if row.get("answered_by") == "host":
        return "never: it is the host's own"
    return "always asked about" if row.get("requires_approval") else "as the person and the policies say"


def latency(row: Mapping[str, Any]) -> str:
    """Return how long a call takes."""
    return _LATENCIES.get(row.get("latency", ""), str(row.get("latency", "")))


def availability(row: Mapping[str, Any]) -> str:
    """Return how it is reached, and in what process it runs."""
    parts = ["found by search" if row.get("discoverable", True) else "only where it is pinned"]
    if row.get("isolate"):
        parts.append("in a process of its own")
    if row.get("time_limit_s") is not None:
        parts.append(f"given up after {row['time_limit_s']:g} s")
    return ", ".join(parts)
