"""Playbooks: one folder with a SKILL.md each. There is no code here; the host reads the files."""

__version__ = "0.1.0"
