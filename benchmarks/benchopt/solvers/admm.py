"""Linearised ADMM with the edge differences as second block.

W <- prox(W - tau (gradient of the loss + rho B^T (B W - Z + Y)))      prox of tau lambda2 ||w_i||_1^2 for each row
Z <- shrink(B W + Y, lambda1 omega / rho),   Y <- Y + B W - Z
"""

import numpy as np
from benchmark_utils.stopping import ProvedGap
from benchopt import BaseSolver
from scipy.special import expit

import llr_cvx as llr


def prox_squared_l1(V, c):
    """The rows w that minimise ||w - v||^2 / 2 + c ||w||_1^2: soft thresholding at 2 c ||w||_1."""
    size = np.sort(np.abs(V), axis=1)[:, ::-1]
    kept = 1.0 + np.arange(V.shape[1])
    norm = np.max(np.cumsum(size, axis=1) / (1.0 + 2.0 * c * kept), axis=1, keepdims=True)
    return np.sign(V) * np.maximum(np.abs(V) - 2.0 * c * norm, 0.0)


def shrink(V, radii):
    """Each row moved towards zero by its radius."""
    length = np.linalg.norm(V, axis=1)
    return V * (1.0 - np.minimum(radii / np.maximum(length, 1e-300), 1.0))[:, None]


class Solver(BaseSolver):
    """From W = 0 with a fixed rho."""

    name = "ADMM"
    stopping_criterion = ProvedGap(strategy="callback")
    parameters = {"rho": [1.0]}

    def set_objective(self, **problem):
        """Validate the problem; not timed."""
        self.problem = llr.Problem(**problem)

    def run(self, callback):
        """Step until benchopt has seen enough."""
        p, B = self.problem, self.problem.incidence
        degree = np.bincount(p.edges.ravel(), minlength=len(p.y)).max(initial=0)
        tau = 1.0 / (0.25 * np.max(np.sum(p.X**2, axis=1)) + 2.0 * self.rho * degree)
        self.W = np.zeros(p.shape)
        Z = Y = B @ self.W
        while callback():
            slope = (p.y * expit(-p.y * np.sum(p.X * self.W, axis=1)))[:, None] * p.X
            G = self.rho * (B.T @ (B @ self.W - Z + Y)) - slope
            self.W = prox_squared_l1(self.W - tau * G, tau * p.lambda2)
            Z = shrink(B @ self.W + Y, p.radii / self.rho)
            Y = Y + B @ self.W - Z

    def get_next(self, n_iter):
        """Twice as many steps."""
        return 2 * n_iter + 1

    def get_result(self):
        """The last W."""
        return {"W": self.W}
