"""Judges of notebook 1, the model."""

from __future__ import annotations

from typing import Any

import numpy as np

import llr_cvx as llr
from course.exercises import accepted, close, judge, require
from course.problems import paper


@judge("1.1")
def at_the_origin(log_r: float) -> str:
    """log(n/n') for every W."""
    problem = paper()
    X = np.vstack([problem.X[:-1], np.zeros(10)])
    moved = llr.Problem(X, problem.y, problem.edges, problem.weights)
    W = np.random.default_rng(0).standard_normal(moved.shape)
    close(
        log_r,
        moved.log_ratio(W)[-1],
        "its score w·x is 0 whatever w is; what is left of log r = log(n/n') + w·x?",
    )
    return "no W changes it, since the model has no intercept"


@judge("1.2")
def swapped_labels(W: Any) -> str:
    """-W is optimal for -y."""
    p = paper()
    return accepted(llr.Problem(p.X, -p.y, p.edges, p.weights, p.lambda1, p.lambda2), W)


@judge("1.3")
def bound_on_the_weights(W: Any, bound: float) -> str:
    """lambda2 sum_i ||w_i*||_1^2 <= J(W*) <= J(W)."""
    problem = paper()
    proved = problem.objective(W) / problem.lambda2
    require(
        float(bound) >= proved * (1 - 1e-12),
        f"this W proves no bound below J(W)/λ2 = {proved:.4f}; {float(bound):.4f} may be true, but is not proved",
    )
    asked = problem.shape[0] * np.log(2) / problem.lambda2
    require(
        bound <= asked * (1 + 1e-6),
        f"proved, but {float(bound):.1f} is not as good as N log 2/λ2 = {asked:.1f}",
    )
    return f"J(W)/λ2 = {proved:.4f} bounds the sum for the optimal W"


@judge("1.4")
def other_units(lambda1: float, lambda2: float) -> str:
    """X -> 2X, lambda1 -> 2 lambda1, lambda2 -> 4 lambda2 gives W/2."""
    p = paper()
    scaled = llr.Problem(2 * p.X, p.y, p.edges, p.weights, lambda1, lambda2)
    accepted(scaled, llr.solve_fast(p, tol=1e-9).W / 2)
    return "verify accepts W/2, which gives all rows the scores they had"
