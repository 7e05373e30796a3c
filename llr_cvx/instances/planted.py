"""Problems with a planted optimum: choose W and the dual point first, then find samples that make them optimal.

W is optimal exactly if there are U_e with ||U_e|| <= lambda1 omega_e, and U_e = lambda1 omega_e d_e/||d_e||
where d_e = w_i - w_j is not zero, such that with b = B^T U

    v_i = -alpha_i y_i x_i + b_i,     v_ik = -M_i sign(w_ik) where w_ik != 0,     |v_ik| <= M_i elsewhere,

with M_i = 2 lambda2 ||w_i||_1 and alpha_i = sigmoid(-s_i), s_i = y_i w_i.x_i. Given W, U and v, the samples are
x_i = y_i (b_i - v_i) / alpha_i; the product with w_i leaves one equation in one unknown per sample,

    s_i sigmoid(-s_i) = c_i,     c_i = w_i.(b_i - v_i),

solvable if c_i < 0.278 = max s sigmoid(-s): the lambdas are scaled down until it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from llr_cvx.arrays import FloatArray, IntArray
from llr_cvx.problem import Problem

#: Where s sigmoid(-s) has its maximum 0.27846...; it increases to the left.
S_MAX = 1.278464542761074


class Planted(NamedTuple):
    """A problem, its optimum W and the dual optimum (alpha, U)."""

    problem: Problem
    W: FloatArray
    alpha: FloatArray
    U: FloatArray


def plant(
    W: FloatArray,
    edges: IntArray,
    weights: FloatArray,
    lambda1: float,
    lambda2: float,
    rng: np.random.Generator,
    slack: float = 0.8,
    least: float = 0.0,
) -> Planted:
    """Generate samples for which W is optimal up to rounding.

    Equal rows of W along an edge are fused, zeros are unselected features. The lambdas are scaled by a common factor
    if needed to make the equations solvable, and again so that the samples have mean square 1. `rng` draws the labels
    and the free parts of U (on fused edges) and v (on unselected features); these come as close to their bounds as
    `least` at least and `slack` at most, as shares of the bounds: 1 would make the optimum degenerate.

    >>> edges, weights = np.array([[0, 1]]), np.array([1.0])
    >>> made = plant(np.array([[0.5, 0.0], [0.5, 0.0]]), edges, weights, 0.3, 0.1, np.random.default_rng(0))
    >>> W = np.zeros((2, 2))
    >>> bool(made.problem.objective(made.W) < made.problem.objective(W))
    True
    """
    N = len(W)
    y = rng.permutation(np.where(np.arange(N) < max(1, N // 2), 1.0, -1.0))
    U = _edge_duals(W, edges, lambda1 * weights, slack, least, rng)
    M = 2.0 * lambda2 * np.abs(W).sum(axis=1, keepdims=True)
    free = rng.uniform(-slack, slack, size=W.shape)
    v = np.where(W != 0, -M * np.sign(W), M * np.copysign(np.maximum(np.abs(free), least), free))
    b = np.zeros_like(W)
    np.add.at(b, edges[:, 0], U)
    np.add.at(b, edges[:, 1], -U)
    c = np.einsum("ij,ij->i", W, b - v)
    solvable = min(1.0, 0.25 / max(float(c.max()), 1e-300))
    s = np.array([_solve(c_i) for c_i in solvable * c])
    alpha = expit(-s)
    X = solvable * (y / alpha)[:, None] * (b - v)
    # Scaling law: X k, lambda1 k, lambda2 k^2 has the optimum W / k and the same J.
    k = 1.0 / np.sqrt(np.mean(X**2))
    problem = Problem(k * X, y, edges, weights, solvable * k * lambda1, solvable * k**2 * lambda2)
    return Planted(problem, W / k, alpha, solvable * k * U)


def _edge_duals(
    W: FloatArray, edges: IntArray, radii: FloatArray, slack: float, least: float, rng: np.random.Generator
) -> FloatArray:
    """U_e: the direction of d_e at full length where d_e != 0, a random vector inside its ball where d_e = 0."""
    D = W[edges[:, 0]] - W[edges[:, 1]]
    length = np.linalg.norm(D, axis=1, keepdims=True)
    inside = rng.standard_normal(D.shape)
    share = np.maximum(rng.uniform(0.0, slack, size=length.shape), least)
    inside *= share / np.linalg.norm(inside, axis=1, keepdims=True)
    return np.asarray(radii[:, None] * np.where(length > 0, D / np.where(length > 0, length, 1.0), inside))


def _solve(c: float) -> float:
    """The s <= S_MAX with s sigmoid(-s) = c: it lies between 2c and S_MAX."""
    if c == 0:
        return 0.0
    return float(brentq(lambda s: s * expit(-s) - c, 2.0 * c, S_MAX, xtol=1e-300, rtol=1e-15))
