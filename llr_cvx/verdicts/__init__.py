"""Judging a W or a trace from anywhere: the search for a dual point, and verdicts in words."""
