"""Chalie's tools in Pydantic AI agents."""

try:
    import pydantic_ai as _framework
except ModuleNotFoundError as error:
    if error.name != "pydantic_ai":
        raise
    raise ImportError(
        'chalie-pydantic-ai needs Pydantic AI: python -m pip install "pydantic-ai-slim>=2.60,<3"'
    ) from None

from .capability import Chalie
from .toolset import ChalieToolset

__all__ = ["Chalie", "ChalieToolset"]

del _framework
