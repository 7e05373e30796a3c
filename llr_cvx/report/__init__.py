"""Plots and the HTML page."""
