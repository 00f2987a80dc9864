"""Playbooks: a folder with a SKILL.md each. There is no code here; the host reads the files."""
