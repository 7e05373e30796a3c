"""Solutions along a path of penalties, each started from the two before and each certified."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from llr_cvx import validation as check
from llr_cvx.problem import Problem
from llr_cvx.solution import Solution
from llr_cvx.solvers.fast.solver import solve_fast

#: What is handed to `solve_fast`.
OPTIONS = {"max_iter", "time_limit", "callback", "progress"}


def regularization_path(
    problem: Problem,
    lambda1s: ArrayLike | None = None,
    lambda2: ArrayLike | None = None,
    tol: float = 1e-6,
    **options: Any,
) -> list[Solution]:
    """Solve for a sequence of lambda1 (or of lambda2), warm-started, in the order given.

    A start from the points before saves about half of the time of cold solves; most for points close together and
    upwards in lambda1, and least to a tol of 1e-9, where most of the work is at the end.

    Parameters
    ----------
    problem : Problem
        Samples and graph; its own lambdas are used where none is given.
    lambda1s : sequence of float, or float, optional
    lambda2 : float, or sequence of float, optional
        At most one of the two may be a sequence of more than one value.
    tol : float
        Certified relative gap of every point.
    **options
        max_iter, time_limit, callback and progress of `solve_fast`, for each point.

    Returns
    -------
    list of Solution, one for each value, in order.

    Examples
    --------
    >>> p = Problem([[1.0], [2.0]], [1, -1], [[0, 1]], [1.0], lambda1=0.1, lambda2=1.0)
    >>> [s.status for s in regularization_path(p, [0.01, 0.1, 1.0])]
    ['optimal', 'optimal', 'optimal']
    """
    unknown = sorted(set(options) - OPTIONS)
    if unknown:
        raise TypeError(
            f"regularization_path() has no argument {unknown[0]!r}: the penalties are lambda1s and lambda2, and "
            f"{', '.join(sorted(OPTIONS))} are handed to solve_fast"
        )
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a Problem, got {type(problem).__name__}: see Problem.from_samples")
    first = _values(lambda1s, problem.lambda1, "lambda1s")
    second = _values(lambda2, problem.lambda2, "lambda2")
    if len(first) > 1 and len(second) > 1:
        raise ValueError(
            f"lambda1s has {len(first)} values and lambda2 has {len(second)}: a path varies one of the two"
        )
    if len(second) == 1:
        second = second * len(first)
    else:
        first = first * len(second)
    solutions: list[Solution] = []
    for k, (l1, l2) in enumerate(zip(first, second, strict=True), 1):
        if options.get("progress"):
            print(f"point {k} of {len(first)}: lambda1 = {l1:g}, lambda2 = {l2:g}", file=sys.stderr)
        solutions.append(solve_fast(problem.with_lambdas(l1, l2), tol, W0=solutions[-2:] or None, **options))
    return solutions


def _values(value: ArrayLike | None, default: float, name: str) -> list[float]:
    if value is None:
        return [default]
    values = [check.real_number(v, f"every value of {name}") for v in np.atleast_1d(np.asarray(value, dtype=object))]
    if not values:
        raise ValueError(f"{name} is empty: at least one value is needed")
    return values
