"""The production solver."""
