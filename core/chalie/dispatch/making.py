"""Making ready what runs: an ability's class or worker, its context and limit; and asking it about a call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from ..catalogue.descriptor import Descriptor
from .context import CallContext
from .flight import Flight
from .pool import Pool
from .refusals import Ended
from .run import Work
from .state import CancelToken, TurnState

if TYPE_CHECKING:
    from ..ability import Ability
    from ..catalogue.snapshot import Snapshot
    from ..config import Config
    from .isolation import Workers

__all__ = ["ASK_S", "Maker"]

#: seconds an ability's own `classify` or `destination` may take.
ASK_S: Final = 2.0


class Maker:
    """Makes runs out of descriptors.

    Args:
        load: gives an ability's class; raises `NotReady` where its files are not those described.
        stamp: gives the stamp of an isolated ability's package, or raises likewise.
        config: per-package options and limits.
        embed: texts -> one unit vector each.
        data_folder: distribution -> its private folder (made on first use).
        pool: where abilities are asked about calls.
    """

    def __init__(
        self,
        load: Callable[[Descriptor, Snapshot], type[Ability]],
        stamp: Callable[[Descriptor, Snapshot], str],
        config: Config,
        embed: Callable[[Sequence[str]], list[list[float]]],
        data_folder: Callable[[str], Path],
        pool: Pool,
    ) -> None:
        self._load = load
        self._stamp = stamp
        self._config = config
        self._embed = embed
        self._data_folder = data_folder
        self._pool = pool
        self._workers: Workers | None = None
        self._making = threading.Lock()
        self._options: dict[tuple[str, str, str], tuple[bool, float | None]] = {}
        self._closed = False

    def prepare(self, flight: Flight, descriptor: Descriptor, params: dict[str, Any]) -> None:
        """Give a flight its work and limit. Imports the ability's module.

        Raises:
            ChalieError: the package is not ready, set aside or cannot be imported.
        """
        state = flight.state
        context = CallContext(
            state, flight.id, descriptor.dist, flight.token, flight.progress, self._embed, self._data_folder
        )
        maker = state.internal.get(descriptor.key)
        if maker is not None:
            flight.work = Work(flight.name, None, params, context, made=maker())
            return
        isolated, flight.limit_s = self._options_of(descriptor)
        if isolated:
            stamp = self._stamp(descriptor, state.snapshot)
            remote = partial(self._run_remote, descriptor, stamp, flight.name, params, context)
            flight.work = Work(flight.name, None, params, context, remote=remote)
        else:
            flight.work = Work(flight.name, self._load(descriptor, state.snapshot), params, context)

    def asker(
        self,
        state: TurnState,
        descriptor: Descriptor,
        arguments: dict[str, Any],
        what: Literal["classify", "destination"],
    ) -> Callable[[], Any]:
        """Return what asks the ability's own `classify` or `destination`; its module is imported now."""
        token = CancelToken(state.cancel)
        context = CallContext(state, "", descriptor.dist, token, None, self._embed, self._data_folder)
        isolated, _ = self._options_of(descriptor)
        if isolated:
            stamp = self._stamp(descriptor, state.snapshot)
            return partial(self._isolation().classify, descriptor, stamp, arguments, context, ASK_S, what)
        cls = self._load(descriptor, state.snapshot)

        def ask() -> Any:
            try:
                ability = cls().bind(context)
                asked = ability.classify if what == "classify" else ability.destination
                return asked(ability.arguments_for(arguments))
            except Exception:
                raise  # it names no action and no destination, and may say why
            except BaseException:  # such as SystemExit
                return None

        return lambda: self._pool.submit(ask).result(ASK_S, token)

    def close(self) -> None:
        """End the worker processes, and start no more."""
        with self._making:
            self._closed = True
            if self._workers is not None:
                self._workers.close()

    def _run_remote(
        self,
        descriptor: Descriptor,
        stamp: str,
        name: str,
        params: dict[str, Any],
        context: CallContext,
        limit_s: float | None,
        token: CancelToken,
    ) -> Ended:
        return self._isolation().run(descriptor, stamp, name, params, context, limit_s, token)

    def _isolation(self) -> Workers:
        with self._making:
            if self._workers is None:
                from .isolation import Workers  # most hosts never isolate anything

                self._workers = Workers(self._config.limits.describe_s)
                if self._closed:
                    self._workers.close()
            return self._workers

    def _options_of(self, descriptor: Descriptor) -> tuple[bool, float | None]:
        """Return whether an ability runs in a worker process, and its time limit in seconds."""
        key = (descriptor.dist, descriptor.name, descriptor.hash)
        found = self._options.get(key)
        if found is None:
            options = self._config.package(descriptor.dist)
            isolated = descriptor.isolate if options.isolate is None else options.isolate
            limits = (options.time_limit_s, descriptor.time_limit_s, self._config.limits.call_s)
            found = isolated, next((limit for limit in limits if limit is not None), None)
            self._options[key] = found
        return found
