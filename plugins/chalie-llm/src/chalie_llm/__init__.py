"""Chalie's tools for llm, as a toolbox plugin."""

try:
    import llm
except ModuleNotFoundError as error:
    if error.name != "llm":
        raise
    raise ImportError('chalie-llm needs llm: python -m pip install "llm>=0.36,<1"') from None

from collections.abc import Callable

from .chains import achain, chain
from .exchange import Held
from .toolbox import AsyncChalie, Chalie

__all__ = ["AsyncChalie", "Chalie", "Held", "achain", "chain"]


@llm.hookimpl
def register_tools(register: Callable[[type[llm.Toolbox]], None]) -> None:
    """Make `llm -T Chalie` known to llm."""
    register(Chalie)
