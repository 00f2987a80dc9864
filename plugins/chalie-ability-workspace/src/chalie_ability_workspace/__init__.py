"""Files and a shell for agents on Chalie, confined to the folders a person names."""

__version__ = "0.1.0"
