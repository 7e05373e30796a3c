"""The smoothed objective J_epsilon that both IRLS solvers decrease.

With d_e = w_i - w_j replace ||d_e|| by a_e = sqrt(||d_e||^2 + epsilon^2), and |w_ik| by
b_ik = sqrt(w_ik^2 + epsilon^2), S_i = sum_k b_ik:

    J_epsilon(W) = sum_i log(1 + exp(-y_i w_i.x_i)) + lambda1 sum_e omega_e a_e + lambda2 sum_i S_i^2.

J_epsilon falls with epsilon, and J <= J_epsilon <= J + O(epsilon).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from llr_cvx.arrays import FloatArray, row_dot
from llr_cvx.problem import Problem


@dataclass(frozen=True, eq=False)
class Smoothed:
    """J, J_epsilon and the pieces of its gradient at one W."""

    W: FloatArray
    epsilon: float
    alpha: FloatArray  # sigmoid(-y_i w_i.x_i)
    a: FloatArray  # smoothed ||d_e||
    b: FloatArray  # smoothed |w_ik|
    S: FloatArray  # smoothed ||w_i||_1
    d_hat: FloatArray  # d_e / a_e
    w_hat: FloatArray  # w_ik / b_ik
    gradient: FloatArray
    objective: float  # J(W)
    value: float  # J_epsilon(W)


def smooth_edges(problem: Problem, W: FloatArray, epsilon: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """d_e / a_e, a_e and ||d_e|| for each edge."""
    D = problem.incidence @ W
    squared = row_dot(D, D)
    a = np.sqrt(squared + epsilon**2)
    D /= a[:, None]
    return D, a, np.sqrt(squared)


def logistic(problem: Problem, W: FloatArray) -> tuple[float, FloatArray]:
    """sum_i log(1 + exp(-y_i w_i.x_i)), and alpha_i = sigmoid(-y_i w_i.x_i)."""
    margins = problem.y * row_dot(problem.X, W)
    return float(np.logaddexp(0.0, -margins).sum()), np.asarray(expit(-margins))


def smoothed(problem: Problem, W: FloatArray, epsilon: float) -> Smoothed:
    """Evaluate J_epsilon and its gradient at W."""
    d_hat, a, lengths = smooth_edges(problem, W, epsilon)
    fit, alpha = logistic(problem, W)
    b = np.sqrt(W * W + epsilon**2)
    S = b.sum(axis=1)
    w_hat = W / b
    l1 = np.abs(W).sum(axis=1)
    gradient = problem.dual_vectors(alpha, problem.radii[:, None] * d_hat)
    gradient += (2.0 * problem.lambda2 * S)[:, None] * w_hat
    return Smoothed(
        *(W, epsilon, alpha, a, b, S, d_hat, w_hat, gradient),
        objective=float(fit + problem.radii @ lengths + problem.lambda2 * (l1 @ l1)),
        value=float(fit + problem.radii @ a + problem.lambda2 * (S @ S)),
    )


def smoothed_objective(problem: Problem, W: FloatArray, epsilon: float) -> float:
    """J_epsilon(W) alone."""
    D = problem.incidence @ W
    S = np.sqrt(W * W + epsilon**2).sum(axis=1)
    fit, _ = logistic(problem, W)
    return float(fit + problem.radii @ np.sqrt(row_dot(D, D) + epsilon**2) + problem.lambda2 * (S @ S))
