"""The arena, called from a notebook."""

from __future__ import annotations

import io
from typing import Any

from llr_cvx.arena.entries import python_entry
from llr_cvx.arena.sandbox import Limits
from llr_cvx.arena.tournament import Plan, library_cases, run_plan


def arena(*solvers: str, only: tuple[str, ...] = ("fused-some",), seconds: float = 60.0, repeats: int = 1) -> Any:
    """What `llr-cvx arena --solver ... --only ... --json FILE` writes to FILE."""
    entries = [python_entry(name) for name in solvers]
    return run_plan(Plan(entries, library_cases(only), repeats=repeats, limits=Limits(seconds)), stream=io.StringIO())
