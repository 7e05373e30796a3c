"""How long the rest takes, as a solver's gap falls."""

from __future__ import annotations

import io
import re
from types import SimpleNamespace

import pytest

from llr_cvx.progress import Descent


def step(iteration: int, gap: float, seconds: float) -> SimpleNamespace:
    return SimpleNamespace(iteration=iteration, best=1.0, dual=1.0 - gap, seconds=seconds)


def test_nothing_is_said_in_the_first_seconds() -> None:
    stream = io.StringIO()
    told = Descent(1e-8, stream)
    for k in range(1, 9):
        told(step(k, 10.0**-k, k / 10))
    assert stream.getvalue() == ""


def test_the_time_left_follows_from_the_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("llr_cvx.progress.time.monotonic", lambda: now)
    stream = io.StringIO()
    told = Descent(1e-8, stream)
    for k in range(1, 9):
        now = 2.0 * (k - 1)
        told(step(k, 10.0**-k, now))
    lines = stream.getvalue().splitlines()
    assert lines[0] == "solving, fit 1: iteration 3, 4 s, about 10 s left"
    assert re.findall(r"iteration (\d)", stream.getvalue()) == ["3", "6"]  # not every step
    now = 30.0
    told(step(1, 0.1, 0.0))
    assert "fit 2: iteration 1, 30 s" in stream.getvalue()
