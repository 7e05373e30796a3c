"""A better dual point for a given W, without a linear system.

At the optimum |v_ik| <= 2 lambda2 ||w_i||_1 everywhere. What a v_i has beyond that is handed to the neighbours, in
equal shares along the edges, and each U_e is put back into its ball. A few such rounds often lift D by an order of
magnitude: its loss is a maximum over features, and most of it comes from a few of them.
"""

from __future__ import annotations

import numpy as np

from llr_cvx.arrays import FloatArray, row_dot
from llr_cvx.problem import Problem

ROUNDS = 3
WORTH = 0.9  # a round that leaves more than this share of the loss beyond the levels is the last


def balanced(problem: Problem, W: FloatArray, alpha: FloatArray, U: FloatArray) -> FloatArray:
    """The best of U and what a few rounds make of it, by D(alpha, U)."""
    B, BT, radii = problem.incidence, problem.incidence_T, problem.radii
    level = 2.0 * problem.lambda2 * np.abs(W).sum(axis=1, keepdims=True)
    share = 1.0 / (problem.graph.degrees(np.ones(len(U))) + 1.0)[:, None]
    own = (alpha * problem.y)[:, None] * problem.X
    best, least = U, np.inf
    for _ in range(ROUNDS + 1):
        v = BT @ U
        v -= own
        excess = np.clip(v, -level, level)
        np.subtract(v, excess, out=excess)
        largest = np.maximum(v.max(axis=1), -v.min(axis=1))
        loss = float(largest @ largest - level[:, 0] @ level[:, 0])
        if loss < least:
            best = U
        if loss > WORTH * least:
            break
        least = loss
        excess *= share
        U = U - B @ excess
        norms = np.sqrt(row_dot(U, U))
        U *= np.divide(radii, norms, out=np.ones_like(norms), where=norms > radii)[:, None]
    return best
