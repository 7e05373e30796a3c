"""KKT residuals of a W and a dual point, in the norms that papers on this kind of problem report.

With s_i = y_i w_i.x_i, d_e = w_i - w_j and v_i of the dual point (alpha, U), the optimality conditions of Eq. (5) are

    alpha_i = sigmoid(-s_i),  d_e = prox(d_e + U_e; lambda1 omega_e ||.||_2),  w_i = prox(w_i - v_i; lambda2 ||.||_1^2),

where prox(a; g) minimises g(z) + ||z - a||^2 / 2. A residual is the Euclidean norm, over all samples, edges or
coordinates, of the difference of the two sides, relative to the quantities in them:

    fit        ||alpha - sigmoid(-s)|| / (1 + ||alpha||)
    network    ||D - prox(D + U)|| / (1 + ||D|| + ||U||)
    selection  ||W - prox(W - V)|| / (1 + ||W|| + ||V||)

These are the stationarity conditions in the scores, in the differences and in W. Primal feasibility is no condition,
since W is free, and the dual point of a verdict is feasible exactly. Unlike the gap, they depend on the units of X.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from llr_cvx.arrays import FloatArray, row_norms
from llr_cvx.problem import Problem


class Residuals(NamedTuple):
    """Relative KKT residuals, all zero exactly at an optimal pair of W and (alpha, U)."""

    fit: float
    network: float
    selection: float

    @property
    def largest(self) -> float:
        """The largest of the three: the number that papers call the relative KKT residual."""
        return max(self)


def residuals(problem: Problem, W: FloatArray, alpha: FloatArray, U: FloatArray) -> Residuals:
    """The residuals of W beside a feasible dual point.

    >>> p = Problem([[1.0], [-1.0]], [1, -1], [], [], lambda1=0.0, lambda2=1.0)
    >>> from llr_cvx.oracles import solve_decoupled
    >>> W = solve_decoupled(p)
    >>> residuals(p, W, p.alpha(W), np.zeros((0, 1))).largest < 1e-14
    True
    """
    with np.errstate(over="ignore", invalid="ignore"):
        D, V = problem.incidence @ W, problem.dual_vectors(alpha, U)
        return Residuals(
            _relative(alpha - problem.alpha(W), alpha),
            _relative(D - prox_network(D + U, problem.radii), D, U),
            _relative(W - prox_exclusive(W - V, problem.lambda2), W, V),
        )


def prox_network(a: FloatArray, t: FloatArray) -> FloatArray:
    """For each row the z that minimises t_e ||z||_2 + ||z - a_e||^2 / 2: a_e shortened by t_e."""
    length = row_norms(a)
    return np.asarray(a * (1.0 - np.divide(t, length, out=np.ones_like(length), where=length > t))[:, None])


def prox_exclusive(a: FloatArray, t: float) -> FloatArray:
    """For each row the p that minimises t ||p||_1^2 + ||p - a_i||^2 / 2.

    It is a_i soft-thresholded at tau = 2 t ||p||_1; if the k largest entries survive, tau is their sum divided by
    k + 1/(2 t), and the right k is that of the largest tau.
    """
    if t == 0:
        return a
    largest = -np.sort(-np.abs(a), axis=1)
    k = np.arange(1, a.shape[1] + 1)
    tau = (np.cumsum(largest, axis=1) / (k + 0.5 / t)).max(axis=1, keepdims=True)
    return np.asarray(np.sign(a) * np.maximum(np.abs(a) - tau, 0.0))


def _relative(short: FloatArray, *scale: FloatArray) -> float:
    found = float(np.linalg.norm(short) / (1.0 + sum(np.linalg.norm(part) for part in scale)))
    return found if np.isfinite(found) else float("inf")
