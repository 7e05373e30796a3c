"""Which part of a long sweep the test command runs; `pytest -m long` runs the rest, and CI both."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def thinned(cases: Iterable[Any], every: int) -> list[Any]:
    """The cases of a sweep, all but every k-th of them marked as long.

    >>> [getattr(case, "values", case) for case in thinned("abcd", 2)]
    ['a', ('b',), 'c', ('d',)]
    """
    return [case if k % every == 0 else in_long(case) for k, case in enumerate(cases)]


def in_long(case: Any) -> Any:
    """One case of a sweep, marked as long."""
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.long)
