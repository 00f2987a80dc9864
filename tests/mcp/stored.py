"""What a home knows of a server without anything being started: its entry and its last listing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from chalie.build import build
from chalie.catalogue.servers import Availability, Listing, note_availability, store_listing
from chalie.config import Config


def tool(name: str = "search", description: str = "Search the web.", **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    return {"name": name, "description": description, "inputSchema": schema, **more}


def configure(home: Path, servers: Mapping[str, Any]) -> None:
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    (home / "mcp.json").write_text(json.dumps({"mcpServers": dict(servers)}), encoding="utf-8")


def listed(home: Path, slug: str, tools: Iterable[Any], **facts: Any) -> None:
    """Keep a listing as a client that reached the server would have."""
    known = {"server": {"name": slug, "version": "1.0"}, "protocol": "2025-11-25", "fetched_at": 1.0}
    store_listing(home, slug, Listing(**{**known, "tools": tuple(tools), **facts}))
    note_availability(home, slug, Availability("ok"))


def known(home: Path, **servers: Iterable[Any]) -> None:
    """Configure servers by slug, each with the tools it last listed, and have the catalogue hold them."""
    configure(home, {slug: {"command": f"{slug}-server"} for slug in servers})
    for slug, tools in servers.items():
        listed(home, slug, tools)
    built(home)


def built(home: Path) -> None:
    """Bring the catalogue up to date in this process, which saves starting another one for it."""
    build(Config.load(home), quiet_s=0.0)
