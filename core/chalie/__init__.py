"""Chalie: a plugin host for the tools of AI agents."""

__version__ = "0.1.0"
