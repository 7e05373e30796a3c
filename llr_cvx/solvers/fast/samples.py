"""The samples' part of a splitting round (see `llr_cvx.solvers.fast.splitting`), for all samples at once.

For F_i(w) = log(1 + exp(-y_i w.x_i)) + lambda2 ||w||_1^2 the minimiser of F_i(w) + s_i / 2 ||w + z_i / s_i||^2 is

    w_i = shrink((alpha_i y_i x_i - z_i) / s_i)    with    alpha_i = sigmoid(-y_i w_i.x_i),

where shrink takes t_i ||w_i||_1 off every |entry|, but not more than it has; t_i = 2 lambda2 / s_i. So two numbers
are to be found for each sample, ||w_i||_1 and alpha_i. They change little from round to round, and Newton steps go
on from those of the round before.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from llr_cvx.arrays import FloatArray, row_dot
from llr_cvx.problem import Problem

STEPS = 10  # for ||w_i||_1, at most; mostly two are made
COARSE = 0.1  # error of an alpha_i above which its root is bracketed, by so many steps at most,
BISECTIONS = 40
TURN, OFTEN = 0.8, 3  # a step that undoes so much of the last one swings; so many in a row shorten the next ones

Precision = type[Any]  # np.float32 or np.float64


class Minimisers(NamedTuple):
    """For given alpha_i: w_i, ||w_i||_1, sigma_i = sigmoid(-y_i w_i.x_i), d(alpha_i - sigma_i) / d alpha_i."""

    W: FloatArray
    l1: FloatArray
    sigma: FloatArray
    slope: FloatArray


def minimisers(
    yX: FloatArray, two_lambda2: float, z: FloatArray, s: FloatArray, alpha: FloatArray, l1: FloatArray
) -> Minimisers:
    """All w_i, by Newton steps from a guess of ||w_i||_1; s is a column."""
    target = alpha[:, None] * yX
    target -= z
    target /= s
    size, t, one = np.abs(target), two_lambda2 / s[:, 0], np.ones_like(yX[0])
    rounding = 10.0 * float(np.finfo(yX.dtype).eps)
    for _ in range(STEPS):
        left = np.maximum(size - (t * l1)[:, None], 0.0)
        n = np.sign(left) @ one
        before, l1 = l1, (left @ one + n * t * l1) / (1.0 + t * n)
        if np.all(np.abs(l1 - before) <= rounding * l1):
            break
    W = np.copysign(np.maximum(size - (t * l1)[:, None], 0.0), target)
    sigma: FloatArray = expit(-row_dot(yX, W))
    sign = np.sign(W)
    on = np.abs(sign)
    x, n = yX * on, on @ one
    gain = (row_dot(x, x) - t * row_dot(x, sign) ** 2 / (1.0 + t * n)) / s[:, 0]  # d(y_i w_i.x_i) / d alpha_i
    return Minimisers(W, l1, sigma, 1.0 + sigma * (1.0 - sigma) * gain)


class Samples:
    """w_i and sigma_i, and the alpha_i and ||w_i||_1 to go on from."""

    def __init__(self, problem: Problem, W: FloatArray, dtype: Precision) -> None:
        self.yX, self.two_lambda2 = (problem.y[:, None] * problem.X).astype(dtype), 2.0 * problem.lambda2
        self.alpha, self.l1 = problem.alpha(W).astype(dtype), np.abs(W).sum(axis=1).astype(dtype)
        self.step, self.trust = np.zeros_like(self.alpha), np.ones_like(self.alpha)
        self.swings = np.zeros(len(W), dtype=int)

    def minimise(self, z: FloatArray, s: FloatArray) -> None:
        """w_i for z_i and s_i, and the next alpha_i.

        alpha_i - sigma_i rises with alpha_i, but has kinks where entries leave zero, over which Newton steps can
        swing for ever: where they turn back again and again they are shortened, and grow again slowly.
        """
        at = minimisers(self.yX, self.two_lambda2, z, s, self.alpha, self.l1)
        coarse = np.flatnonzero(np.abs(at.sigma - self.alpha) > COARSE)
        if coarse.size:
            self._bracket(coarse, z, s)
            at = minimisers(self.yX, self.two_lambda2, z, s, self.alpha, self.l1)
        self.W, self.l1, self.sigma = at.W, at.l1, at.sigma
        step = (at.sigma - self.alpha) / at.slope
        self.swings = np.where(step * self.step < -TURN * self.step**2, self.swings + 1, 0)
        self.trust = np.where(self.swings >= OFTEN, 0.5 * self.trust, np.minimum(1.1 * self.trust, 1.0))
        self.step = self.trust * step
        self.alpha = self.alpha + self.step

    def _bracket(self, rows: np.ndarray, z: FloatArray, s: FloatArray) -> None:
        """The roots alpha_i of some samples, by Newton steps inside an interval that holds them, or its middle."""
        yX, z, s, alpha, l1 = self.yX[rows], z[rows], s[rows], self.alpha[rows], self.l1[rows]
        low, high = np.zeros_like(alpha), np.ones_like(alpha)
        for _ in range(BISECTIONS):
            _, l1, sigma, slope = minimisers(yX, self.two_lambda2, z, s, alpha, l1)
            error = sigma - alpha
            if np.abs(error).max() <= 0.01 * COARSE:
                break
            low, high = np.where(error > 0.0, alpha, low), np.where(error > 0.0, high, alpha)
            newton = alpha + error / slope
            alpha = np.where((low < newton) & (newton < high), newton, 0.5 * (low + high))
        self.alpha[rows], self.l1[rows] = alpha, l1
