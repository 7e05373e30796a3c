"""Optima known without a solver, to test solvers against.

With lambda1 = 0 the samples decouple. Only the largest entry of x_i is worth its penalty, so with
k = argmax |x_ik| and M = ||x_i||_inf the optimal row has one nonzero,

    w_i = y_i t sign(x_ik) e_k      where      M sigmoid(-t M) = 2 lambda2 t.

The score of a sample then depends only on ||x_i||_inf: without coupling, LLR is a max-norm test.
"""

from __future__ import annotations

import numpy as np

from llr_cvx.arrays import FloatArray
from llr_cvx.problem import Problem


def solve_decoupled(problem: Problem) -> FloatArray:
    """The optimal W of a problem without coupling, to machine precision.

    If several entries of a row share the largest magnitude, the first one carries the weight: W is then not
    unique, but J and the scores are.

    Parameters
    ----------
    problem : Problem
        With lambda2 > 0, and either lambda1 = 0 or no edge of positive weight.

    Returns
    -------
    array of shape (N, d)

    Examples
    --------
    >>> p = Problem([[1.0, 2.0], [0.5, 0.0]], [1, -1], [], [], lambda1=0.0, lambda2=0.5)
    >>> W = solve_decoupled(p)
    >>> W.round(6).tolist()
    [[0.0, 0.521298], [-0.23531, 0.0]]
    >>> t = W[0, 1]
    >>> bool(abs(2.0 / (1.0 + np.exp(2.0 * t)) - 2 * 0.5 * t) < 1e-15)
    True
    """
    if problem.radii.any():
        raise ValueError(
            f"lambda1 must be 0 for the samples to decouple, got {problem.lambda1:g} with "
            f"{np.count_nonzero(problem.weights)} edge(s) of positive weight"
        )
    if problem.lambda2 == 0:
        raise ValueError("lambda2 must be > 0: with neither penalty the infimum of J is not attained")
    rows = np.arange(problem.shape[0])
    k = np.abs(problem.X).argmax(axis=1)
    largest = problem.X[rows, k]
    W = np.zeros(problem.shape)
    W[rows, k] = problem.y * np.sign(largest) * decoupled_weight(np.abs(largest), problem.lambda2)
    return W


def decoupled_weight(M: FloatArray, lambda2: float) -> FloatArray:
    """The root t >= 0 of M sigmoid(-t M) = 2 lambda2 t for each M >= 0.

    In v = log(t M) and with c = M^2 / (2 lambda2) the equation reads v + log(1 + exp(e^v)) = log c. Its left side
    is convex and increasing, so Newton's method from an upper bound on the root decreases to it and never crosses
    it. Such bounds are t M <= c / 2 and t M <= max(1, log c), both from t M (1 + exp(t M)) = c.

    >>> decoupled_weight(np.array([0.0, 1e-8, 1e8]), lambda2=1.0)
    array([0.00000000e+00, 2.50000000e-09, 3.26620019e-07])
    """
    M = np.asarray(M, dtype=float)
    t = np.zeros_like(M)
    log_M = np.log(M[M > 0])
    log_c = 2.0 * log_M - np.log(2.0 * lambda2)
    v = np.minimum(log_c - np.log(2.0), np.log(np.maximum(1.0, log_c)))
    rounding = 4.0 * np.finfo(float).eps * np.maximum(1.0, np.abs(log_c))
    for _ in range(100):
        u = np.exp(v)
        excess = v + np.logaddexp(0.0, u) - log_c
        step = excess / (1.0 + u / (1.0 + np.exp(-u)))
        # The iterates decrease until only rounding, on the scale of |log c|, is left; each M stops on its own.
        going = step > rounding
        if not going.any():
            break
        v = np.where(going, v - step, v)
    t[M > 0] = np.exp(v - log_M)
    return t
