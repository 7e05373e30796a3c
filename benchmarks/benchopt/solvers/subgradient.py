"""The subgradient method: the simplest solver that works, and the slowest."""

import numpy as np
from benchmark_utils.stopping import ProvedGap
from benchopt import BaseSolver
from scipy.special import expit


class Solver(BaseSolver):
    """W <- W - G / (L sqrt(t)) with a subgradient G of J and the largest curvature L of the loss; keeps the best W."""

    name = "Subgradient"
    stopping_criterion = ProvedGap(strategy="callback")

    def set_objective(self, X, y, edges, weights, lambda1, lambda2):
        """Keep the problem."""
        self.X, self.y, self.edges, self.radii, self.lambda2 = X, y, edges, lambda1 * weights, lambda2

    def objective(self, W):
        """J(W), Eq. (5)."""
        d = np.linalg.norm(W[self.edges[:, 0]] - W[self.edges[:, 1]], axis=1)
        loss = np.logaddexp(0.0, -self.y * np.sum(self.X * W, axis=1)).sum()
        return loss + self.radii @ d + self.lambda2 * np.sum(np.abs(W).sum(axis=1) ** 2)

    def subgradient(self, W):
        """One element of the subdifferential of J at W."""
        i, j = self.edges.T
        G = -(self.y * expit(-self.y * np.sum(self.X * W, axis=1)))[:, None] * self.X
        d = W[i] - W[j]
        length = np.linalg.norm(d, axis=1, keepdims=True)
        U = self.radii[:, None] * np.divide(d, length, out=np.zeros_like(d), where=length > 0)
        np.add.at(G, i, U)
        np.add.at(G, j, -U)
        return G + 2.0 * self.lambda2 * np.abs(W).sum(axis=1, keepdims=True) * np.sign(W)

    def run(self, callback):
        """Step until benchopt has seen enough."""
        W = self.best = np.zeros(self.X.shape)
        least, steps = self.objective(W), 0
        L = 0.25 * np.max(np.sum(self.X**2, axis=1)) + 2.0 * self.lambda2 * W.shape[1]
        while callback():
            steps += 1
            W = W - self.subgradient(W) / (L * np.sqrt(steps))
            value = self.objective(W)
            if value < least:
                least, self.best = value, W

    def get_next(self, n_iter):
        """Twice as many steps."""
        return 2 * n_iter + 1

    def get_result(self):
        """The best W so far."""
        return {"W": self.best}
