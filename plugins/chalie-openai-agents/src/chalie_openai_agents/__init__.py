"""Chalie's tools in agents of the OpenAI Agents SDK."""

try:
    import agents as _framework
except ModuleNotFoundError as error:
    if error.name != "agents":
        raise
    raise ImportError(
        'chalie-openai-agents needs the Agents SDK: python -m pip install "openai-agents>=0.24,<1"'
    ) from None

from .agent import ChalieAgent
from .running import Chalie

__all__ = ["Chalie", "ChalieAgent"]

del _framework
