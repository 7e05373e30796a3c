"""LLR itself, and the max-norm test, its limit without a constant as lambda1 -> 0."""

from __future__ import annotations

import numpy as np

from llr_cvx.arrays import FloatArray
from llr_cvx.detection.ranking import selected_features
from llr_cvx.experiments.methods._base import Outcome
from llr_cvx.experiments.protocol import Protocol
from llr_cvx.problem import Problem
from llr_cvx.solution import Solution
from llr_cvx.solvers.fast.solver import solve_fast

#: Iteration limit, after which a trial is listed as failed; most take 10 to 20. A time limit would make the numbers
#: depend on the machine.
MAX_ITER = 60

#: Scores are ties if they differ by no more than this, or if such ties join them. Samples whose weights fuse have equal
#: scores at the optimum; in sets with many duplicate rows, rounding errors would order them at random and move the AUC
#: of Flare solar by 0.02.
SAME_SCORE = 1e-5


def llr(X_inlier: FloatArray, X_test: FloatArray, protocol: Protocol, rng: np.random.Generator) -> Outcome:
    """log r of each test row, Eq. (4), at the optimum of Eq. (5), with the gap that proves it."""
    problem = llr_problem(X_inlier, X_test, protocol)
    return _outcome(solve_fast(problem, tol=protocol.tol, max_iter=MAX_ITER), X_inlier)


def llr_exact(X_inlier: FloatArray, X_test: FloatArray, protocol: Protocol, rng: np.random.Generator) -> Outcome:
    """The same with the exact model and a conic solver: slow, used only to check `llr`."""
    from llr_cvx.solvers.exact import solve_exact  # CVXPY takes a second to import, and no other method needs it

    return _outcome(solve_exact(llr_problem(X_inlier, X_test, protocol), tol=protocol.tol), X_inlier)


def _outcome(solution: Solution, X_inlier: FloatArray) -> Outcome:
    n_inlier, d = X_inlier.shape
    info: dict[str, float | str] = {
        "gap": solution.certificate.relative_gap,
        "objective": solution.objective,
        "dual": solution.certificate.dual,
        "n_iter": float(solution.n_iter),
    }
    if solution.status != "optimal":
        info["failed"] = f"{solution.status}: {solution.message}"
    X, W = solution.problem.X, solution.W
    importance = np.where(selected_features(X, W), np.abs(W * X), 0.0)[n_inlier:, :d]  # without the constant
    return Outcome(tied(solution.log_ratio[n_inlier:]), info, importance)


def tied(scores: FloatArray) -> FloatArray:
    """Scores in which neighbours, in order, that differ by no more than `SAME_SCORE` are equal.

    >>> tied(np.array([0.5, 2.0, 0.500001, -np.inf, np.nan])).tolist()
    [0.5, 2.0, 0.5, -inf, nan]
    """
    order = np.argsort(scores, kind="stable")
    with np.errstate(invalid="ignore"):
        new = ~(np.diff(scores[order], prepend=np.nan) <= SAME_SCORE)
    equal = np.empty_like(scores)
    equal[order] = scores[order][new][np.cumsum(new) - 1]
    return equal


def llr_problem(X_inlier: FloatArray, X_test: FloatArray, protocol: Protocol) -> Problem:
    """Eq. (5) for the samples of one trial under a protocol."""
    width = protocol.graph_width(np.vstack([X_inlier, X_test]))
    if protocol.intercept:  # a constant feature changes no distance, hence not the graph
        X_inlier, X_test = (np.column_stack([X, np.ones(len(X))]) for X in (X_inlier, X_test))
    return Problem.from_samples(X_inlier, X_test, protocol.lambda1, protocol.lambda2, protocol.n_neighbors, sigma=width)


def max_norm(X_inlier: FloatArray, X_test: FloatArray, protocol: Protocol, rng: np.random.Generator) -> Outcome:
    """-||x||_inf: at lambda1 = 0 the LLR score strictly decreases with ||x||_inf and depends on nothing else.

    The norm excludes the constant 1 that ``protocol.intercept`` gives LLR: with features scaled to [0, 1] that
    constant is the largest entry of every row, and the limit of LLR could not distinguish any rows.
    """
    size = np.abs(X_test)
    largest = size.max(axis=1, keepdims=True)
    return Outcome(-largest[:, 0], {}, np.where(size == largest, size, 0.0))
