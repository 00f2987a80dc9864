"""A shelf of links for agents on Chalie."""
