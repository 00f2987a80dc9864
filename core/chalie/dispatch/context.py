"""What an ability may know and do while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from .state import CancelToken, Progress

if TYPE_CHECKING:
    from .state import TurnState

__all__ = ["CallContext"]


class CallContext:
    """The context of one call (see `chalie.ability.Context`).

    Args:
        state: the turn the call belongs to.
        call_id: the call's id, which progress is reported under.
        dist: the package whose data folder this is.
        token: cancelled when nobody waits for the result any more (a passed time limit included).
        progress: told how far the call is, or None.
        embed: texts -> one unit vector each.
        data_folder: distribution -> its private folder.
    """

    __slots__ = (
        "_call_id",
        "_client",
        "_data_folder",
        "_dist",
        "_embed",
        "_progress",
        "_token",
        "channel",
        "conversation",
        "principal",
    )

    def __init__(
        self,
        state: TurnState,
        call_id: str,
        dist: str,
        token: CancelToken,
        progress: Progress | None,
        embed: Callable[[Sequence[str]], list[list[float]]],
        data_folder: Callable[[str], Path],
    ) -> None:
        self.principal = state.principal
        self.conversation = state.conversation
        self.channel = state.channel.name
        self._client = state.client
        self._call_id = call_id
        self._dist = dist
        self._token = token
        self._progress = progress
        self._embed = embed
        self._data_folder = data_folder

    @property
    def client(self) -> Mapping[str, Any]:
        """What the client told of itself (time zone, position); a copy, so that no call changes another's."""
        return MappingProxyType(dict(self._client))

    @property
    def cancelled(self) -> bool:
        """Whether the result is not wanted any more; a long `run` looks now and then and returns early."""
        return self._token.cancelled

    @property
    def data_folder(self) -> Path:
        """The package's private folder in the home, made on first use."""
        return self._data_folder(self._dist)

    def progress(self, fraction: float | None, message: str = "") -> None:
        """Report how far the call is.

        Args:
            fraction: 0 to 1, or None where it is not known.
            message: what is being done, for people.
        """
        if self._progress is None or self._token.cancelled:
            return
        if fraction is not None:
            fraction = min(1.0, max(0.0, float(fraction)))
        try:
            self._progress(self._call_id, fraction, str(message))
        except Exception:  # a listener's mistake is not the ability's
            pass

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one unit vector for each text."""
        return self._embed(texts)
