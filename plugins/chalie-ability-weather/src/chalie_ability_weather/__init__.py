"""The weather ability for Chalie: conditions now and a forecast, from Open-Meteo."""

__version__ = "0.1.0"
