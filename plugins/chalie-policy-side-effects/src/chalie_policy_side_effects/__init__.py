"""A policy that judges calls by the mark they leave."""
