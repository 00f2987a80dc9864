"""A policy for Chalie."""
