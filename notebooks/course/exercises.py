"""Exercises that check themselves: `check("1.2", answer)` says right, or what is wrong.

Truth is computed, not stored. Where the answer is a W, a dual point, a bound or a trace, the judge is that of the
package: `verify`, the certificate, `verify_trace`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import llr_cvx as llr

#: From the number of an exercise to its judge, which returns why an answer is right and raises `Wrong` otherwise.
JUDGES: dict[str, Callable[..., str]] = {}


class Wrong(Exception):
    """What is wrong with an answer."""


class Unanswered(Exception):
    """The dots are still there."""


def judge(number: str) -> Callable[[Callable[..., str]], Callable[..., str]]:
    """Register the judge of one exercise."""

    def register(function: Callable[..., str]) -> Callable[..., str]:
        JUDGES[number] = function
        return function

    return register


def check(number: str, *answers: Any) -> None:
    """Print what the judge of an exercise says about the answers."""
    print(f"{number} {opinion(number, *answers)}")


def opinion(number: str, *answers: Any) -> str:
    """One sentence: right and why, not right and why, or not answered yet."""
    import_module(f"course.judges_{number.partition('.')[0]}")
    try:
        for answer in answers:
            answered(answer)
        return f"right: {JUDGES[number](*answers)}"
    except Unanswered:
        return "not answered yet: replace the dots"
    except Wrong as fault:
        return f"not right: {fault}"
    except Exception as error:  # an answer may be anything at all
        return f"not right: the answer cannot be judged, {type(error).__name__}: {error}"


# ---- what judges share -----------------------------------------------------------------------------------


def answered(value: Any) -> Any:
    """The value, unless it is the dots: an answer, or what a function that was to be written returns."""
    if value is ...:
        raise Unanswered
    return value


def require(condition: Any, fault: str) -> None:
    """Raise unless the condition holds."""
    if not condition:
        raise Wrong(fault)


def close(answer: Any, truth: Any, fault: str, rtol: float = 1e-3) -> None:
    """Raise unless numbers agree with the computed truth, relative to its size."""
    answer, truth = np.asarray(answer, dtype=float), np.asarray(truth, dtype=float)
    require(answer.shape == truth.shape, f"expected shape {truth.shape}, got {answer.shape}")
    require(np.abs(answer - truth).max() <= rtol * max(np.abs(truth).max(), 1e-9), fault)


def accepted(problem: llr.Problem, W: Any, tol: float = 1e-6) -> str:
    """The verdict on a W that `verify` accepts; raise with the verdict otherwise."""
    verdict = llr.verify(problem, W, tol)
    words = f"verify says: {str(verdict).splitlines()[0]}"
    require(verdict.accepted, words)
    return words
