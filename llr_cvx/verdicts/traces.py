"""A verdict on a sequence: does the objective fall, and are the reported values the true ones?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from llr_cvx import validation as check
from llr_cvx.arrays import FloatArray
from llr_cvx.problem import Problem
from llr_cvx.solution import first_rise


@dataclass(frozen=True, eq=False)
class TraceVerdict:
    """What was found in a trace; `str()` says it in words.

    Attributes
    ----------
    monotone : bool
        No value exceeds its predecessor by more than rtol, relatively.
    first_violation : int or None
        Index of the first value that does, or that is not a number.
    matches : bool or None
        Whether the reported values agree with the recomputed ones to rtol; None if there is nothing to compare.
    first_mismatch : int or None
    values : array
        Recomputed from the iterates where these were given, else the values as reported.
    rtol : float
    """

    monotone: bool
    first_violation: int | None
    matches: bool | None
    first_mismatch: int | None
    values: FloatArray = field(repr=False)
    rtol: float = 1e-12

    @property
    def accepted(self) -> bool:
        """Monotone, and no reported value contradicted."""
        return self.monotone and self.matches is not False

    def __str__(self) -> str:
        k, wrong = self.first_violation, self.first_mismatch
        if k is None:
            words = f"monotone: {len(self.values)} values never rise by more than {self.rtol:g} relatively"
        elif not np.isfinite(self.values[k]):
            words = f"not monotone: value {k} is {self.values[k]}"
        else:
            words = f"not monotone: value {k} rises from {self.values[k - 1]:.17g} to {self.values[k]:.17g}"
        if self.matches:
            words += "\nreported values match the recomputed ones"
        if wrong is not None:
            words += f"\nreported value {wrong} differs from the recomputed {self.values[wrong]:.17g}"
        return words


def verify_trace(
    trace: ArrayLike | Sequence[ArrayLike],
    problem: Problem | None = None,
    rtol: float = 1e-12,
    reported: ArrayLike | None = None,
) -> TraceVerdict:
    """Judge a sequence of objective values, or of iterates W.

    Parameters
    ----------
    trace : sequence
        Objective values, or matrices of shape (N, d); the latter need `problem`, and J is recomputed from them.
    problem : Problem, optional
    rtol : float
        How much a value may exceed its predecessor, and differ from the recomputed one, relatively.
    reported : sequence of float, optional
        With iterates: the values that the solver reported for them.

    Examples
    --------
    >>> verify_trace([3.0, 2.0, 2.5]).first_violation
    2
    >>> p = Problem([[1.0], [2.0]], [1, -1], [], [], lambda1=0.0, lambda2=1.0)
    >>> v = verify_trace([[[0.0], [0.0]], [[0.1], [-0.1]]], p, reported=[1.386294361, 1.0])
    >>> v.monotone, v.matches, v.first_mismatch
    (True, False, 0)
    """
    rtol = check.real_number(rtol, "rtol")
    values = _values(trace, problem)
    if problem is None and reported is not None:
        raise ValueError("reported can be compared only with iterates: pass the matrices W and their problem")
    first = _first_violation(values, rtol)
    if reported is None:
        return TraceVerdict(first is None, first, None, None, values, rtol)
    claims = _numbers(reported, "reported")
    if claims.shape != values.shape:
        raise ValueError(f"reported has {claims.size} values but there are {values.size} iterates")
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero(~(np.abs(claims - values) <= rtol * np.abs(values)))
    mismatch = int(wrong[0]) if wrong.size else None
    return TraceVerdict(first is None, first, mismatch is None, mismatch, values, rtol)


def _first_violation(values: FloatArray, rtol: float) -> int | None:
    """The first value that rises or is not a finite number."""
    found = [k for k in (first_rise(values, rtol), *np.flatnonzero(~np.isfinite(values))[:1]) if k is not None]
    return int(min(found)) if found else None


def _values(trace: ArrayLike | Sequence[ArrayLike], problem: Problem | None) -> FloatArray:
    if problem is None:
        return _numbers(trace, "trace")
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a Problem, got {type(problem).__name__}")
    if not len(trace) or np.isscalar(trace[0]):  # type: ignore[arg-type, index]
        raise ValueError("trace must hold matrices W when a problem is given; for bare values leave problem out")
    return np.array([problem.objective(W) for W in trace])  # type: ignore[union-attr]


def _numbers(values: ArrayLike | Sequence[ArrayLike], name: str) -> FloatArray:
    """A vector that may hold NaN and inf: a trace of a failing solver is judged, not refused."""
    try:
        array = np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be a sequence of numbers: {error}") from None
    if array.ndim != 1 or not array.size:
        raise ValueError(
            f"{name} must be a non-empty sequence of numbers, got shape {array.shape}; "
            "iterates W need their problem: verify_trace(iterates, problem)"
        )
    return array
