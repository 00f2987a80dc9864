"""How a server's process ends: in a stated time, whatever a client or a tool still does."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from typing import Final

__all__ = ["END_S", "end_soon", "on_signal"]

#: seconds after which the process is gone once its client went or a signal came.
END_S: Final = 10.0


def on_signal(stop: Callable[[], object]) -> None:
    """Have SIGTERM and SIGINT stop the running loop's server."""

    def stopped() -> None:
        end_soon()
        stop()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped)


def end_soon() -> None:
    """End this process within `END_S`, also where a thread is stuck in a write that nobody reads.

    What it started ends with it: workers read from pipes of ours, which are then closed.
    """
    last = threading.Timer(END_S, os._exit, (1,))
    last.daemon = True
    last.start()
