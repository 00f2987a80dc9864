"""The MCP servers of a home as the host sees them; the SDK is not imported until one is needed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ..catalogue.descriptor import Descriptor
from ..config import Config
from ..names import is_server

if TYPE_CHECKING:
    from ..ability import Ability
    from ..catalogue.snapshot import Snapshot
    from .client import Client

__all__ = ["HomeServers"]


class HomeServers:
    """Makes the one client of a host when a server's tool is first called.

    Args:
        config: home and limits.
        load: gives the class of a package's ability.
    """

    def __init__(self, config: Config, load: Callable[[Descriptor, Snapshot], type[Ability]]) -> None:
        self._config = config
        self._native = load
        self._client: Client | None = None
        self._lock = threading.Lock()

    def load(self, descriptor: Descriptor, snapshot: Snapshot) -> type[Ability]:
        """Return what runs an ability: its package's class, or what asks its server."""
        if not is_server(descriptor.dist):
            return self._native(descriptor, snapshot)
        return self.client.ability(descriptor, snapshot)

    def reach(self, tool: Descriptor) -> Mapping[str, str]:
        """Return `availability` and `reason` of a server's tool that was not reached last time."""
        if not is_server(tool.dist):
            return {}
        from ..catalogue.servers import availability

        found = availability(self._config.home, tool.namespace)
        return {} if found.reach == "ok" else {"availability": found.reach, "reason": found.reason}

    @property
    def client(self) -> Client:
        """What reaches the servers, each when it is first needed."""
        with self._lock:
            if self._client is None:
                from .client import Client

                limits = self._config.limits
                self._client = Client(
                    self._config.home, connect_s=limits.server_connect_s, call_s=limits.server_call_s
                )
            return self._client

    def close(self) -> None:
        """End every session and every program that was started."""
        if self._client is not None:
            self._client.close()
