"""ADMM: each of the three terms of Eq. (5) gets a copy of W of its own, and is minimised exactly.

    min  sum_i log(1 + exp(-y_i q_i.x_i)) + lambda1 sum_e omega_e ||z_e|| + lambda2 sum_i ||p_i||_1^2
    s.t. Q = W, Z = B W, P = W

The multipliers of the edges are what shrinking cuts off, so that ||U_e|| <= lambda1 omega_e: every step has a dual
point of its own, and the method stops on the gap that it proves itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import eye_array
from scipy.sparse.linalg import splu
from scipy.special import expit

from llr_cvx.arrays import FloatArray, row_dot
from llr_cvx.problem import Problem
from llr_cvx.proofs.certificate import lower_bound
from llr_cvx.verdicts.residuals import prox_exclusive, prox_network

#: The gap is computed once in this many steps.
CHECK_EVERY = 10


def admm(
    problem: Problem, tol: float = 1e-6, rho: float = 1.0, n_steps: int = 5000
) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """Yield (P, alpha, U) step by step until the gap is at most tol: the sparse copy of W and a dual point."""
    B, BT = problem.incidence, problem.incidence_T
    solve = splu((BT @ B + 2 * eye_array(problem.shape[0])).tocsc()).solve
    yX = problem.y[:, None] * problem.X
    P = Q = uP = uQ = np.zeros(problem.shape)
    Z = uZ = np.zeros((len(problem.edges), problem.shape[1]))
    for step in range(1, n_steps + 1):
        W = solve(BT @ (Z - uZ) + (P - uP) + (Q - uQ))
        D = B @ W
        Z = prox_network(D + uZ, problem.radii / rho)
        P = prox_exclusive(W + uP, problem.lambda2 / rho)
        Q, alpha = prox_fit(W + uQ, 1 / rho, yX)
        uZ, uP, uQ = uZ + D - Z, uP + W - P, uQ + W - Q
        U = rho * uZ
        yield P, alpha, U
        if step % CHECK_EVERY == 0:
            J = problem.objective(P)
            if J - lower_bound(problem, alpha, U, P) <= tol * J:
                return


def prox_fit(a: FloatArray, t: float, yX: FloatArray) -> tuple[FloatArray, FloatArray]:
    """For each row the q that minimises t log(1 + exp(-q.z_i)) + ||q - a_i||^2 / 2 with z_i = y_i x_i; and alpha.

    q = a + t alpha z, where alpha = sigmoid(-s) and s = a.z + t ||z||^2 alpha: one unknown, found by bisection.
    """
    s0, h = row_dot(a, yX), t * row_dot(yX, yX)
    low, high = s0, s0 + h
    for _ in range(55):
        s = (low + high) / 2
        above = s - s0 > h * expit(-s)
        low, high = np.where(above, low, s), np.where(above, s, high)
    alpha = np.asarray(expit(-s))
    return a + (t * alpha)[:, None] * yX, alpha
