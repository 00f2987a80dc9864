"""A policy that limits how often a permission is used."""
