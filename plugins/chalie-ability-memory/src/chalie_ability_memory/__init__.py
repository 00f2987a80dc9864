"""The memory ability for Chalie: what an agent was told, kept on this machine, per principal."""

__version__ = "0.1.0"
