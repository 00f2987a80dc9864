"""Chalie's tools in LangChain agents and LangGraph graphs."""

try:
    import langchain as _langchain
    import langgraph as _langgraph
except ModuleNotFoundError as error:
    if error.name not in ("langchain", "langgraph"):
        raise
    raise ImportError(
        'chalie-langchain needs LangChain and LangGraph: python -m pip install "langchain>=1.4,<2"'
    ) from None

from .middleware import ChalieMiddleware
from .tools import tools

__all__ = ["ChalieMiddleware", "tools"]

del _langchain, _langgraph
