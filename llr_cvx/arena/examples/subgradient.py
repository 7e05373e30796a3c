"""The subgradient method: the shortest solver of Eq. (5), always right and never finished."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from llr_cvx.arrays import FloatArray
from llr_cvx.problem import Problem


def subgradient(problem: Problem, n_steps: int = 2000, c: float = 0.3) -> Iterator[FloatArray]:
    """Steps of length c / sqrt(t) against a subgradient of J; yields the best W so far.

    g_i = -alpha_i y_i x_i + lambda1 sum_e +-omega_e d_e / ||d_e|| + 2 lambda2 ||w_i||_1 sign(w_i), with 0 at the kinks.
    """
    W = best = np.zeros(problem.shape)
    lowest = problem.objective(best)
    for t in range(1, n_steps + 1):
        d = problem.incidence @ W
        length = np.linalg.norm(d, axis=1, keepdims=True)
        U = problem.radii[:, None] * np.divide(d, length, out=np.zeros_like(d), where=length > 0)
        g = problem.dual_vectors(problem.alpha(W), U)
        g += 2.0 * problem.lambda2 * np.abs(W).sum(axis=1, keepdims=True) * np.sign(W)
        W = W - c / np.sqrt(t) * g
        J = problem.objective(W)
        best, lowest = (W, J) if lowest > J else (best, lowest)
        yield best
